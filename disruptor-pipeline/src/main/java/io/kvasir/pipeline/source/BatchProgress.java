package io.kvasir.pipeline.source;

import java.util.concurrent.atomic.AtomicLongFieldUpdater;

/**
 * How far one stream's batches have come: the number of those that were offered to the index, and
 * of those that the applying thread is done with, whatever became of them. Both are in one object,
 * because a decision that asks whether a worker's view is exact has to read them from memory.
 *
 * <p>Offers are guarded by the stream's lock, one thread applies, any thread reads. A reader that
 * wants to know whether all is applied reads {@link #applied} first.
 */
final class BatchProgress {
    private static final AtomicLongFieldUpdater<BatchProgress> OFFERED =
            AtomicLongFieldUpdater.newUpdater(BatchProgress.class, "offered");
    private static final AtomicLongFieldUpdater<BatchProgress> APPLIED =
            AtomicLongFieldUpdater.newUpdater(BatchProgress.class, "applied");

    private volatile long offered;
    private volatile long applied;

    /** Before the offer, so that no reader sees more batches applied than offered. */
    void offer() {
        OFFERED.getAndIncrement(this);
    }

    /** The batch found no room. */
    void takeBack() {
        OFFERED.getAndDecrement(this);
    }

    void apply() {
        APPLIED.getAndIncrement(this);
    }

    long offered() {
        return offered;
    }

    long applied() {
        return applied;
    }

    boolean isApplied() {
        final long done = applied; // before the offered ones
        return done == offered;
    }
}
