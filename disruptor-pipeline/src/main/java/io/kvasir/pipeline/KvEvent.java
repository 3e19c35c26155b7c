package io.kvasir.pipeline;

import io.kvasir.pipeline.wire.KvBatch;

/** One record of the event ring: a batch, or the order to retire a slot. */
final class KvEvent {
    final KvBatch batch;
    boolean retire;
    Runnable whenSwept;

    KvEvent(int initialWords) {
        batch = new KvBatch(initialWords);
    }

    void release(int retainedWords) {
        batch.trim(retainedWords);
        retire = false;
        whenSwept = null;
    }
}
