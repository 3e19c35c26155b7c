package io.kvasir.pipeline.source;

import io.kvasir.pipeline.wire.ApplyListener;
import io.kvasir.pipeline.wire.KvBatch;
import io.kvasir.pipeline.wire.KvEventSink;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/**
 * A sink that waits for room, for messages that nothing can send again: what arrives meanwhile is
 * kept by the transport. Waits no longer than {@link #MOST_NS}, which a writer that works never
 * takes to make room.
 */
final class WaitingSink implements KvEventSink {
    static final long MOST_NS = TimeUnit.SECONDS.toNanos(5);
    private static final long PAUSE_NS = TimeUnit.MICROSECONDS.toNanos(100);

    private final KvEventSink sink;
    private volatile boolean closed;

    WaitingSink(KvEventSink sink) {
        this.sink = sink;
    }

    @Override
    public boolean offer(KvBatch batch) {
        if (sink.offer(batch)) {
            return true;
        }
        final long since = System.nanoTime();
        while (!closed && System.nanoTime() - since < MOST_NS) {
            LockSupport.parkNanos(PAUSE_NS);
            if (sink.offer(batch)) {
                return true;
            }
        }
        return false;
    }

    /** Waits no longer. Any thread. */
    void close() {
        closed = true;
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
