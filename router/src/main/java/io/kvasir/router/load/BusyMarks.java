package io.kvasir.router.load;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.concurrent.atomic.AtomicReferenceArray;

/**
 * Which workers are left out for a while because they are full: their engine has refused a request,
 * or says so. A mark is a lease of time. When it is over, one request is let in as a probe, which
 * renews the lease for itself; the mark ends when that request is answered. A probe that comes to
 * nothing ends nothing: when its lease is over the next request is one.
 *
 * <pre>
 *   OPEN --{@link #mark}--> FULL --time--> HALF_OPEN --{@link #claim}: one caller--> FULL --{@link #answered}--> OPEN
 *                           ^                                                     |
 *                           +---------- {@link #mark} again, or time and another probe +
 * </pre>
 *
 * <p>Any thread; a method takes no lock and allocates nothing but the words of a mark. The state of
 * a slot is one word: when its lease is over, which also tells a mark from the one before it.
 */
public final class BusyMarks {
    /** In place of a mark. */
    public static final long NONE = 0;

    /** A mark that another caller has claimed. */
    public static final long LOST = -1;

    /** For how long a worker may ask to be left out: a minute. */
    public static final long MOST_ASKED_NS = TimeUnit.MINUTES.toNanos(1);

    private final AtomicLongArray untilNs;
    private final AtomicReferenceArray<String> why;
    private final AtomicInteger marked = new AtomicInteger();
    private final long leaseNs;

    /**
     * No mark.
     *
     * @param slots of workers
     * @param leaseNs how long a mark lasts; 0 for none at all
     */
    public BusyMarks(int slots, long leaseNs) {
        untilNs = new AtomicLongArray(slots);
        why = new AtomicReferenceArray<>(slots);
        this.leaseNs = leaseNs;
    }

    /** Whether any slot has a mark. */
    public boolean any() {
        return marked.get() > 0;
    }

    /** How many slots have a mark. */
    public int count() {
        return marked.get();
    }

    /**
     * Leaves a worker out from now on; a mark that it has begins anew.
     *
     * @param cause limit and value, for people
     */
    public void mark(int slot, long nowNs, String cause) {
        mark(slot, nowNs, 0, cause);
    }

    /**
     * Leaves a worker out from now on, for longer than the lease where it asks for that; a mark
     * that it has begins anew.
     *
     * @param askedNs for how long it asks; of more than {@link #MOST_ASKED_NS} that, and of less
     *     than the lease the lease
     * @param cause limit and value, for people
     */
    public void mark(int slot, long nowNs, long askedNs, String cause) {
        if (leaseNs > 0) {
            why.set(slot, cause);
            final long forNs = Math.max(leaseNs, Math.min(askedNs, MOST_ASKED_NS));
            if (untilNs.getAndSet(slot, until(nowNs, forNs)) == NONE) {
                marked.incrementAndGet();
            }
        }
    }

    private static long until(long nowNs, long forNs) {
        final long until = nowNs + forNs;
        return until == NONE || until == LOST ? 1 : until;
    }

    /** Whether a slot is marked, full or to be probed. */
    public boolean isMarked(int slot) {
        return untilNs.get(slot) != NONE;
    }

    /** Whether a worker is left out now. */
    public boolean isFull(int slot, long nowNs) {
        final long until = untilNs.get(slot);
        return until != NONE && until - nowNs > 0;
    }

    /** How long a worker is still left out; 0 where it is not. */
    public long leftNs(int slot, long nowNs) {
        final long until = untilNs.get(slot);
        return until == NONE ? 0 : Math.max(0, until - nowNs);
    }

    /** Why a slot was marked last; null where it never was. */
    public String whyOrNull(int slot) {
        return why.get(slot);
    }

    /**
     * Asks to send a request to a worker that was chosen. Of several callers at once one gets a
     * marked worker, and the others do not.
     *
     * @return {@link #NONE} where the worker has no mark; {@link #LOST} where it is left out; else
     *     the mark, for {@link #answered}: the request is the probe
     */
    public long claim(int slot, long nowNs) {
        final long until = untilNs.get(slot);
        if (until == NONE) {
            return NONE;
        }
        final long own = until(nowNs, leaseNs);
        return until - nowNs <= 0 && untilNs.compareAndSet(slot, until, own) ? own : LOST;
    }

    /** A probe was answered: the mark ends, unless the worker was marked again meanwhile. */
    public void answered(int slot, long mark) {
        if (untilNs.compareAndSet(slot, mark, NONE)) {
            marked.decrementAndGet();
        }
    }

    /** Ends the mark of a slot, whose worker is removed. */
    public void clear(int slot) {
        if (untilNs.getAndSet(slot, NONE) != NONE) {
            marked.decrementAndGet();
        }
    }
}
