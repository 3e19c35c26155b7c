package io.kvasir.nats.events;

import io.kvasir.core.index.CopyRule;
import io.kvasir.pipeline.wire.ApplyListener;
import io.kvasir.pipeline.wire.KvBatch;
import io.kvasir.pipeline.wire.RouterEventWriter;

/** Messages of a publisher. */
final class Events {
    /** One that {@link ObservedPlane} knows only once it is registered. */
    static final long OTHER_WORKER = 8;

    private Events() {}

    /** A store of one block at the root. */
    static KvBatch store(long name) {
        final KvBatch batch = new KvBatch();
        batch.reset(0, 0, CopyRule.LAST_COPY, false, ApplyListener.NONE);
        batch.addStored(true, 0, new long[] {name}, new long[] {1_000 + name}, 1);
        return batch;
    }

    /** An envelope with one event, whose number is one more than the message's. */
    static byte[] envelope(long publisher, long sequence, KvBatch batch) {
        return RouterEventWriter.envelope(
                publisher,
                sequence,
                0,
                EventSubjects.KV_EVENTS,
                RouterEventWriter.payload(ObservedPlane.WORKER, 0, sequence + 1, batch));
    }

    /** A single event. */
    static byte[] json(long id, KvBatch batch) {
        return json(ObservedPlane.WORKER, id, batch);
    }

    /** The same of some worker. */
    static byte[] json(long worker, long id, KvBatch batch) {
        return RouterEventWriter.json(worker, 0, id, batch, batch.first());
    }
}
