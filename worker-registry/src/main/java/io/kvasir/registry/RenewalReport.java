package io.kvasir.registry;

import java.time.Duration;
import java.util.HashSet;
import java.util.Set;

/** Says to a listener what becomes of renewals, each thing once. One thread: that which renews. */
final class RenewalReport {
    private static final int MOST_REASONS = 8; // of one outage

    private final Registrar.Listener listener;
    private final Set<String> reasons = new HashSet<>(); // that were said since the last renewal
    private long renewedNs;
    private boolean lapsed;

    RenewalReport(Registrar.Listener listener, long nowNs) {
        this.listener = listener;
        renewedNs = nowNs;
    }

    /** Nothing is registered. */
    void nothing(long nowNs) {
        reasons.clear();
        lapsed = false;
        renewedNs = nowNs;
    }

    /** All is renewed. */
    void renewed(long nowNs) {
        if (!reasons.isEmpty()) {
            listener.renewed(lapsed);
        }
        nothing(nowNs);
    }

    /** Something is not renewed, and is tried again. */
    void failed(RegistryException cause, long nowNs, Duration ttl) {
        if (reasons.size() < MOST_REASONS && reasons.add(String.valueOf(cause.getMessage()))) {
            listener.notRenewed(cause);
        }
        if (!lapsed && nowNs - renewedNs >= ttl.toNanos()) {
            lapsed = true;
            listener.lapsed(ttl);
        }
    }
}
