package io.kvasir.pipeline.events;

import io.kvasir.pipeline.wire.KvBatch;

/** One record of the event ring: a batch of one slot generation, or nothing, to wake the writer. */
final class IndexCommand {
    KvBatch batch; // null in a record that wakes the writer, or is not in use
    int generation;

    /** Lets go of the batch, if there is one. */
    void release(SpareBatches spares) {
        final KvBatch spare = batch;
        batch = null;
        if (spare != null) {
            spares.give(spare);
        }
    }
}
