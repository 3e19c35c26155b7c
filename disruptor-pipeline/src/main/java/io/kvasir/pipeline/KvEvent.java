package io.kvasir.pipeline;

import io.kvasir.pipeline.wire.KvBatch;

/** One record of the event ring: a batch, or the order to retire a slot. */
final class KvEvent {
    KvBatch batch; // null while the record is not in use
    boolean retire;
    Runnable whenSwept;

    /** Lets go of the batch. */
    void release(SpareBatches spares) {
        spares.give(batch);
        batch = null;
        retire = false;
        whenSwept = null;
    }
}
