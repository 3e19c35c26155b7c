package io.kvasir.pipeline.zmtp;

import java.util.concurrent.atomic.AtomicLong;

/** A limit of bytes that several holders share. Any thread. */
public final class ByteBudget {
    private final long limit;
    private final AtomicLong used = new AtomicLong();

    /**
     * Creates a budget of which nothing is used.
     *
     * @param limitBytes most bytes at a time
     */
    public ByteBudget(long limitBytes) {
        limit = limitBytes;
    }

    /** Takes bytes; false, and none is taken, if that would exceed the limit. */
    public boolean take(long bytes) {
        if (used.addAndGet(bytes) <= limit) {
            return true;
        }
        used.addAndGet(-bytes);
        return false;
    }

    /** Returns bytes that were taken. */
    public void give(long bytes) {
        used.addAndGet(-bytes);
    }

    /** Bytes taken now. */
    public long used() {
        return used.get();
    }

    /** Most bytes at a time. */
    public long limit() {
        return limit;
    }
}
