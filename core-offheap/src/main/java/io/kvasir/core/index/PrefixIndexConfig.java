package io.kvasir.core.index;

import io.kvasir.core.radix.RadixTree;

import java.util.Objects;

/**
 * Sizes of a {@link PrefixIndex}; memory for all of it is reserved at construction, and taken when
 * it is written first.
 *
 * <p>The budget follows from the limits: 9 bytes for a distinct block and 55 for a held one, which
 * prompts of 8 blocks and more need, however they are stored, and 8 KiB for each worker slot; a
 * small index gets what the shortest runs need, up to 4 MiB. Where prompts are stored in shorter
 * segments, the memory may end before the limits do; a store does not fit then as it does not at a
 * limit.
 *
 * @param maxWorkerSlots worker slots, 1..{@value RadixTree#MAX_WORKER_SLOTS}
 * @param maxBlocks distinct blocks, counted once however many workers hold them, 1..2^30
 * @param maxHeldBlocks (worker slot, engine hash) pairs, 1..2^30
 * @param budgetBytes off-heap bytes for blocks and names, at least 64 KiB
 * @param capacityRule what becomes of a store that does not fit
 */
public record PrefixIndexConfig(
        int maxWorkerSlots,
        long maxBlocks,
        long maxHeldBlocks,
        long budgetBytes,
        CapacityRule capacityRule) {
    private static final long MAX_COUNT = 1L << 30;
    private static final long MIN_BUDGET = 64 << 10;
    private static final long BYTES_PER_BLOCK = 9;
    private static final long BYTES_PER_HELD_BLOCK = 55;
    private static final long BYTES_PER_HELD_LONG = 26;
    private static final long BYTES_PER_SLOT = 8 << 10;
    private static final long SHORTEST_RUN_BYTES = 512;
    private static final long SMALL_BUDGET = 4 << 20;

    /**
     * Checks the limits.
     *
     * @throws IllegalArgumentException if a value is outside its limits
     */
    public PrefixIndexConfig {
        check("maxWorkerSlots", maxWorkerSlots, 1, RadixTree.MAX_WORKER_SLOTS);
        check("maxBlocks", maxBlocks, 1, MAX_COUNT);
        check("maxHeldBlocks", maxHeldBlocks, 1, MAX_COUNT);
        check("budgetBytes", budgetBytes, MIN_BUDGET, Long.MAX_VALUE);
        Objects.requireNonNull(capacityRule, "capacityRule");
    }

    /**
     * Refuses what does not fit.
     *
     * @throws IllegalArgumentException if a value is outside its limits
     */
    public PrefixIndexConfig(
            int maxWorkerSlots, long maxBlocks, long maxHeldBlocks, long budgetBytes) {
        this(maxWorkerSlots, maxBlocks, maxHeldBlocks, budgetBytes, CapacityRule.REFUSE);
    }

    /**
     * Takes the budget from the limits, and refuses what does not fit.
     *
     * @throws IllegalArgumentException if a value is outside its limits
     */
    public PrefixIndexConfig(int maxWorkerSlots, long maxBlocks, long maxHeldBlocks) {
        this(
                maxWorkerSlots,
                maxBlocks,
                maxHeldBlocks,
                budget(maxWorkerSlots, maxBlocks, maxHeldBlocks, BYTES_PER_HELD_BLOCK));
    }

    /**
     * The limits that a number of bytes has room for, with as many distinct blocks as held ones.
     *
     * @param bytes what the index may grow to
     * @return limits and budget; each at least what the smallest index has
     */
    public static PrefixIndexConfig within(int maxWorkerSlots, long bytes) {
        final long left = bytes - BYTES_PER_SLOT * maxWorkerSlots;
        final long blocks =
                Math.clamp(left / (BYTES_PER_BLOCK + BYTES_PER_HELD_BLOCK), 1, MAX_COUNT);
        return new PrefixIndexConfig(maxWorkerSlots, blocks, blocks);
    }

    /**
     * The same limits with the memory that prompts of some 30 blocks and more need, 35 bytes for a
     * block of one worker.
     */
    public PrefixIndexConfig forLongPrompts() {
        return withBudgetBytes(
                budget(maxWorkerSlots, maxBlocks, maxHeldBlocks, BYTES_PER_HELD_LONG));
    }

    /** The same limits and budget for another number of slots. */
    PrefixIndexConfig withSlots(int workerSlots) {
        return new PrefixIndexConfig(
                workerSlots, maxBlocks, maxHeldBlocks, budgetBytes, capacityRule);
    }

    /** The same sizes with another rule for stores that do not fit. */
    public PrefixIndexConfig with(CapacityRule rule) {
        return new PrefixIndexConfig(maxWorkerSlots, maxBlocks, maxHeldBlocks, budgetBytes, rule);
    }

    /**
     * The same limits with another budget: prompts of 4 blocks that share nothing need about 100
     * bytes a block, of one block 360.
     *
     * @throws IllegalArgumentException if the value is outside its limits
     */
    public PrefixIndexConfig withBudgetBytes(long bytes) {
        return new PrefixIndexConfig(maxWorkerSlots, maxBlocks, maxHeldBlocks, bytes, capacityRule);
    }

    private static long budget(int slots, long blocks, long held, long bytesPerHeld) {
        final long rule = BYTES_PER_BLOCK * blocks + bytesPerHeld * held + BYTES_PER_SLOT * slots;
        final long shortRuns = SHORTEST_RUN_BYTES * (blocks + held) + 2 * BYTES_PER_SLOT * slots;
        return Math.max(MIN_BUDGET, Math.max(rule, Math.min(shortRuns, SMALL_BUDGET)));
    }

    private static void check(String name, long value, long min, long max) {
        if (value < min || value > max) {
            throw new IllegalArgumentException(
                    name + " out of range: value=" + value + ", limits=" + min + ".." + max);
        }
    }
}
