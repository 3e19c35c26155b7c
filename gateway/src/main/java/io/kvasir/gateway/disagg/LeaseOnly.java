package io.kvasir.gateway.disagg;

import io.kvasir.protocol.handoff.KvTransferParams;
import io.kvasir.router.disagg.PrefillBlocks;

import java.util.Iterator;
import java.util.LinkedHashSet;
import java.util.Set;
import java.util.function.LongSupplier;

/**
 * Notifies no engine: counts what is left to the engines' leases and when they end. A lease is
 * counted from here, a little after its engine began to; nothing prolongs it.
 */
final class LeaseOnly implements BlockRelease {
    /** Most prefills that are held one by one; those beyond count when they end. */
    static final int MOST_HELD = 1 << 17;

    private final LeaseReason why;
    private final long leaseNs;
    private final ReleaseCounters counters;
    private final LongSupplier clockNs;
    private final Set<Lease> held = new LinkedHashSet<>(); // guarded by itself; in order of ends

    /** One prefill. */
    private final class Lease implements PrefillBlocks.Held {
        private final LeaseReason reason;
        private final long endNs;
        private boolean ended; // guarded by held

        private Lease(LeaseReason reason, long endNs) {
            this.reason = reason;
            this.endNs = endNs;
        }

        @Override
        public void fetched() {
            synchronized (held) {
                if (!ended) {
                    ended = true;
                    held.remove(this);
                    counters.fetched.increment();
                }
            }
        }

        @Override
        public void free() {
            synchronized (held) {
                if (!ended) {
                    ended = true;
                    counters.leave(reason);
                }
            }
        }
    }

    /**
     * Makes one.
     *
     * @param why no engine is notified
     * @param leaseNs how long engines hold blocks
     * @param counters counts what becomes of prefills
     * @param clockNs the time; any thread
     */
    LeaseOnly(LeaseReason why, long leaseNs, ReleaseCounters counters, LongSupplier clockNs) {
        this.why = why;
        this.leaseNs = leaseNs;
        this.counters = counters;
        this.clockNs = clockNs;
    }

    @Override
    public PrefillBlocks.Held hold(KvTransferParams params) {
        return hold(why);
    }

    /** Holds a prefill whose engine is not notified for another reason. */
    PrefillBlocks.Held hold(LeaseReason reason) {
        final long nowNs = clockNs.getAsLong();
        final Lease lease = new Lease(reason, nowNs + leaseNs);
        synchronized (held) {
            forgetEnded(nowNs);
            if (held.size() < MOST_HELD) {
                held.add(lease);
            }
        }
        return lease;
    }

    /** Each lease is as long as the others, so those that end first are first. */
    private void forgetEnded(long nowNs) {
        final Iterator<Lease> first = held.iterator();
        while (first.hasNext() && first.next().endNs - nowNs <= 0) {
            first.remove();
        }
    }

    /** Prefills whose lease is not over and whose blocks are not fetched. */
    int held() {
        synchronized (held) {
            forgetEnded(clockNs.getAsLong());
            return held.size();
        }
    }

    @Override
    public BlockReleaseCounts counts() {
        return counters.with(held());
    }

    @Override
    public void close() {
        synchronized (held) {
            held.clear();
        }
    }
}
