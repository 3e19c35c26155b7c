package io.kvasir.pipeline.wire;

/** Takes batches of index operations: a ring, or an index directly. */
@FunctionalInterface
public interface KvEventSink {
    /**
     * Offers one batch.
     *
     * @param batch copied or applied before the call returns
     * @return false if there was no room: then nothing of the batch was taken
     */
    boolean offer(KvBatch batch);
}
