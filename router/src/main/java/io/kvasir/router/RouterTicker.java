package io.kvasir.router;

import org.agrona.ErrorHandler;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.time.Duration;
import java.util.concurrent.locks.LockSupport;
import java.util.function.LongSupplier;

/**
 * Ticks on a thread of its own, whatever becomes of one tick: one that fails is reported, and the
 * next one comes {@value #RETRY_MS} ms later. It pauses for a period between ticks, or until it is
 * woken where the tick had nothing to do.
 */
final class RouterTicker implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(RouterTicker.class);
    private static final int RETRY_MS = 200;

    /** What is done again and again. */
    interface Tick {
        /**
         * Does it once.
         *
         * @return whether to tick again after the period; false to wait for {@link #wake}
         */
        boolean tick(long nowNs);
    }

    private final Duration period;
    private final LongSupplier clock;
    private final Tick tick;
    private final ErrorHandler errors;
    private final Thread thread;
    private volatile boolean woken;
    private volatile boolean waits;
    private volatile boolean closed;

    /** Prepares the thread; nothing happens before {@link #start}. */
    RouterTicker(String name, Duration period, LongSupplier clock, Tick tick, ErrorHandler errors) {
        this.period = period;
        this.clock = clock;
        this.tick = tick;
        this.errors = errors;
        thread = Thread.ofPlatform().daemon().name(name).unstarted(this::keepTicking);
    }

    void start() {
        thread.start();
    }

    /** Has a tick begin soon that sees all that the caller did before. */
    void wake() {
        woken = true;
        if (waits) { // stored before woken is read there: one of the two sees the other
            LockSupport.unpark(thread);
        }
    }

    private void keepTicking() {
        boolean failed = false;
        while (!closed && !Thread.currentThread().isInterrupted()) {
            woken = false;
            try {
                final boolean more = tick.tick(clock.getAsLong());
                failed = false;
                if (more) {
                    LockSupport.parkNanos(this, period.toNanos());
                } else {
                    awaitWake();
                }
            } catch (Throwable error) { // the next one may succeed: leases depend on it
                if (!failed) {
                    LOG.error("a tick of {} failed", thread.getName(), error);
                }
                failed = true;
                errors.onError(error);
                LockSupport.parkNanos(this, Duration.ofMillis(RETRY_MS).toNanos());
            }
        }
    }

    private void awaitWake() {
        waits = true;
        if (!woken && !closed) {
            LockSupport.park(this);
        }
        waits = false;
    }

    /** Ends the thread; does not wait for it. */
    @Override
    public void close() {
        closed = true;
        LockSupport.unpark(thread);
    }
}
