package io.kvasir.nixl.vllm;

import java.util.concurrent.TimeUnit;

/**
 * The terms on which a vLLM server holds the blocks of a finished prefill; both sides must agree on
 * them. As in vLLM: a heartbeat is sent every sixth of the lease, and each makes the lease end no
 * earlier than two thirds of it from then; whole seconds, rounded down.
 *
 * @param leaseSeconds how long blocks are held after the prefill, {@code kv_lease_duration} of the
 *     server's {@code kv_connector_extra_config}; at least 6
 * @param marginNs how long before its end a lease counts as expired: a read that starts later might
 *     not end in time
 */
public record LeaseTerms(int leaseSeconds, long marginNs) {
    /** vLLM's 30 s, with its own safety margin of 5 s. */
    public static final LeaseTerms DEFAULT = new LeaseTerms(30, TimeUnit.SECONDS.toNanos(5));

    private static final int HEARTBEATS_PER_LEASE = 6;

    /**
     * Checks the values.
     *
     * @throws IllegalArgumentException naming the value that cannot be
     */
    public LeaseTerms {
        if (leaseSeconds < HEARTBEATS_PER_LEASE) {
            throw new IllegalArgumentException(
                    "leaseSeconds cannot be " + leaseSeconds + "; at least 6");
        }
        if (marginNs < 0 || marginNs >= TimeUnit.SECONDS.toNanos(leaseSeconds)) {
            throw new IllegalArgumentException(
                    "marginNs cannot be " + marginNs + " with a lease of " + leaseSeconds + " s");
        }
    }

    /**
     * How long blocks are held after the prefill.
     *
     * @return nanoseconds
     */
    public long leaseNs() {
        return TimeUnit.SECONDS.toNanos(leaseSeconds);
    }

    /**
     * Time between heartbeats.
     *
     * @return nanoseconds
     */
    public long heartbeatNs() {
        return TimeUnit.SECONDS.toNanos(leaseSeconds / HEARTBEATS_PER_LEASE);
    }

    /**
     * What a lease has left at least after a heartbeat.
     *
     * @return nanoseconds
     */
    public long extensionNs() {
        return TimeUnit.SECONDS.toNanos(leaseSeconds * 2L / 3);
    }
}
