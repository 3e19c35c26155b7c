package io.kvasir.pipeline.source;

import io.kvasir.pipeline.wire.KvBatch;
import io.kvasir.pipeline.wire.KvEventSink;

import java.util.concurrent.atomic.AtomicLong;

/**
 * The sink of one stream, with the number of batches that it took. Offers are guarded by the
 * stream's lock; any thread reads the counts.
 */
final class CountedSink implements KvEventSink {
    private final KvEventSink sink;
    private final AtomicLong offered = new AtomicLong();
    private final AtomicLong refused = new AtomicLong();

    CountedSink(KvEventSink sink) {
        this.sink = sink;
    }

    @Override
    public boolean offer(KvBatch batch) {
        // raised before the offer: the batch may be applied, and counted as applied, before the
        // call returns, and a reader must never see more batches applied than offered
        offered.getAndIncrement();
        if (sink.offer(batch)) {
            return true;
        }
        offered.getAndDecrement();
        refused.getAndIncrement();
        return false;
    }

    /** Batches that were taken, and the one that is being offered. */
    long offered() {
        return offered.get();
    }

    /** Batches that found no room. */
    long refused() {
        return refused.get();
    }

    @Override
    public long mostBlocks() {
        return sink.mostBlocks();
    }

    @Override
    public boolean hasRoom(int slot) {
        return sink.hasRoom(slot);
    }
}
