package io.kvasir.services.http;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/** A thread that does something again and again until it is closed; an error does not end it. */
public final class Housekeeping implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(Housekeeping.class);

    private final CountDownLatch closed = new CountDownLatch(1);
    private final Runnable work;
    private final Duration interval;

    private Housekeeping(Duration interval, Runnable work) {
        this.interval = interval;
        this.work = work;
    }

    /**
     * Starts the thread.
     *
     * @param name of the thread
     * @param interval between two times
     * @param work what to do
     */
    public static Housekeeping start(String name, Duration interval, Runnable work) {
        final Housekeeping started = new Housekeeping(interval, work);
        Thread.ofPlatform().daemon().name(name).start(started::run);
        return started;
    }

    private void run() {
        try {
            while (!closed.await(interval.toNanos(), TimeUnit.NANOSECONDS)) {
                doWork();
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private void doWork() {
        try {
            work.run();
        } catch (RuntimeException e) {
            if (closed.getCount() > 0) {
                LOG.error("{} failed", Thread.currentThread().getName(), e);
            }
        }
    }

    /** Ends the thread after what it does now; does not wait for it. */
    @Override
    public void close() {
        closed.countDown();
    }
}
