package io.kvasir.core.slots;

import static io.kvasir.core.memory.EntryChains.NONE;

import io.kvasir.core.memory.EntryChains;
import io.kvasir.core.memory.OffHeap;
import io.kvasir.core.memory.SlotLists;

/** Hash table of running requests by id, with one list per worker slot. Writer thread only. */
final class RequestTable implements AutoCloseable {
    private final EntryChains chains;
    private final OffHeap memory;
    private final SlotLists lists;

    RequestTable(int workerSlots, int maxRequests) {
        this.chains = new EntryChains("maxRequests", maxRequests, RequestDescriptor.ENTRY_LENGTH);
        this.memory = chains.memory();
        this.lists =
                new SlotLists(
                        chains,
                        RequestDescriptor.SLOT_NEXT_OFFSET,
                        RequestDescriptor.SLOT_PREVIOUS_OFFSET,
                        workerSlots);
    }

    int find(long requestId) {
        int entry = chains.firstAcquire(chains.bucket(requestId));
        while (entry != NONE && requestId(entry) != requestId) {
            entry = chains.nextOpaque(entry);
        }
        return entry;
    }

    /** Adds a request that is not in the table. The caller made sure that it fits. */
    void insert(long requestId, int slot, long prefillTokens, int tail, long ownBlocks) {
        final int entry = chains.acquire();
        assert entry != NONE : "no free request; the booking must check before it writes";
        final long offset = chains.offset(entry);
        memory.putInt(offset + RequestDescriptor.SLOT_OFFSET, slot);
        memory.putLong(offset + RequestDescriptor.REQUEST_ID_OFFSET, requestId);
        memory.putLong(offset + RequestDescriptor.PREFILL_TOKENS_OFFSET, prefillTokens);
        memory.putInt(offset + RequestDescriptor.PHASE_OFFSET, RequestDescriptor.PREFILL);
        memory.putInt(offset + RequestDescriptor.TAIL_OFFSET, tail);
        memory.putLong(offset + RequestDescriptor.OWN_BLOCKS_OFFSET, ownBlocks);
        lists.add(slot, entry);
        chains.link(entry, chains.bucket(requestId));
    }

    void remove(int entry) {
        chains.unlink(entry, chains.bucket(requestId(entry)));
        lists.remove(slot(entry), entry);
        chains.release(entry);
    }

    int firstOf(int slot) {
        return lists.first(slot);
    }

    int slot(int entry) {
        return memory.getInt(chains.offset(entry) + RequestDescriptor.SLOT_OFFSET);
    }

    int tail(int entry) {
        return memory.getInt(chains.offset(entry) + RequestDescriptor.TAIL_OFFSET);
    }

    long prefillTokens(int entry) {
        return memory.getLong(chains.offset(entry) + RequestDescriptor.PREFILL_TOKENS_OFFSET);
    }

    long ownBlocks(int entry) {
        return memory.getLong(chains.offset(entry) + RequestDescriptor.OWN_BLOCKS_OFFSET);
    }

    void addOwnBlock(int entry) {
        final long offset = chains.offset(entry) + RequestDescriptor.OWN_BLOCKS_OFFSET;
        memory.putLong(offset, memory.getLong(offset) + 1);
    }

    /** Ends the prefill phase; false if it was over already. */
    boolean startDecode(int entry) {
        final long offset = chains.offset(entry);
        if (memory.getInt(offset + RequestDescriptor.PHASE_OFFSET) == RequestDescriptor.DECODE) {
            return false;
        }
        memory.putInt(offset + RequestDescriptor.PHASE_OFFSET, RequestDescriptor.DECODE);
        memory.putLong(offset + RequestDescriptor.PREFILL_TOKENS_OFFSET, 0);
        return true;
    }

    int used() {
        return chains.used();
    }

    int free() {
        return chains.free();
    }

    long bytes() {
        return chains.bytes();
    }

    @Override
    public void close() {
        chains.close();
    }

    private long requestId(int entry) {
        return memory.getLong(chains.offset(entry) + RequestDescriptor.REQUEST_ID_OFFSET);
    }
}
