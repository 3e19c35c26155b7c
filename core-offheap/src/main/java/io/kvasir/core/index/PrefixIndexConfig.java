package io.kvasir.core.index;

import io.kvasir.core.memory.EntryChains;

/**
 * Sizes of a {@link PrefixIndex}; memory for all of it is taken at construction.
 *
 * @param maxWorkerSlots worker slots, 1..{@value #MAX_WORKER_SLOTS}
 * @param maxBlocks distinct blocks, counted once however many workers hold them, 1..2^30
 * @param maxHeldBlocks (worker slot, engine hash) pairs, 1..2^30
 */
public record PrefixIndexConfig(int maxWorkerSlots, long maxBlocks, long maxHeldBlocks) {
    /** Largest number of worker slots of one index. */
    public static final int MAX_WORKER_SLOTS = 1 << 16;

    /**
     * Checks the limits.
     *
     * @throws IllegalArgumentException if a value is outside its limits
     */
    public PrefixIndexConfig {
        check("maxWorkerSlots", maxWorkerSlots, MAX_WORKER_SLOTS);
        check("maxBlocks", maxBlocks, EntryChains.MAX_ENTRIES);
        check("maxHeldBlocks", maxHeldBlocks, EntryChains.MAX_ENTRIES);
    }

    private static void check(String name, long value, long max) {
        if (value < 1 || value > max) {
            throw new IllegalArgumentException(
                    name + " out of range: value=" + value + ", limits=1.." + max);
        }
    }
}
