package io.kvasir.sim.config;

import java.time.Instant;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.locks.LockSupport;

/**
 * Time that moves only when {@link #advance} or {@link #advanceToNext} is called, from one due
 * moment to the next: what happens at a moment depends on the actors alone, not on how fast the
 * machine is.
 *
 * <p>Time waits for actors (see {@link SimClock}) that are awake, so all they do at a moment is
 * done before the next one. It does not wait for anything else, such as bytes in a socket: the
 * caller that moves the time waits for those first. Any thread may read; one at a time moves.
 */
public final class VirtualClock implements SimClock {
    private final Object lock = new Object();
    private final Map<Thread, Long> parked = new HashMap<>();
    private final Set<Thread> awake = new HashSet<>();
    private volatile long nowNs;

    /** A clock that stands at 0, which is the epoch. */
    public VirtualClock() {}

    @Override
    public long nanoTime() {
        return nowNs;
    }

    @Override
    public Instant instant() {
        return Instant.EPOCH.plusNanos(nowNs);
    }

    @Override
    public void parkUntil(Object blocker, long timeNs) {
        final Thread self = Thread.currentThread();
        synchronized (lock) {
            parked.put(self, timeNs);
            awake.remove(self);
            lock.notifyAll();
        }
        if (timeNs > nowNs) {
            LockSupport.park(blocker);
        }
        synchronized (lock) {
            parked.remove(self);
            awake.add(self);
        }
    }

    @Override
    public void leave() {
        synchronized (lock) {
            awake.remove(Thread.currentThread());
            lock.notifyAll();
        }
    }

    /**
     * Moves on by a duration, through every due moment inside it, and lets the actors do what they
     * do at each.
     *
     * @param nanos not negative
     * @throws InterruptedException if the calling thread is interrupted while actors are awake
     */
    public void advance(long nanos) throws InterruptedException {
        final long endNs = nowNs + nanos;
        for (long dueNs = settle(); dueNs <= endNs; dueNs = settle()) {
            moveTo(dueNs);
        }
        nowNs = endNs;
    }

    /**
     * Jumps to the next due moment and lets the actors do what they do at it.
     *
     * @return false if no actor waits for a moment, so that time stands still
     * @throws InterruptedException if the calling thread is interrupted while actors are awake
     */
    public boolean advanceToNext() throws InterruptedException {
        final long dueNs = settle();
        if (dueNs == NEVER) {
            return false;
        }
        moveTo(dueNs);
        settle();
        return true;
    }

    /** Waits until no actor is awake; when the first of them is due, or {@link #NEVER}. */
    private long settle() throws InterruptedException {
        synchronized (lock) {
            while (!awake.isEmpty()) {
                lock.wait();
            }
            return parked.values().stream().mapToLong(Long::longValue).min().orElse(NEVER);
        }
    }

    private void moveTo(long dueNs) {
        synchronized (lock) {
            nowNs = Math.max(nowNs, dueNs);
            parked.forEach(
                    (thread, timeNs) -> {
                        if (timeNs <= nowNs) {
                            awake.add(thread); // before it runs, so that time waits for it
                            LockSupport.unpark(thread);
                        }
                    });
            parked.keySet().removeAll(awake);
        }
    }
}
