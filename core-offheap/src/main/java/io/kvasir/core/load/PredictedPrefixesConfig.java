package io.kvasir.core.load;

import io.kvasir.core.radix.RadixTree;

/**
 * Sizes and ages of {@link PredictedPrefixes}; memory for all of it is taken at construction.
 *
 * @param maxWorkerSlots worker slots, 1..65536
 * @param maxBlocks blocks, counted once per worker slot, above which the oldest visits are dropped;
 *     Dynamo's {@code router-max-tree-size}
 * @param pruneTargetRatio part of {@code maxBlocks} that dropping leaves, above 0 and at most 1
 * @param maxVisits visits remembered at once; one more drops the oldest
 * @param ttlNs nanoseconds that a visit counts, at least 1; Dynamo's {@code router-ttl-secs}
 */
public record PredictedPrefixesConfig(
        int maxWorkerSlots, long maxBlocks, double pruneTargetRatio, int maxVisits, long ttlNs) {
    /** Largest {@code maxBlocks}. */
    public static final long MAX_BLOCKS = 1L << 30;

    private static final int MAX_VISITS = 1 << 26;
    private static final int MIN_VISITS = 1024;
    private static final int BLOCKS_PER_VISIT = 16;
    private static final long USUAL_BLOCKS = 1 << 20;
    private static final double USUAL_RATIO = 0.8;
    private static final long USUAL_TTL_NS = 120_000_000_000L;

    /** Bytes of the arena for a block, for the ends that a visit makes, and for a worker slot. */
    private static final long BYTES_PER_BLOCK = 12;

    private static final long BYTES_PER_VISIT = 1024;
    private static final long BYTES_PER_SLOT = 1024;
    private static final long MIN_BUDGET = 64 << 10;

    /**
     * Checks the limits.
     *
     * @throws IllegalArgumentException if a value is outside its limits
     */
    public PredictedPrefixesConfig {
        check("maxWorkerSlots", maxWorkerSlots, RadixTree.MAX_WORKER_SLOTS);
        check("maxBlocks", maxBlocks, MAX_BLOCKS);
        check("maxVisits", maxVisits, MAX_VISITS);
        check("ttlNs", ttlNs, Long.MAX_VALUE);
        if (!(pruneTargetRatio > 0 && pruneTargetRatio <= 1)) {
            throw new IllegalArgumentException(
                    "pruneTargetRatio out of range: value="
                            + pruneTargetRatio
                            + ", limits=above 0..1");
        }
    }

    /**
     * Takes the number of visits from the blocks: one for 16, at least 1024. All in all a block
     * needs some 80 bytes then.
     *
     * @throws IllegalArgumentException if a value is outside its limits
     */
    public PredictedPrefixesConfig(
            int maxWorkerSlots, long maxBlocks, double pruneTargetRatio, long ttlNs) {
        this(
                maxWorkerSlots,
                maxBlocks,
                pruneTargetRatio,
                Math.clamp(maxBlocks / BLOCKS_PER_VISIT, MIN_VISITS, MAX_VISITS),
                ttlNs);
    }

    /** Usual sizes and ages, those of Dynamo: 2^20 blocks, pruned to 0.8 of them, 120 s. */
    public static PredictedPrefixesConfig of(int maxWorkerSlots) {
        return new PredictedPrefixesConfig(maxWorkerSlots, USUAL_BLOCKS, USUAL_RATIO, USUAL_TTL_NS);
    }

    /** The same sizes and ages for another number of worker slots. */
    public PredictedPrefixesConfig withMaxWorkerSlots(int slots) {
        return new PredictedPrefixesConfig(slots, maxBlocks, pruneTargetRatio, maxVisits, ttlNs);
    }

    /** Off-heap bytes for runs. */
    long budgetBytes() {
        return MIN_BUDGET
                + BYTES_PER_BLOCK * maxBlocks
                + BYTES_PER_VISIT * maxVisits
                + BYTES_PER_SLOT * maxWorkerSlots;
    }

    private static void check(String name, long value, long max) {
        if (value < 1 || value > max) {
            throw new IllegalArgumentException(
                    name + " out of range: value=" + value + ", limits=1.." + max);
        }
    }
}
