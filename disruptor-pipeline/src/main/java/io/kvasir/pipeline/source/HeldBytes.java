package io.kvasir.pipeline.source;

import java.util.concurrent.atomic.AtomicLong;

/**
 * Bytes of the live messages that wait for answers in the streams of one event plane, all together.
 * Any thread.
 */
final class HeldBytes {
    private final long most;
    private final AtomicLong used = new AtomicLong();

    HeldBytes(long most) {
        this.most = most;
    }

    /** Counts bytes that wait from now on; fewer than 0 do not wait any more. */
    void add(long bytes) {
        used.getAndAdd(bytes);
    }

    /** Whether more wait than may. */
    boolean isExceeded() {
        return used.get() > most;
    }

    long used() {
        return used.get();
    }
}
