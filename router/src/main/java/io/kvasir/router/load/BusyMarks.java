package io.kvasir.router.load;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.concurrent.atomic.AtomicReferenceArray;

/**
 * Which workers are left out for a while because they are full: their engine has refused a request,
 * or says so. A mark is a lease of time. When it is over, one request is let in as a probe, which
 * renews the lease for itself; the mark ends when that request is answered. A probe that the worker
 * fails ends nothing: when its lease is over the next request is one. A probe that is withdrawn is
 * given back: the next request is one at once.
 *
 * <pre>
 *   OPEN --{@link #mark}--> FULL --time--> HALF_OPEN --{@link #claim}: one caller--> FULL --{@link #answered}--> OPEN
 *                           ^                      ^                              |
 *                           |                      +---------- {@link #giveBack} -------------+
 *                           +---------- {@link #mark} again, or time and another probe +
 * </pre>
 *
 * <p>Any probe's answer ends the mark that it was let in by, also after other probes have been let
 * in; no answer ends a mark that was made after its probe was let in.
 *
 * <p>Any thread; a method takes no lock and allocates nothing but the words of a mark. The state of
 * a slot is two words: the number of its mark, and when the lease is over. A mark writes the end
 * before the number, and a claim changes the end by a compare-and-set after it has read the number:
 * a probe never has the number of a mark that was made after it was let in.
 */
public final class BusyMarks {
    /** In place of a mark. */
    public static final long NONE = 0;

    /** A mark that another caller has claimed. */
    public static final long LOST = -1;

    /** For how long a worker may ask to be left out: a minute. */
    public static final long MOST_ASKED_NS = TimeUnit.MINUTES.toNanos(1);

    private final AtomicLongArray numbers;
    private final AtomicLongArray untilNs; // of the last mark
    private final AtomicReferenceArray<String> why;
    private final AtomicInteger marked = new AtomicInteger();
    private final AtomicLong last = new AtomicLong(NONE);
    private final long leaseNs;

    /**
     * No mark.
     *
     * @param slots of workers
     * @param leaseNs how long a mark lasts; 0 for none at all
     * @throws IllegalArgumentException if one is negative
     */
    public BusyMarks(int slots, long leaseNs) {
        if (slots < 0) {
            throw new IllegalArgumentException("slots=" + slots + " must be 0 or more");
        }
        if (leaseNs < 0) {
            throw new IllegalArgumentException("leaseNs=" + leaseNs + " must be 0 or more");
        }
        numbers = new AtomicLongArray(slots);
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
     * Leaves a worker out from now on; a mark that it has begins anew, and ends no sooner.
     *
     * @param cause limit and value, for people
     */
    public void mark(int slot, long nowNs, String cause) {
        mark(slot, nowNs, 0, cause);
    }

    /**
     * Leaves a worker out from now on, for longer than the lease where it asks for that; a mark
     * that it has begins anew, and ends no sooner. For one slot by one thread at a time.
     *
     * @param askedNs for how long it asks; of more than {@link #MOST_ASKED_NS} that, and of less
     *     than the lease the lease
     * @param cause limit and value, for people
     */
    public void mark(int slot, long nowNs, long askedNs, String cause) {
        if (leaseNs > 0) {
            why.set(slot, cause);
            final long forNs = Math.max(leaseNs, Math.min(askedNs, MOST_ASKED_NS));
            if (isMarked(slot)) {
                untilNs.accumulateAndGet(slot, nowNs + forNs, BusyMarks::later);
            } else {
                untilNs.set(slot, nowNs + forNs);
            }
            if (numbers.getAndSet(slot, last.incrementAndGet()) == NONE) {
                marked.incrementAndGet();
            }
        }
    }

    private static long later(long aNs, long bNs) {
        return aNs - bNs > 0 ? aNs : bNs;
    }

    /** Whether a slot is marked, full or to be probed. */
    public boolean isMarked(int slot) {
        return numbers.get(slot) != NONE;
    }

    /** Whether a worker is left out now. */
    public boolean isFull(int slot, long nowNs) {
        return leftNs(slot, nowNs) > 0;
    }

    /** How long a worker is still left out; 0 where it is not. */
    public long leftNs(int slot, long nowNs) {
        return isMarked(slot) ? Math.max(0, untilNs.get(slot) - nowNs) : 0;
    }

    /** Why a slot was marked last; null where its worker never was. */
    public String whyOrNull(int slot) {
        return why.get(slot);
    }

    /**
     * Asks to send a request to a worker that was chosen. Of several callers at once one gets a
     * marked worker, and the others do not.
     *
     * @return {@link #NONE} where the worker has no mark; {@link #LOST} where it is left out; else
     *     the mark, for {@link #answered} and {@link #giveBack}: the request is the probe
     */
    public long claim(int slot, long nowNs) {
        final long mark = numbers.get(slot); // before the end, which a later mark changes first
        if (mark == NONE) {
            return NONE;
        }
        final long until = untilNs.get(slot);
        return until - nowNs <= 0 && untilNs.compareAndSet(slot, until, nowNs + leaseNs)
                ? mark
                : LOST;
    }

    /** A probe was answered: the mark ends, unless the worker was marked again meanwhile. */
    public void answered(int slot, long mark) {
        if (numbers.compareAndSet(slot, mark, NONE)) {
            marked.decrementAndGet();
        }
    }

    /**
     * A probe was withdrawn: its lease ends, unless another one has been let in or the worker was
     * marked again meanwhile. A mark that is being made in this moment, and ends no later than the
     * probe's lease, may be cut short: its thread has read the clock before the claim. That costs
     * one probe.
     *
     * @param claimedNs when the probe was let in, as it was said to {@link #claim}
     */
    public void giveBack(int slot, long mark, long claimedNs) {
        if (numbers.get(slot) == mark) {
            final long endNs = claimedNs + leaseNs; // of this probe alone: of no later one
            untilNs.compareAndSet(slot, endNs, claimedNs);
        }
    }

    /** Ends the mark of a slot, whose worker is removed, and forgets why it was full. */
    public void clear(int slot) {
        why.set(slot, null);
        if (numbers.getAndSet(slot, NONE) != NONE) {
            marked.decrementAndGet();
        }
    }
}
