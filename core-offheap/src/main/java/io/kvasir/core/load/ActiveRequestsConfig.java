package io.kvasir.core.load;

import io.kvasir.core.memory.BuddyArena;
import io.kvasir.core.radix.RadixTree;

/**
 * Sizes of {@link ActiveRequests}; memory for all of it is taken at construction.
 *
 * <p>The budget follows from the limits: {@value #BYTES_PER_BLOCK} bytes for a block, which is kept
 * once for all worker slots, {@value #BYTES_PER_REQUEST} for a request, which ends a run and may
 * split another, and {@value #BYTES_PER_SLOT} for a worker slot; at most what an arena may have,
 * {@link BuddyArena#MAX_LENGTH}. Where prompts share many short segments, the memory may end before
 * the limits do; a prompt is booked without a path then, as it is when {@code maxActiveBlocks} are
 * in use.
 *
 * @param maxWorkerSlots worker slots, 1..65536
 * @param maxRequests running requests, 1..2^30; the index in a request's number is below it
 * @param maxActiveBlocks prompt blocks in use, counted once per worker slot, 1..2^30
 * @param maxBlocksPerRequest leading blocks of a prompt that are followed one by one; those after
 *     them count as the request's own, shared with no other
 * @param budgetBytes off-heap bytes for prompts, at least {@value #MIN_BUDGET}
 */
public record ActiveRequestsConfig(
        int maxWorkerSlots,
        int maxRequests,
        long maxActiveBlocks,
        int maxBlocksPerRequest,
        long budgetBytes) {
    /** Most requests, and most blocks. */
    public static final long MAX_ENTRIES = 1 << 30;

    private static final long MIN_BUDGET = 64 << 10;
    private static final long BYTES_PER_BLOCK = 10;
    private static final long BYTES_PER_REQUEST = 1024;
    private static final long BYTES_PER_SLOT = 1024;

    /**
     * Checks the limits.
     *
     * @throws IllegalArgumentException if a value is outside its limits
     */
    public ActiveRequestsConfig {
        check("maxWorkerSlots", maxWorkerSlots, 1, RadixTree.MAX_WORKER_SLOTS);
        check("maxRequests", maxRequests, 1, MAX_ENTRIES);
        check("maxActiveBlocks", maxActiveBlocks, 1, MAX_ENTRIES);
        check("maxBlocksPerRequest", maxBlocksPerRequest, 1, Integer.MAX_VALUE);
        check("budgetBytes", budgetBytes, MIN_BUDGET, Long.MAX_VALUE);
    }

    /**
     * Takes the budget from the limits.
     *
     * @throws IllegalArgumentException if a value is outside its limits
     */
    public ActiveRequestsConfig(
            int maxWorkerSlots, int maxRequests, long maxActiveBlocks, int maxBlocksPerRequest) {
        this(
                maxWorkerSlots,
                maxRequests,
                maxActiveBlocks,
                maxBlocksPerRequest,
                Math.min(
                        BuddyArena.MAX_LENGTH,
                        MIN_BUDGET
                                + BYTES_PER_BLOCK * Math.max(0, maxActiveBlocks)
                                + BYTES_PER_REQUEST * Math.max(0, maxRequests)
                                + BYTES_PER_SLOT * Math.max(0, maxWorkerSlots)));
    }

    private static void check(String name, long value, long min, long max) {
        if (value < min || value > max) {
            throw new IllegalArgumentException(
                    name + " out of range: value=" + value + ", limits=" + min + ".." + max);
        }
    }
}
