package io.kvasir.router.queue;

import io.kvasir.pipeline.source.IndexState;
import io.kvasir.router.KvRouter;
import io.kvasir.router.Lease;
import io.kvasir.router.PromptEnd;
import io.kvasir.router.Worker;

import java.util.HashSet;
import java.util.Set;

/**
 * A prompt that a worker is computing, or has just computed, and that others begin with, too. Keeps
 * the lease alive until it is over: {@code single-flight-wait-ms} at most.
 */
final class Flight {
    /** How far it is. */
    enum Phase {
        COMPUTING,
        /** The worker has the blocks; its events need not say so yet. */
        COMPUTED,
        /** Given up before it was computed, or too long ago. */
        OVER
    }

    private static final long NOT_SEEN = -2;

    final Worker worker;
    final long endsNs;
    final long[] keys; // of its beginnings, each a stride longer
    private final int heldBefore; // leading blocks that the worker had when it was booked
    private final KvRouter router;
    private final Lease lease;
    private final long number;
    private volatile long endPosition = NOT_SEEN; // of the end of its prefill, in the booking ring
    private volatile Lease last; // of those that followed to its worker; null before
    final Set<Entry> followers = new HashSet<>(); // guarded by the waiting room

    Flight(KvRouter router, Lease lease, int heldBefore, long[] keys, long endsNs) {
        this.router = router;
        this.lease = lease;
        this.heldBefore = heldBefore;
        this.keys = keys;
        this.endsNs = endsNs;
        worker = lease.worker();
        number = lease.requestId();
    }

    /**
     * Whether its worker is taken to hold the prompt since it was booked, while it computes it:
     * that is no answer of the engine.
     */
    boolean isPredicted(long nowNs) {
        return worker.state() == IndexState.PREDICTED && phase(nowNs) == Phase.COMPUTING;
    }

    /** Leading blocks that its worker had before it. */
    int heldBefore() {
        return heldBefore;
    }

    /** A request that follows it was booked. */
    void followedBy(Lease booked) {
        if (booked.worker() == worker) {
            last = booked;
        }
    }

    /**
     * Whether the load of its worker still has a prompt to prefill that is computed: the writer of
     * bookings is behind. To be asked in phase {@link Phase#COMPUTED}.
     */
    boolean countsAsPrefill() {
        if (endPosition == NOT_SEEN) { // another thread's position may replace it by a later one
            endPosition = router.bookingPipeline().position();
        }
        return !router.bookingPipeline().isApplied(endPosition);
    }

    /** Whether a request that begins with its blocks runs on its worker, as far as is known. */
    boolean isInUse() {
        final Lease follower = last;
        return (lease.requestId() == number && lease.isOpen())
                || (follower != null && follower.isOpen());
    }

    Phase phase(long nowNs) {
        if (nowNs - endsNs >= 0) {
            return Phase.OVER;
        }
        if (router.isPrefilling(number)) {
            return Phase.COMPUTING;
        }
        // its end is recorded after the booking has changed: while it is open it was computed
        final boolean mine = lease.requestId() == number;
        return mine && (lease.isOpen() || lease.promptEnd() != PromptEnd.NOT_YET)
                ? Phase.COMPUTED
                : Phase.OVER;
    }
}
