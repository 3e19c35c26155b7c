package io.kvasir.pipeline.events;

import io.kvasir.pipeline.wire.KvBatch;

import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReferenceArray;

/**
 * Batches that ring records do not need now: a ring holds memory for what waits in it, and for no
 * more than {@link #SPARES} batches besides. Any thread takes, the ring's consumer gives; neither
 * waits.
 */
final class SpareBatches {
    static final int SPARES = 128; // a power of two

    private final AtomicReferenceArray<KvBatch> spares = new AtomicReferenceArray<>(SPARES);
    private final AtomicInteger takes = new AtomicInteger();
    private final int initialWords;
    private final int retainedWords;
    private int gives;

    /**
     * @param initialWords room of a new batch
     * @param retainedWords most words that a spare batch keeps
     */
    SpareBatches(int initialWords, int retainedWords) {
        this.initialWords = initialWords;
        this.retainedWords = retainedWords;
    }

    /** A batch of unknown content; a new one when none is to spare. */
    KvBatch take() {
        final int from = takes.getAndIncrement() & SPARES - 1;
        final KvBatch spare = spares.getAndSet(from, null);
        return spare == null ? new KvBatch(initialWords) : spare;
    }

    /** Keeps a batch if there is room for it. Consumer only. */
    void give(KvBatch batch) {
        final int to = gives++ & SPARES - 1;
        if (spares.getPlain(to) == null) { // the consumer alone fills it
            batch.trim(retainedWords);
            spares.setRelease(to, batch);
        }
    }
}
