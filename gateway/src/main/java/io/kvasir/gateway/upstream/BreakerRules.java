package io.kvasir.gateway.upstream;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;

/**
 * When a server is left out and when it is used again.
 *
 * @param faults different requests that must fail within the window
 * @param faultPercent share of the window's answers that they must be
 * @param windowNs length of the window
 * @param holdNs how long a server that was left out for its answers stays so at least
 * @param successes answers that end a trial
 * @param probeFaults failed probes in a row after which it is down
 * @param probeSuccesses good probes in a row after which a server that was down is tried again
 */
record BreakerRules(
        int faults,
        int faultPercent,
        long windowNs,
        long holdNs,
        int successes,
        int probeFaults,
        int probeSuccesses) {

    static BreakerRules of(GatewayConfig config) {
        return new BreakerRules(
                config.get(GatewaySettings.BREAKER_FAULTS),
                config.get(GatewaySettings.BREAKER_FAULT_PERCENT),
                config.get(GatewaySettings.BREAKER_WINDOW).toNanos(),
                config.get(GatewaySettings.BREAKER_HOLD).toNanos(),
                config.get(GatewaySettings.BREAKER_SUCCESSES),
                config.get(GatewaySettings.HEALTH_FAULTS),
                config.get(GatewaySettings.HEALTH_SUCCESSES));
    }
}
