package io.kvasir.router.queue;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.util.concurrent.locks.LockSupport;
import java.util.function.LongSupplier;

/** Steps a queue when it is woken, and when something is due; parked else. */
final class QueueThread implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(QueueThread.class);
    private static final long RETRY_NS = 200_000_000;

    private final LongSupplier step;
    private final Thread thread;
    private volatile boolean woken;
    private volatile boolean waits;
    private volatile boolean closed;

    /**
     * @param step steps once; answers how long to wait at most until the next time
     */
    QueueThread(LongSupplier step) {
        this.step = step;
        thread = Thread.ofPlatform().daemon().name("kvasir-router-queue").unstarted(this::run);
    }

    void start() {
        thread.start();
    }

    /** Has a step begin soon that sees all that the caller did before. */
    void wake() {
        woken = true;
        if (waits) { // stored before woken is read there: one of the two sees the other
            LockSupport.unpark(thread);
        }
    }

    private void run() {
        while (!closed) {
            woken = false;
            long pauseNs;
            try {
                pauseNs = step.getAsLong();
            } catch (Throwable error) { // a callback's, or a defect: others wait still
                LOG.error("a step of the queue failed", error);
                pauseNs = RETRY_NS;
            }
            waits = true;
            if (!woken && !closed && pauseNs > 0) {
                LockSupport.parkNanos(this, pauseNs);
            }
            waits = false;
        }
    }

    /** Ends the thread; does not wait for it. */
    @Override
    public void close() {
        closed = true;
        LockSupport.unpark(thread);
    }
}
