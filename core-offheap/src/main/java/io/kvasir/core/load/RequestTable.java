package io.kvasir.core.load;

import static io.kvasir.core.memory.ChainedHashEntries.NONE;

import io.kvasir.core.memory.ChainedHashEntries;
import io.kvasir.core.memory.OffHeap;
import io.kvasir.core.memory.SlotLists;

/**
 * Running requests: a hash table by id, one list per worker slot, and a wheel by deadline. Writer
 * thread only.
 *
 * <p>A handle is {@code [generation:32 | entry:32]}, positive: it stands for one request only, also
 * when the entry has been handed out again. Generations of running requests are odd.
 */
final class RequestTable implements AutoCloseable {
    private final ChainedHashEntries chains;
    private final OffHeap memory;
    private final SlotLists lists;
    private final DeadlineWheel wheel;

    RequestTable(int workerSlots, int maxRequests) {
        this.chains =
                new ChainedHashEntries("maxRequests", maxRequests, RequestDescriptor.ENTRY_LENGTH);
        this.memory = chains.memory();
        this.lists =
                new SlotLists(
                        chains,
                        RequestDescriptor.SLOT_NEXT_OFFSET,
                        RequestDescriptor.SLOT_PREVIOUS_OFFSET,
                        workerSlots);
        this.wheel = OffHeap.orClose(chains, () -> new DeadlineWheel(chains));
    }

    int find(long requestId) {
        int entry = chains.firstAcquire(chains.bucket(requestId));
        while (entry != NONE && requestId(entry) != requestId) {
            entry = chains.nextOpaque(entry);
        }
        return entry;
    }

    /** Running request that a handle stands for, or {@link ChainedHashEntries#NONE}. */
    int at(long handle) {
        final int entry = (int) handle;
        final boolean running =
                (handle >>> Integer.SIZE & 1) != 0
                        && entry > NONE
                        && entry <= chains.capacity()
                        && handle(entry) == handle;
        return running ? entry : NONE;
    }

    long handle(int entry) {
        return (long) generation(entry) << Integer.SIZE | entry;
    }

    /**
     * Adds a request that is not in the table. The caller made sure that it fits.
     *
     * @param deadlineNs when it ends of itself; 0 = never
     * @return its entry
     */
    int insert(long requestId, int slot, long prefillTokens, long deadlineNs) {
        final int entry = chains.acquire();
        assert entry != NONE : "no free request; the booking must check before it writes";
        final long offset = chains.offset(entry);
        memory.putInt(offset + RequestDescriptor.SLOT_OFFSET, slot);
        memory.putLong(offset + RequestDescriptor.REQUEST_ID_OFFSET, requestId);
        memory.putLong(offset + RequestDescriptor.PREFILL_TOKENS_OFFSET, prefillTokens);
        nextGeneration(entry);
        lists.add(slot, entry);
        if (deadlineNs != 0) {
            wheel.add(entry, deadlineNs);
        }
        chains.link(entry, chains.bucket(requestId));
        return entry;
    }

    /** Notes where a request's path ends, and how many blocks it has beside it. */
    void path(int entry, int array, int place, int ownBlocks) {
        final long offset = chains.offset(entry);
        memory.putInt(offset + RequestDescriptor.ARRAY_OFFSET, array);
        memory.putShort(offset + RequestDescriptor.PLACE_OFFSET, (short) place);
        memory.putInt(offset + RequestDescriptor.OWN_BLOCKS_OFFSET, ownBlocks);
    }

    void remove(int entry) {
        chains.unlink(entry, chains.bucket(requestId(entry)));
        lists.remove(slot(entry), entry);
        wheel.remove(entry);
        nextGeneration(entry);
        chains.release(entry);
    }

    int firstOf(int slot) {
        return lists.first(slot);
    }

    /** A request whose deadline is not behind a time, or {@link ChainedHashEntries#NONE}. */
    int due(long nowNs) {
        return wheel.due(nowNs);
    }

    int slot(int entry) {
        return memory.getInt(chains.offset(entry) + RequestDescriptor.SLOT_OFFSET);
    }

    int array(int entry) {
        return memory.getInt(chains.offset(entry) + RequestDescriptor.ARRAY_OFFSET);
    }

    int place(int entry) {
        return memory.getShort(chains.offset(entry) + RequestDescriptor.PLACE_OFFSET);
    }

    /** Tokens still to be prefilled; 0 for a request that generates. */
    long prefillTokens(int entry) {
        final long stored = storedPrefillTokens(entry);
        return stored == RequestDescriptor.PREFILL_OVER ? 0 : stored;
    }

    int ownBlocks(int entry) {
        return memory.getInt(chains.offset(entry) + RequestDescriptor.OWN_BLOCKS_OFFSET);
    }

    void addOwnBlocks(int entry, int blocks) {
        memory.putInt(
                chains.offset(entry) + RequestDescriptor.OWN_BLOCKS_OFFSET,
                ownBlocks(entry) + blocks);
    }

    /** Ends the prefill phase; false if it was over already. */
    boolean startDecode(int entry) {
        if (storedPrefillTokens(entry) == RequestDescriptor.PREFILL_OVER) {
            return false;
        }
        memory.putLong(
                chains.offset(entry) + RequestDescriptor.PREFILL_TOKENS_OFFSET,
                RequestDescriptor.PREFILL_OVER);
        return true;
    }

    int used() {
        return chains.used();
    }

    int free() {
        return chains.free();
    }

    long bytes() {
        return chains.bytes() + wheel.bytes();
    }

    @Override
    public void close() {
        chains.close();
        wheel.close();
    }

    long requestId(int entry) {
        return memory.getLong(chains.offset(entry) + RequestDescriptor.REQUEST_ID_OFFSET);
    }

    private long storedPrefillTokens(int entry) {
        return memory.getLong(chains.offset(entry) + RequestDescriptor.PREFILL_TOKENS_OFFSET);
    }

    private void nextGeneration(int entry) {
        memory.putInt(
                chains.offset(entry) + RequestDescriptor.GENERATION_OFFSET,
                generation(entry) + 1 & Integer.MAX_VALUE);
    }

    private int generation(int entry) {
        return memory.getInt(chains.offset(entry) + RequestDescriptor.GENERATION_OFFSET);
    }
}
