package io.kvasir.pipeline;

import java.util.Objects;

/**
 * Sizes and times of an {@link EventPipeline}.
 *
 * @param ringSize messages that may wait for the index writer; a power of two
 * @param waitMode how the index writer waits
 * @param initialWords room of one ring record at start, in 8-byte words
 * @param retainedWords most 8-byte words that a ring record keeps after a large message
 * @param receiveHighWaterMark messages that may wait in a socket before its publisher drops
 * @param maxMessageBytes largest message accepted from a socket
 * @param replayTimeoutMs longest silence of a replay endpoint
 * @param replayAttempts how often a replay is asked for before it is given up
 * @param tailCheckMs time after a connect at which missed newest messages are asked for, 0 = never
 */
public record EventPipelineConfig(
        int ringSize,
        WaitMode waitMode,
        int initialWords,
        int retainedWords,
        int receiveHighWaterMark,
        long maxMessageBytes,
        int replayTimeoutMs,
        int replayAttempts,
        int tailCheckMs) {
    private static final EventPipelineConfig DEFAULTS =
            new EventPipelineConfig(
                    16_384, WaitMode.BLOCKING, 128, 1_024, 100_000, 64L << 20, 2_000, 3, 1_000);

    /**
     * Checks the values.
     *
     * @throws IllegalArgumentException if one is out of range
     */
    public EventPipelineConfig {
        Objects.requireNonNull(waitMode, "waitMode");
        if (Integer.bitCount(ringSize) != 1 || ringSize < 2) {
            throw new IllegalArgumentException(
                    "ringSize must be a power of two, 2 or more: " + ringSize);
        }
        if (initialWords < 1 || retainedWords < initialWords) {
            throw new IllegalArgumentException(
                    "need 1 <= initialWords <= retainedWords: initialWords="
                            + initialWords
                            + ", retainedWords="
                            + retainedWords);
        }
        if (receiveHighWaterMark < 0 || maxMessageBytes < 1) {
            throw new IllegalArgumentException(
                    "receiveHighWaterMark must be 0 (no limit) or more, maxMessageBytes 1 or more: "
                            + receiveHighWaterMark
                            + ", "
                            + maxMessageBytes);
        }
        if (replayTimeoutMs < 1 || replayAttempts < 1 || tailCheckMs < 0) {
            throw new IllegalArgumentException(
                    "replayTimeoutMs and replayAttempts must be 1 or more, tailCheckMs 0 or more: "
                            + replayTimeoutMs
                            + ", "
                            + replayAttempts
                            + ", "
                            + tailCheckMs);
        }
    }

    /** Sizes for a router with some hundred workers: about 16 MiB of rings when idle. */
    public static EventPipelineConfig defaults() {
        return DEFAULTS;
    }

    /** The same with another ring size. */
    public EventPipelineConfig withRingSize(int messages) {
        return new EventPipelineConfig(
                messages,
                waitMode,
                initialWords,
                retainedWords,
                receiveHighWaterMark,
                maxMessageBytes,
                replayTimeoutMs,
                replayAttempts,
                tailCheckMs);
    }

    /** The same with another way to wait. */
    public EventPipelineConfig withWaitMode(WaitMode mode) {
        return new EventPipelineConfig(
                ringSize,
                mode,
                initialWords,
                retainedWords,
                receiveHighWaterMark,
                maxMessageBytes,
                replayTimeoutMs,
                replayAttempts,
                tailCheckMs);
    }

    /** The same with other replay times. */
    public EventPipelineConfig withReplay(int timeoutMs, int attempts, int tailMs) {
        return new EventPipelineConfig(
                ringSize,
                waitMode,
                initialWords,
                retainedWords,
                receiveHighWaterMark,
                maxMessageBytes,
                timeoutMs,
                attempts,
                tailMs);
    }
}
