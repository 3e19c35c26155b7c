package io.kvasir.gateway;

import io.kvasir.gateway.config.GatewayConfig;

/** A part of a running gateway that does not read a changed setting by itself when it needs it. */
interface SettingsTaker {
    /**
     * Checks that the part could work with other settings.
     *
     * @throws IllegalArgumentException if not
     */
    default void check(GatewayConfig wanted) {
        // most work with whatever is in range
    }

    /** The running configuration has other values; what was checked is not refused. */
    void take(long version);
}
