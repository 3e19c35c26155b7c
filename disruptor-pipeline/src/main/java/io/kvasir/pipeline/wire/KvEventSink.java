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

    /** Blocks that one slot can hold at most. */
    default long mostBlocks() {
        return Long.MAX_VALUE;
    }

    /**
     * Whether there is room for what a slot has announced and the index does not hold because it is
     * full.
     *
     * @param slot worker slot
     */
    default boolean hasRoom(int slot) {
        return true;
    }

    /**
     * Notifies a listener of what becomes of a slot that holds something before its first batch: at
     * once of what is missing, then of evictions. Never waits.
     *
     * @param slot worker slot
     * @param listener that of the batches to come
     */
    default void listen(int slot, ApplyListener listener) {}
}
