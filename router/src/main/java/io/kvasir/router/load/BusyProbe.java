package io.kvasir.router.load;

import java.util.concurrent.atomic.AtomicBoolean;

/**
 * A request that a full worker is tried with: what {@link BusyMarks#claim} has let in. Any thread;
 * of several calls the first counts, and none counts once the worker was marked again.
 */
public final class BusyProbe {
    private final BusyMarks marks;
    private final int slot;
    private final long mark;
    private final long claimedNs;
    private final AtomicBoolean over = new AtomicBoolean(); // a call has counted

    /**
     * A probe that was let in.
     *
     * @param mark what the claim gave
     * @param claimedNs when the claim was, as it was said to it
     */
    public BusyProbe(BusyMarks marks, int slot, long mark, long claimedNs) {
        this.marks = marks;
        this.slot = slot;
        this.mark = mark;
        this.claimedNs = claimedNs;
    }

    /** The worker takes requests again. */
    public void answered() {
        if (over.compareAndSet(false, true)) {
            marks.answered(slot, mark);
        }
    }

    /** It says nothing of the worker: the next request is the probe, without a wait. */
    public void giveBack() {
        if (over.compareAndSet(false, true)) {
            marks.giveBack(slot, mark, claimedNs);
        }
    }
}
