package io.kvasir.cli.simulate;

import io.kvasir.router.RouterConfig;
import io.kvasir.router.policy.RoutingMode;
import io.kvasir.router.settings.RouterSettings;

/**
 * A policy that the router has: a mode and, in mode kv, a cost and the weight of a block to
 * prefill.
 *
 * @param name what tables call it
 */
record RouterPolicy(String name, RoutingMode mode, String cost, double overlapWeight)
        implements Policy {
    @Override
    public void configure(RouterConfig.Builder router) {
        router.set(RouterSettings.MODE, mode)
                .set(RouterSettings.SELECTION_POLICY, cost)
                .set(RouterSettings.OVERLAP_WEIGHT, overlapWeight);
    }
}
