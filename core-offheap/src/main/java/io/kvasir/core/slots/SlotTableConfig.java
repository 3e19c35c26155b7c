package io.kvasir.core.slots;

import io.kvasir.core.index.PrefixIndexConfig;
import io.kvasir.core.memory.EntryChains;

/**
 * Sizes of a {@link SlotTable}; memory for all of it is taken at construction.
 *
 * @param maxWorkerSlots worker slots, 1..65536
 * @param maxRequests running requests
 * @param maxActiveBlocks prompt blocks in use, counted once per worker slot, 1..2^30
 * @param maxBlocksPerRequest leading blocks of a prompt that are followed one by one; those behind
 *     count as the request's own, shared with nobody
 */
public record SlotTableConfig(
        int maxWorkerSlots, int maxRequests, long maxActiveBlocks, int maxBlocksPerRequest) {
    /**
     * Checks the limits.
     *
     * @throws IllegalArgumentException if a value is outside its limits
     */
    public SlotTableConfig {
        check("maxWorkerSlots", maxWorkerSlots, PrefixIndexConfig.MAX_WORKER_SLOTS);
        check("maxRequests", maxRequests, EntryChains.MAX_ENTRIES);
        check("maxActiveBlocks", maxActiveBlocks, EntryChains.MAX_ENTRIES);
        check("maxBlocksPerRequest", maxBlocksPerRequest, Integer.MAX_VALUE);
    }

    private static void check(String name, long value, long max) {
        if (value < 1 || value > max) {
            throw new IllegalArgumentException(
                    name + " out of range: value=" + value + ", limits=1.." + max);
        }
    }
}
