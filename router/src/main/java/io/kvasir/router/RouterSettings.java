package io.kvasir.router;

import io.kvasir.core.memory.LineArena;
import io.kvasir.core.slots.RoutedPrefixesConfig;

/**
 * Sizes and defaults of one router.
 *
 * @param blockSize tokens per block; must equal the engines' block size in their events
 * @param maxWorkers (worker, dp rank) pairs that can be registered at once
 * @param maxBlocks distinct blocks in the index
 * @param maxHeldBlocks (worker, block) pairs in the index
 * @param indexBytes off-heap bytes of the index for blocks and names; {@link #BY_LIMITS} takes them
 *     from {@code maxBlocks} and {@code maxHeldBlocks}
 * @param maxActiveRequests bookings at once
 * @param maxBlocksPerRequest blocks of one prompt that are matched and tracked
 * @param mode default routing mode
 * @param overlapWeight default weight of a block to prefill
 * @param temperature default sampling temperature; 0 takes the minimum
 * @param degradedCredit what a cached block counts on a worker whose events are known to be
 *     incomplete, 0..1
 * @param trackOutputBlocks whether generated blocks count as active blocks
 * @param routedPrefixes how long and how much of what was routed to a worker without events it is
 *     taken to hold; null: nothing
 */
public record RouterSettings(
        int blockSize,
        int maxWorkers,
        long maxBlocks,
        long maxHeldBlocks,
        long indexBytes,
        int maxActiveRequests,
        int maxBlocksPerRequest,
        RoutingMode mode,
        double overlapWeight,
        double temperature,
        double degradedCredit,
        boolean trackOutputBlocks,
        RoutedPrefixesConfig routedPrefixes) {
    /** Value of {@code indexBytes} by which the limits size the index. */
    public static final long BY_LIMITS = 0;

    /** Least index, in bytes: 64 KiB. */
    public static final long MIN_INDEX_BYTES = 64 << 10;

    /** Largest index, in bytes: one arena of lines, almost 128 GiB. */
    public static final long MAX_INDEX_BYTES = (Integer.MAX_VALUE - 1L) * LineArena.LINE_LENGTH;

    /** Checks the values. */
    public RouterSettings {
        checkAtLeastOne("blockSize", blockSize);
        checkAtLeastOne("maxWorkers", maxWorkers);
        checkAtLeastOne("maxBlocks", maxBlocks);
        checkAtLeastOne("maxHeldBlocks", maxHeldBlocks);
        checkIndexBytes("indexBytes", indexBytes);
        checkAtLeastOne("maxActiveRequests", maxActiveRequests);
        checkAtLeastOne("maxBlocksPerRequest", maxBlocksPerRequest);
        KvRouter.checkNotNegative("overlapWeight", overlapWeight);
        KvRouter.checkNotNegative("temperature", temperature);
        if (!(degradedCredit >= 0 && degradedCredit <= 1)) {
            throw new IllegalArgumentException(
                    "degradedCredit=" + degradedCredit + " is not in 0..1");
        }
    }

    /**
     * Checks a size of the index.
     *
     * @param name how the caller's users know the knob, for the message
     * @param bytes {@link #BY_LIMITS}, or {@link #MIN_INDEX_BYTES} to {@link #MAX_INDEX_BYTES}
     * @throws IllegalArgumentException if it is anything else
     */
    public static void checkIndexBytes(String name, long bytes) {
        if (bytes != BY_LIMITS && (bytes < MIN_INDEX_BYTES || bytes > MAX_INDEX_BYTES)) {
            throw new IllegalArgumentException(
                    name
                            + "="
                            + bytes
                            + " is not in "
                            + MIN_INDEX_BYTES
                            + ".."
                            + MAX_INDEX_BYTES
                            + "; set it to the bytes that the index may have, or to "
                            + BY_LIMITS
                            + " to size it by its limits of blocks");
        }
    }

    private static void checkAtLeastOne(String name, long value) {
        if (value < 1) {
            throw new IllegalArgumentException(name + "=" + value + " must be at least 1");
        }
    }
}
