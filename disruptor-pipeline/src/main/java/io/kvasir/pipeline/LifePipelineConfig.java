package io.kvasir.pipeline;

import java.util.Objects;

/**
 * Sizes of a {@link LifePipeline}.
 *
 * @param maxRequests requests that may be booked at the same time; the ring holds at least four
 *     times as many records, half of them kept for finishing what is booked
 * @param waitMode how the slot writer waits
 * @param initialHashes room for block hashes of one ring record at start
 * @param retainedHashes most block hashes that a ring record keeps room for after a long prompt
 */
public record LifePipelineConfig(
        int maxRequests, WaitMode waitMode, int initialHashes, int retainedHashes) {
    private static final int MAX_REQUESTS = 1 << 27;

    /**
     * Checks the values.
     *
     * @throws IllegalArgumentException if one is out of range
     */
    public LifePipelineConfig {
        Objects.requireNonNull(waitMode, "waitMode");
        if (maxRequests < 1 || maxRequests > MAX_REQUESTS) {
            throw new IllegalArgumentException(
                    "maxRequests must be 1.." + MAX_REQUESTS + ": " + maxRequests);
        }
        if (initialHashes < 1 || retainedHashes < initialHashes) {
            throw new IllegalArgumentException(
                    "need 1 <= initialHashes <= retainedHashes: initialHashes="
                            + initialHashes
                            + ", retainedHashes="
                            + retainedHashes);
        }
    }

    /**
     * Usual sizes: room for prompts of 64 blocks at start, 512 blocks kept.
     *
     * @param maxRequests requests that may be booked at the same time
     */
    public static LifePipelineConfig of(int maxRequests) {
        return new LifePipelineConfig(maxRequests, WaitMode.BLOCKING, 64, 512);
    }

    /** Records of the ring: the power of two at or above four times {@link #maxRequests}. */
    public int ringSize() {
        final int needed = Math.max(256, 4 * maxRequests);
        return Integer.highestOneBit(needed - 1) << 1;
    }
}
