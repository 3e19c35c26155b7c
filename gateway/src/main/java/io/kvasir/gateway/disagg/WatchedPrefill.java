package io.kvasir.gateway.disagg;

import io.kvasir.nixl.vllm.PrefillLease;
import io.kvasir.protocol.handoff.KvTransferParams;
import io.kvasir.router.disagg.PrefillBlocks;

import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;

/**
 * A finished prefill whose blocks are watched. Its end may be said by any thread; all else is of
 * the thread that watches.
 */
final class WatchedPrefill implements PrefillBlocks.Held {
    /** What is known of the blocks' end. */
    enum End {
        /** Nothing yet. */
        OPEN,
        /** A decode worker has fetched them. */
        FETCHED,
        /** No decode worker will. */
        FREE
    }

    private final KvTransferParams params;
    private final long receivedNs;
    private final Consumer<WatchedPrefill> changed;
    private final AtomicReference<End> end = new AtomicReference<>(End.OPEN);

    // of the watching thread
    private boolean taken;
    private boolean counted;
    private PrefillLease lease; // null before the contact with its engine
    private LeaseReason lost; // null while its blocks can be freed from here

    /**
     * Makes one.
     *
     * @param params what the prefill worker answered
     * @param receivedNs when
     * @param changed takes it when its end is said; any thread, must not block
     */
    WatchedPrefill(KvTransferParams params, long receivedNs, Consumer<WatchedPrefill> changed) {
        this.params = params;
        this.receivedNs = receivedNs;
        this.changed = changed;
    }

    @Override
    public void fetched() {
        end(End.FETCHED);
    }

    @Override
    public void free() {
        end(End.FREE);
    }

    private void end(End how) {
        if (end.compareAndSet(End.OPEN, how)) {
            changed.accept(this);
        }
    }

    End end() {
        return end.get();
    }

    KvTransferParams params() {
        return params;
    }

    long receivedNs() {
        return receivedNs;
    }

    String engineId() {
        return params.remoteEngineId().orElseThrow();
    }

    String requestId() {
        return params.remoteRequestId().orElseThrow();
    }

    /** True the first time only. */
    boolean take() {
        final boolean first = !taken;
        taken = true;
        return first;
    }

    /** True the first time only: its end is counted once. */
    boolean count() {
        final boolean first = !counted;
        counted = true;
        return first;
    }

    boolean isCounted() {
        return counted;
    }

    boolean isLeased() {
        return lease != null;
    }

    void leased(PrefillLease byEngine) {
        lease = byEngine;
    }

    /** When its engine gives the blocks up, as far as is known. */
    long expiresAtNs(long leaseNs) {
        return lease == null ? receivedNs + leaseNs : lease.expiresAtNs();
    }

    /** Why its blocks cannot be freed from here any more; null while they can. */
    LeaseReason lost() {
        return lost;
    }

    void lose(LeaseReason why) {
        lost = why;
    }
}
