package io.kvasir.sim.batch;

import java.util.concurrent.locks.LockSupport;

/** Where the thread of one HTTP request waits for news of its requests in the step loop. */
public final class Gate {
    private final Thread waiter = Thread.currentThread();
    private volatile boolean news;
    private boolean marked; // step loop only

    /** Wakes the waiter; any thread. */
    void signal() {
        news = true;
        LockSupport.unpark(waiter);
    }

    /**
     * Waits for a signal since the last call, at most so long; the waiter only. May return early.
     */
    public void await(long nanos) {
        if (!news) {
            LockSupport.parkNanos(this, nanos);
        }
        news = false;
    }

    /** Remembers to be signalled at the end of this pass of the loop; true the first time. */
    boolean mark() {
        final boolean first = !marked;
        marked = true;
        return first;
    }

    /** Lets the next {@link #mark} be the first again. */
    public void unmark() {
        marked = false;
    }
}
