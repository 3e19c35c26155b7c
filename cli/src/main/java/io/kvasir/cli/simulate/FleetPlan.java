package io.kvasir.cli.simulate;

import io.kvasir.sim.config.SimConfig;

/**
 * What a simulated fleet is: equal engines, and how late the router gets their events.
 *
 * @param workers engines
 * @param engine sizes and rates of each
 * @param eventDelayMs time from the end of a step until the router has its event message
 */
public record FleetPlan(int workers, SimConfig engine, double eventDelayMs) {
    /** The most workers: what is judged is a choice among some, not the router's limits. */
    public static final int MAX_WORKERS = 1024;

    /** Longest delay of an event: an hour. */
    public static final double MAX_DELAY_MS = 3_600_000;

    /** Checks the values. */
    public FleetPlan {
        if (workers < 1 || workers > MAX_WORKERS) {
            throw new IllegalArgumentException(
                    "workers=" + workers + " is outside 1.." + MAX_WORKERS);
        }
        if (!(eventDelayMs >= 0 && eventDelayMs <= MAX_DELAY_MS)) {
            throw new IllegalArgumentException(
                    "eventDelayMs=" + eventDelayMs + " is outside 0.." + MAX_DELAY_MS);
        }
    }
}
