package io.kvasir.gateway.proxy;

import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.upstream.UpstreamFault;
import io.kvasir.router.settings.Settings;

import java.util.concurrent.ThreadLocalRandom;
import java.util.function.DoubleSupplier;

/**
 * Says whether and when a request is tried again. One per exchange and leg, one attempt at a time;
 * knows no sockets and no clock.
 */
final class RetryPolicy {
    /**
     * What is set of it.
     *
     * @param retries further attempts after the first
     * @param backoffNs upper bound of the wait before the first of them, doubled for each
     * @param maxBackoffNs bound of the doubling
     * @param afterTimeout whether a request that was sent in full is sent again after a timeout
     */
    record Rules(int retries, long backoffNs, long maxBackoffNs, boolean afterTimeout) {
        /** The rules of one version of the settings. */
        static Rules of(Settings settings) {
            return new Rules(
                    settings.get(GatewaySettings.RETRIES),
                    settings.get(GatewaySettings.RETRY_BACKOFF).toNanos(),
                    settings.get(GatewaySettings.RETRY_BACKOFF_MAX).toNanos(),
                    settings.get(GatewaySettings.RETRY_AFTER_TIMEOUT));
        }
    }

    private final Rules rules;
    private final DoubleSupplier random;
    private int attempts;

    /**
     * @param random gives 0 (inclusive) to 1 (exclusive)
     */
    RetryPolicy(Rules rules, DoubleSupplier random) {
        this.rules = rules;
        this.random = random;
    }

    /** One whose waits are drawn at random. */
    static RetryPolicy of(Rules rules) {
        return new RetryPolicy(rules, () -> ThreadLocalRandom.current().nextDouble());
    }

    /** An attempt begins. */
    void begun() {
        attempts++;
    }

    /** Number of the attempt under way, 0 before the first. */
    int attempt() {
        return attempts;
    }

    /** Attempts at most. */
    int limit() {
        return rules.retries + 1;
    }

    /**
     * Whether an attempt that failed before the client got a byte is followed by another one. One
     * that was answered, but was not read to its end because memory was exhausted, is not.
     *
     * @param sent whether the worker has the whole request
     */
    boolean allowsAnother(UpstreamFault fault, boolean sent) {
        return attempts <= rules.retries
                && fault != UpstreamFault.MEMORY
                && fault != UpstreamFault.UNSENDABLE
                && (fault != UpstreamFault.TIMEOUT || !sent || rules.afterTimeout);
    }

    /** How long to wait before the next attempt: half of it at random, so that many spread. */
    long backoffNs() {
        final int doublings = Math.min(Math.max(attempts - 1, 0), 62);
        final boolean bounded = rules.backoffNs > rules.maxBackoffNs >> doublings;
        final long bound = bounded ? rules.maxBackoffNs : rules.backoffNs << doublings;
        return (long) (bound * (1 - random.getAsDouble() / 2));
    }
}
