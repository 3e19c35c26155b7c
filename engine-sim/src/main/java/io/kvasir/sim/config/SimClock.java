package io.kvasir.sim.config;

import java.time.Instant;
import java.time.InstantSource;
import java.util.concurrent.locks.LockSupport;

/**
 * The time that engines and load drivers live in: the machine's, or a {@link VirtualClock}'s. Any
 * thread.
 *
 * <p>A thread that called {@link #parkUntil} is an actor until it calls {@link #leave}: virtual
 * time stands still while an actor does something else than wait for it.
 */
public interface SimClock extends InstantSource {
    /** A due time that never comes. */
    long NEVER = Long.MAX_VALUE;

    /**
     * Reads the time that passes.
     *
     * @return nanoseconds from an origin that is the clock's own, as {@link System#nanoTime()}
     */
    long nanoTime();

    /**
     * Parks the calling thread until a moment; ends early when the thread is unparked or
     * interrupted, and may end early for no reason, as {@link LockSupport#parkNanos(Object, long)}.
     *
     * @param blocker what thread dumps name as waited for
     * @param timeNs by {@link #nanoTime()}, or {@link #NEVER}
     */
    void parkUntil(Object blocker, long timeNs);

    /**
     * Sleeps until a moment, as an actor; returns at once when it is over.
     *
     * @param timeNs by {@link #nanoTime()}
     * @throws InterruptedException if the calling thread is interrupted meanwhile
     */
    default void sleepUntil(long timeNs) throws InterruptedException {
        do {
            if (Thread.interrupted()) {
                throw new InterruptedException();
            }
            parkUntil(this, timeNs);
        } while (nanoTime() < timeNs);
    }

    /** The calling thread waits for something else than time from now on, or ends. */
    void leave();

    /**
     * Returns the machine's time.
     *
     * @return the one clock that follows {@link System#nanoTime()}
     */
    static SimClock system() {
        return SystemClock.INSTANCE;
    }

    /** The machine's time. */
    enum SystemClock implements SimClock {
        /** There is one. */
        INSTANCE;

        @Override
        public long nanoTime() {
            return System.nanoTime();
        }

        @Override
        public Instant instant() {
            return Instant.now();
        }

        @Override
        public void parkUntil(Object blocker, long timeNs) {
            if (timeNs == NEVER) {
                LockSupport.park(blocker);
            } else {
                LockSupport.parkNanos(blocker, timeNs - System.nanoTime());
            }
        }

        @Override
        public void leave() {}
    }
}
