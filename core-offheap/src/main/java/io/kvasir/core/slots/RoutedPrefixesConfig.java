package io.kvasir.core.slots;

import io.kvasir.core.index.PrefixIndexConfig;

/**
 * Sizes and ages of {@link RoutedPrefixes}; memory for all of it is taken at construction.
 *
 * @param maxWorkerSlots worker slots, 1..65536
 * @param maxBlocks blocks, counted once per worker slot, above which the oldest visits are dropped;
 *     Dynamo's {@code router-max-tree-size}
 * @param pruneTargetRatio part of {@code maxBlocks} that dropping leaves, above 0 and at most 1
 * @param maxVisits visits remembered at once; one more drops the oldest
 * @param ttlNs nanoseconds that a visit counts, at least 1; Dynamo's {@code router-ttl-secs}
 */
public record RoutedPrefixesConfig(
        int maxWorkerSlots, long maxBlocks, double pruneTargetRatio, int maxVisits, long ttlNs) {
    private static final long MAX_BLOCKS = 1L << 30;
    private static final int MAX_VISITS = 1 << 26;

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
    public RoutedPrefixesConfig {
        check("maxWorkerSlots", maxWorkerSlots, PrefixIndexConfig.MAX_WORKER_SLOTS);
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
