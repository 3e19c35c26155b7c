package io.kvasir.router.queue;

import io.kvasir.router.settings.RouterSettings;
import io.kvasir.router.settings.Settings;
import io.kvasir.router.settings.SingleFlight;

/**
 * What is set of prompts that others follow.
 *
 * @param stride uncached blocks in common from which on one follows another
 * @param waitNs how long a prompt that is being computed counts, and how long others wait for it
 * @param most prompts that can be followed at once
 */
record FlightRules(SingleFlight mode, int stride, long waitNs, int most) {
    static FlightRules of(Settings settings) {
        return new FlightRules(
                settings.get(RouterSettings.SINGLE_FLIGHT),
                Math.ceilDiv(
                        settings.get(RouterSettings.SINGLE_FLIGHT_TOKENS),
                        settings.get(RouterSettings.BLOCK_SIZE)),
                settings.get(RouterSettings.SINGLE_FLIGHT_WAIT).toNanos(),
                settings.get(RouterSettings.SINGLE_FLIGHT_PROMPTS));
    }

    /** Whether any prompt is followed. */
    boolean isOn() {
        return mode != SingleFlight.OFF;
    }

    /** Whether those that follow wait. */
    boolean isWaiting() {
        return mode == SingleFlight.WAIT;
    }
}
