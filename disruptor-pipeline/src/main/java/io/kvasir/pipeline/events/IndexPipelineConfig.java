package io.kvasir.pipeline.events;

import io.kvasir.pipeline.ring.WaitMode;
import io.kvasir.pipeline.source.ZmqConfig;

import java.util.Objects;

/**
 * Sizes and times of an {@link IndexPipeline}.
 *
 * @param ringSize messages that may wait for the index writer; a power of two
 * @param waitMode how the index writer waits
 * @param initialWords room of a batch at start, in 8-byte words
 * @param retainedWords most 8-byte words that a batch keeps after a large message
 * @param snapshotBatches messages of a worker that may wait while a snapshot of it is made
 * @param zmq connections to publishers
 * @param onDemand whether the writer thread is started by the first message, not at once
 */
public record IndexPipelineConfig(
        int ringSize,
        WaitMode waitMode,
        int initialWords,
        int retainedWords,
        int snapshotBatches,
        ZmqConfig zmq,
        boolean onDemand) {
    private static final IndexPipelineConfig DEFAULTS =
            new IndexPipelineConfig(
                    16_384, WaitMode.BLOCKING, 128, 1_024, 4_096, ZmqConfig.defaults(), false);

    /**
     * Checks the values.
     *
     * @throws IllegalArgumentException if one is out of range
     */
    public IndexPipelineConfig {
        Objects.requireNonNull(waitMode, "waitMode");
        Objects.requireNonNull(zmq, "zmq");
        if (Integer.bitCount(ringSize) != 1 || ringSize < 2) {
            throw new IllegalArgumentException(
                    "ringSize must be a power of two, 2 or more: " + ringSize);
        }
        if (snapshotBatches < 0) {
            throw new IllegalArgumentException(
                    "snapshotBatches must not be negative: " + snapshotBatches);
        }
        if (initialWords < 1 || retainedWords < initialWords) {
            throw new IllegalArgumentException(
                    "need 1 <= initialWords <= retainedWords: initialWords="
                            + initialWords
                            + ", retainedWords="
                            + retainedWords);
        }
    }

    /** Sizes for a router with some hundred workers: less than 1 MiB of rings when idle. */
    public static IndexPipelineConfig defaults() {
        return DEFAULTS;
    }

    /** The same with another ring size. */
    public IndexPipelineConfig withRingSize(int messages) {
        return new IndexPipelineConfig(
                messages, waitMode, initialWords, retainedWords, snapshotBatches, zmq, onDemand);
    }

    /** The same with another way to wait. */
    public IndexPipelineConfig withWaitMode(WaitMode mode) {
        return new IndexPipelineConfig(
                ringSize, mode, initialWords, retainedWords, snapshotBatches, zmq, onDemand);
    }

    /** The same with other room for messages that wait for a snapshot. */
    public IndexPipelineConfig withSnapshotBatches(int messages) {
        return new IndexPipelineConfig(
                ringSize, waitMode, initialWords, retainedWords, messages, zmq, onDemand);
    }

    /** The same with other connections to publishers. */
    public IndexPipelineConfig withZmq(ZmqConfig connections) {
        return new IndexPipelineConfig(
                ringSize,
                waitMode,
                initialWords,
                retainedWords,
                snapshotBatches,
                connections,
                onDemand);
    }

    /** The same with a writer thread that is there only once it is needed. */
    public IndexPipelineConfig startedOnDemand() {
        return new IndexPipelineConfig(
                ringSize, waitMode, initialWords, retainedWords, snapshotBatches, zmq, true);
    }

    /** The same with other replay times. */
    public IndexPipelineConfig withReplay(int timeoutMs, int attempts, int tailMs) {
        return withZmq(zmq.withReplays(zmq.replays(), timeoutMs, attempts, tailMs));
    }
}
