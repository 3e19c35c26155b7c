package io.kvasir.router;

/**
 * Sizes and defaults of one router.
 *
 * @param blockSize tokens per block; must equal the engines' block size in their events
 * @param maxWorkers (worker, dp rank) pairs that can be registered at once
 * @param maxBlocks distinct blocks in the index
 * @param maxHeldBlocks (worker, block) pairs in the index
 * @param maxActiveRequests bookings at once
 * @param maxBlocksPerRequest blocks of one prompt that are matched and tracked
 * @param mode default routing mode
 * @param overlapWeight default weight of a block to prefill
 * @param temperature default sampling temperature; 0 takes the minimum
 * @param degradedCredit what a cached block counts on a worker whose events are known to be
 *     incomplete, 0..1
 * @param trackOutputBlocks whether generated blocks count as active blocks
 */
public record RouterSettings(
        int blockSize,
        int maxWorkers,
        long maxBlocks,
        long maxHeldBlocks,
        int maxActiveRequests,
        int maxBlocksPerRequest,
        RoutingMode mode,
        double overlapWeight,
        double temperature,
        double degradedCredit,
        boolean trackOutputBlocks) {
    /** Checks the values. */
    public RouterSettings {
        checkAtLeastOne("blockSize", blockSize);
        checkAtLeastOne("maxWorkers", maxWorkers);
        checkAtLeastOne("maxBlocks", maxBlocks);
        checkAtLeastOne("maxHeldBlocks", maxHeldBlocks);
        checkAtLeastOne("maxActiveRequests", maxActiveRequests);
        checkAtLeastOne("maxBlocksPerRequest", maxBlocksPerRequest);
        KvRouter.checkNotNegative("overlapWeight", overlapWeight);
        KvRouter.checkNotNegative("temperature", temperature);
        if (!(degradedCredit >= 0 && degradedCredit <= 1)) {
            throw new IllegalArgumentException(
                    "degradedCredit=" + degradedCredit + " is not in 0..1");
        }
    }

    private static void checkAtLeastOne(String name, long value) {
        if (value < 1) {
            throw new IllegalArgumentException(name + "=" + value + " must be at least 1");
        }
    }
}
