package io.kvasir.pipeline.events;

import io.kvasir.pipeline.wire.KvBatch;

/**
 * One record of the event ring: a batch of one slot generation, a part of a load, or nothing, to
 * wake the writer.
 */
final class IndexCommand {
    KvBatch batch; // null in a record without one, or not in use
    SlotLoad load; // likewise
    byte[] part; // of the load
    int generation;

    /** Lets go of the batch, if there is one. */
    void release(SpareBatches spares) {
        final KvBatch spare = batch;
        batch = null;
        load = null;
        part = null;
        if (spare != null) {
            spares.give(spare);
        }
    }
}
