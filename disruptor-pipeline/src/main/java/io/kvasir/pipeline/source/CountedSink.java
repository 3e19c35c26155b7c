package io.kvasir.pipeline.source;

import io.kvasir.pipeline.wire.ApplyListener;
import io.kvasir.pipeline.wire.KvBatch;
import io.kvasir.pipeline.wire.KvEventSink;

import java.util.concurrent.atomic.AtomicLong;

/**
 * The sink of one stream, which counts the batches that it took. Offers are guarded by the stream's
 * lock; any thread reads the counts.
 */
final class CountedSink implements KvEventSink {
    private final KvEventSink sink;
    private final BatchProgress progress;
    private final AtomicLong refused = new AtomicLong();

    CountedSink(KvEventSink sink, BatchProgress progress) {
        this.sink = sink;
        this.progress = progress;
    }

    @Override
    public boolean offer(KvBatch batch) {
        // raised before the offer: the batch may be applied, and counted as applied, before the
        // call returns, and a reader must never see more batches applied than offered
        progress.offer();
        if (sink.offer(batch)) {
            return true;
        }
        progress.takeBack();
        refused.getAndIncrement();
        return false;
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

    @Override
    public void listen(int slot, ApplyListener listener) {
        sink.listen(slot, listener);
    }
}
