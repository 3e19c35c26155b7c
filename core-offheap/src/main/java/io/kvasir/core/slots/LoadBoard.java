package io.kvasir.core.slots;

import io.kvasir.core.index.PrefixIndexConfig;
import io.kvasir.core.memory.OffHeap;

import java.util.Objects;

/**
 * Load of every worker slot, in off-heap cells that any thread adds to atomically.
 *
 * <p>A caller adds what it expects of a request before the request is booked, so that concurrent
 * callers see each other; the {@link SlotTable} corrects the difference when it knows. The three
 * values of a cell are exact each by itself, not as a snapshot of all three. Callers who use {@link
 * #addProvisional} let the table find and correct what has gone wrong with a cell. Every method
 * throws {@link IndexOutOfBoundsException} for a slot out of range.
 */
public final class LoadBoard implements AutoCloseable {
    private final int slots;
    private final OffHeap memory;

    /**
     * Allocates cells of zeros.
     *
     * @param maxWorkerSlots worker slots
     * @throws IllegalArgumentException if {@code maxWorkerSlots} is outside 1..{@value
     *     PrefixIndexConfig#MAX_WORKER_SLOTS}
     */
    public LoadBoard(int maxWorkerSlots) {
        if (maxWorkerSlots < 1 || maxWorkerSlots > PrefixIndexConfig.MAX_WORKER_SLOTS) {
            throw new IllegalArgumentException(
                    "maxWorkerSlots out of range: value="
                            + maxWorkerSlots
                            + ", limits=1.."
                            + PrefixIndexConfig.MAX_WORKER_SLOTS);
        }
        this.slots = maxWorkerSlots;
        this.memory = OffHeap.allocate(LoadCellDescriptor.cellOffset(maxWorkerSlots));
    }

    /**
     * Adds what a caller expects of a request that it is about to book. Any thread. A booking, a
     * refused one too, or {@link #takeBackProvisional} must follow soon: while one is on its way,
     * the slot's load cannot be compared with what is booked.
     *
     * @param prefillTokens tokens that the worker has to prefill
     * @param blocks blocks that it will have in use in addition
     */
    public void addProvisional(int slot, long prefillTokens, long blocks) {
        // counted before it is added: see BookedLoads
        add(slot, LoadCellDescriptor.PROVISIONS_OFFSET, LoadCellDescriptor.ONE_BEGUN);
        add(slot, LoadCellDescriptor.PREFILL_TOKENS_OFFSET, prefillTokens);
        add(slot, LoadCellDescriptor.ACTIVE_BLOCKS_OFFSET, blocks);
        add(slot, LoadCellDescriptor.ACTIVE_REQUESTS_OFFSET, 1);
    }

    /**
     * Takes back what {@link #addProvisional} has added, when the request will not be booked. Any
     * thread.
     *
     * @param prefillTokens the same as there
     * @param blocks the same as there
     */
    public void takeBackProvisional(int slot, long prefillTokens, long blocks) {
        add(slot, LoadCellDescriptor.PREFILL_TOKENS_OFFSET, -prefillTokens);
        add(slot, LoadCellDescriptor.ACTIVE_BLOCKS_OFFSET, -blocks);
        add(slot, LoadCellDescriptor.ACTIVE_REQUESTS_OFFSET, -1);
        add(slot, LoadCellDescriptor.PROVISIONS_OFFSET, LoadCellDescriptor.ONE_TAKEN_BACK);
    }

    /** Adds to the tokens still to be prefilled on a slot; returns the new value. Any thread. */
    public long addPrefillTokens(int slot, long delta) {
        return add(slot, LoadCellDescriptor.PREFILL_TOKENS_OFFSET, delta);
    }

    /** Adds to the blocks in use on a slot; returns the new value. Any thread. */
    public long addActiveBlocks(int slot, long delta) {
        return add(slot, LoadCellDescriptor.ACTIVE_BLOCKS_OFFSET, delta);
    }

    /** Adds to the running requests of a slot; returns the new value. Any thread. */
    public long addActiveRequests(int slot, long delta) {
        return add(slot, LoadCellDescriptor.ACTIVE_REQUESTS_OFFSET, delta);
    }

    /** Tokens still to be prefilled on a slot. Any thread. */
    public long prefillTokens(int slot) {
        return get(slot, LoadCellDescriptor.PREFILL_TOKENS_OFFSET);
    }

    /** Blocks in use by running requests of a slot, shared ones counted once. Any thread. */
    public long activeBlocks(int slot) {
        return get(slot, LoadCellDescriptor.ACTIVE_BLOCKS_OFFSET);
    }

    /** Running requests of a slot. Any thread. */
    public long activeRequests(int slot) {
        return get(slot, LoadCellDescriptor.ACTIVE_REQUESTS_OFFSET);
    }

    /** Provisional loads of a slot, begun and taken back; what is read after it is not older. */
    long provisions(int slot) {
        return get(slot, LoadCellDescriptor.PROVISIONS_OFFSET);
    }

    /** Puts the blocks in use of the first slots into an array, with something added to each. */
    void activeBlocks(long[] out, int count, long more) {
        for (int slot = 0; slot < count; slot++) {
            out[slot] =
                    memory.getLongOpaque(
                                    LoadCellDescriptor.cellOffset(slot)
                                            + LoadCellDescriptor.ACTIVE_BLOCKS_OFFSET)
                            + more;
        }
    }

    /**
     * Sets a slot's values to zero, for a new tenant. The caller sees to it that nobody adds to the
     * slot meanwhile, and that nothing booked on it is freed later.
     */
    public void reset(int slot) {
        final long cell = cell(slot);
        memory.putLongRelease(cell + LoadCellDescriptor.PREFILL_TOKENS_OFFSET, 0);
        memory.putLongRelease(cell + LoadCellDescriptor.ACTIVE_BLOCKS_OFFSET, 0);
        memory.putLongRelease(cell + LoadCellDescriptor.ACTIVE_REQUESTS_OFFSET, 0);
    }

    /** Number of slots. */
    public int slots() {
        return slots;
    }

    /** Off-heap bytes; constant. */
    public long bytes() {
        return memory.length();
    }

    /** Gives the memory back; a second call does nothing. No other call may follow or run. */
    @Override
    public void close() {
        memory.close();
    }

    private long add(int slot, int fieldOffset, long delta) {
        return memory.getAndAddLong(cell(slot) + fieldOffset, delta) + delta;
    }

    private long get(int slot, int fieldOffset) {
        return memory.getLongAcquire(cell(slot) + fieldOffset);
    }

    private long cell(int slot) {
        return LoadCellDescriptor.cellOffset(Objects.checkIndex(slot, slots));
    }
}
