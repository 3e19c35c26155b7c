package io.kvasir.router;

import io.kvasir.core.closing.Uninterrupted;
import io.kvasir.core.memory.ClosedException;
import io.kvasir.pipeline.events.IndexPipeline;
import io.kvasir.pipeline.source.EventPlane;

import org.agrona.ErrorHandler;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.time.Clock;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;

/**
 * Saves a router's prefixes from time to time, and once more when it is closed, on a thread of its
 * own. A save that fails is reported and tried again at the next time.
 */
final class StateKeeper implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(StateKeeper.class);
    private static final String THREAD = "kvasir-state";

    private final SavedPrefixes saved;
    private final Supplier<WorkerSet> workers;
    private final IndexPipeline pipeline;
    private final EventPlane planeOrNull; // null where nothing of it is saved here
    private final Duration period;
    private final Duration closeLimit;
    private final ErrorHandler errors;
    private final CountDownLatch closing = new CountDownLatch(1);
    private final Thread thread;
    private final LastFailure lastFailure = new LastFailure(); // of the thread alone
    private volatile boolean givenUp; // the close waits no longer

    /**
     * @param planeOrNull whose workers are saved, too; null for none
     * @param period between two saves; zero to save at the close alone
     * @param closeLimit how long the close waits for the last save
     */
    StateKeeper(
            SavedPrefixes saved,
            Supplier<WorkerSet> workers,
            IndexPipeline pipeline,
            EventPlane planeOrNull,
            Duration period,
            Duration closeLimit,
            ErrorHandler errors) {
        this.saved = saved;
        this.workers = workers;
        this.pipeline = pipeline;
        this.planeOrNull = planeOrNull;
        this.period = period;
        this.closeLimit = closeLimit;
        this.errors = errors;
        this.thread = Thread.ofPlatform().daemon().name(THREAD).unstarted(this::run);
    }

    void start() {
        thread.start();
    }

    private void run() {
        final long waitNs = period.isZero() ? Long.MAX_VALUE : period.toNanos();
        try {
            while (!closing.await(waitNs, TimeUnit.NANOSECONDS)) {
                save();
                var _ = Thread.interrupted(); // a store may have left one, which would be the end
            }
            if (!givenUp) {
                save();
            }
        } catch (InterruptedException e) {
            LOG.debug("{}: given up", THREAD, e);
        } finally {
            saved.close();
        }
    }

    private void save() {
        try {
            final long startNs = System.nanoTime();
            final int count =
                    saved.save(
                            List.of(workers.get().workers()),
                            pipeline,
                            planeOrNull,
                            Clock.systemUTC().millis());
            if (lastFailure.ended()) {
                LOG.info("snapshots are saved in {} again", saved);
            }
            if (count > 0) {
                LOG.debug(
                        "snapshots of {} workers saved in {} ms",
                        count,
                        TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - startNs));
            }
        } catch (ClosedException e) {
            LOG.warn("no snapshot was saved: {}", e.getMessage());
        } catch (Throwable t) {
            // also of a heap that is full: what was saved before is there still, and the next save
            // may find room
            if (lastFailure.isNew(t)) {
                LOG.error(
                        "no snapshot was saved in {}: {}; it is tried again",
                        saved,
                        lastFailure.reason());
            }
            LOG.debug("no snapshot was saved in {}", saved, t);
            errors.onError(t);
        }
    }

    /** Whether the caller is its thread: code of the store. */
    boolean isCurrent() {
        return Thread.currentThread().equals(thread);
    }

    /**
     * Not for its own thread. Saves once more and gives the store back; waits for that, interrupted
     * or not, but not for longer than allowed.
     */
    @Override
    public void close() {
        closing.countDown();
        if (thread.getState() == Thread.State.NEW) {
            saved.close();
            return;
        }
        final long startNs = System.nanoTime();
        final boolean ended =
                Uninterrupted.call(
                        () -> thread.join(closeLimit.minusNanos(System.nanoTime() - startNs)));
        if (!ended) {
            LOG.warn("the last snapshot takes longer than {} ms", closeLimit.toMillis());
            givenUp = true; // before the interrupt, which a save may take
            thread.interrupt();
        }
    }
}
