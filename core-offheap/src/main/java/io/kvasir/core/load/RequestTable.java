package io.kvasir.core.load;

import static io.kvasir.core.memory.SlotLists.NO_ENTRY;

import io.kvasir.core.memory.OffHeap;
import io.kvasir.core.memory.SlotLists;
import io.kvasir.core.memory.WriterCounter;

/**
 * Running requests: an array by number, one list per worker slot, and a wheel by deadline. Writer
 * thread only, except {@link #used}.
 *
 * <p>A request's number is {@code [generation:32 | index:32]}, given by the caller. Its index is
 * that of its entry, so nothing is searched; the whole number stays in the entry for as long as the
 * request runs, so a number of another generation stands for no request.
 */
final class RequestTable implements AutoCloseable {
    private final int capacity;
    private final OffHeap memory;
    private final SlotLists lists;
    private final DeadlineWheel wheel;
    private final WriterCounter used = new WriterCounter();

    /**
     * @param capacity numbers have an index below it
     */
    RequestTable(int workerSlots, int capacity) {
        this.capacity = capacity;
        this.memory =
                OffHeap.allocate(
                        RequestDescriptor.entryOffset(capacity) + RequestDescriptor.ENTRY_LENGTH);
        this.lists =
                new SlotLists(
                        memory,
                        RequestDescriptor.ENTRY_LENGTH,
                        RequestDescriptor.SLOT_NEXT_OFFSET,
                        RequestDescriptor.SLOT_PREVIOUS_OFFSET,
                        workerSlots);
        this.wheel = OffHeap.orClose(memory, () -> new DeadlineWheel(memory));
    }

    /** Entry of a running request, or {@link SlotLists#NO_ENTRY}. */
    int find(long number) {
        final int index = (int) number;
        final boolean running =
                number != ActiveRequests.NO_REQUEST
                        && index >= 0
                        && index < capacity
                        && number(index + 1) == number;
        return running ? index + 1 : NO_ENTRY;
    }

    /** Whether no request runs under a number's index, which is below the capacity. */
    boolean isFree(long number) {
        return number((int) number + 1) == ActiveRequests.NO_REQUEST;
    }

    /**
     * Adds a request whose entry is free.
     *
     * @param deadlineNs when it ends of itself; 0 = never
     * @return its entry
     */
    int insert(long number, int slot, long prefillTokens, long deadlineNs) {
        assert number != ActiveRequests.NO_REQUEST && isFree(number)
                : "the booking must check before it writes: number=" + number;
        final int entry = (int) number + 1;
        final long offset = RequestDescriptor.entryOffset(entry);
        memory.putLong(offset + RequestDescriptor.NUMBER_OFFSET, number);
        memory.putInt(offset + RequestDescriptor.SLOT_OFFSET, slot);
        memory.putLong(offset + RequestDescriptor.PREFILL_TOKENS_OFFSET, prefillTokens);
        lists.add(slot, entry);
        if (deadlineNs != ActiveRequests.NO_DEADLINE) {
            wheel.add(entry, deadlineNs);
        }
        used.add(1);
        return entry;
    }

    /** Records where a request's path ends, and how many blocks it has beside it. */
    void path(int entry, int array, int pathEnd, int ownBlocks) {
        final long offset = RequestDescriptor.entryOffset(entry);
        memory.putInt(offset + RequestDescriptor.ARRAY_OFFSET, array);
        memory.putShort(offset + RequestDescriptor.PATH_END_OFFSET, (short) pathEnd);
        memory.putInt(offset + RequestDescriptor.OWN_BLOCKS_OFFSET, ownBlocks);
    }

    void remove(int entry) {
        assert number(entry) != ActiveRequests.NO_REQUEST : "no request runs: entry=" + entry;
        lists.remove(slot(entry), entry);
        wheel.remove(entry);
        memory.putLong(
                RequestDescriptor.entryOffset(entry) + RequestDescriptor.NUMBER_OFFSET,
                ActiveRequests.NO_REQUEST);
        used.add(-1);
    }

    int firstOf(int slot) {
        return lists.first(slot);
    }

    /** The request of the same slot that was booked before this one; {@link SlotLists#NO_ENTRY}. */
    int after(int entry) {
        return lists.next(entry);
    }

    /** A request whose deadline is at or before a time, or {@link SlotLists#NO_ENTRY}. */
    int due(long nowNs) {
        return wheel.due(nowNs);
    }

    long number(int entry) {
        return memory.getLong(
                RequestDescriptor.entryOffset(entry) + RequestDescriptor.NUMBER_OFFSET);
    }

    int slot(int entry) {
        return memory.getInt(RequestDescriptor.entryOffset(entry) + RequestDescriptor.SLOT_OFFSET);
    }

    int array(int entry) {
        return memory.getInt(RequestDescriptor.entryOffset(entry) + RequestDescriptor.ARRAY_OFFSET);
    }

    int pathEnd(int entry) {
        return memory.getShort(
                RequestDescriptor.entryOffset(entry) + RequestDescriptor.PATH_END_OFFSET);
    }

    /** Tokens still to be prefilled; 0 for a request that generates. */
    long prefillTokens(int entry) {
        final long stored = storedPrefillTokens(entry);
        return stored == RequestDescriptor.PREFILL_OVER ? 0 : stored;
    }

    int ownBlocks(int entry) {
        return memory.getInt(
                RequestDescriptor.entryOffset(entry) + RequestDescriptor.OWN_BLOCKS_OFFSET);
    }

    void addOwnBlocks(int entry, int blocks) {
        memory.putInt(
                RequestDescriptor.entryOffset(entry) + RequestDescriptor.OWN_BLOCKS_OFFSET,
                ownBlocks(entry) + blocks);
    }

    /** Ends the prefill phase; false if it was over already. */
    boolean startDecode(int entry) {
        if (storedPrefillTokens(entry) == RequestDescriptor.PREFILL_OVER) {
            return false;
        }
        memory.putLong(
                RequestDescriptor.entryOffset(entry) + RequestDescriptor.PREFILL_TOKENS_OFFSET,
                RequestDescriptor.PREFILL_OVER);
        return true;
    }

    private long storedPrefillTokens(int entry) {
        return memory.getLong(
                RequestDescriptor.entryOffset(entry) + RequestDescriptor.PREFILL_TOKENS_OFFSET);
    }

    /** Running requests; any thread. */
    int used() {
        return (int) used.get();
    }

    long bytes() {
        return memory.length() + wheel.bytes();
    }

    @Override
    public void close() {
        memory.close();
        wheel.close();
    }
}
