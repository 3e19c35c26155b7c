package io.kvasir.cli.simulate;

import io.kvasir.router.Decision;
import io.kvasir.router.RouterConfig;
import io.kvasir.router.policy.WorkerCost;

/** A way to choose workers that is judged beside others. Made for one run; one thread. */
interface Policy {
    /** What tables call it. */
    String name();

    /** Sets what the router is to do. */
    void configure(RouterConfig.Builder router);

    /**
     * What it adds to the router's cost of the next request.
     *
     * @param prompt token ids
     * @return null for nothing
     */
    default WorkerCost costOrNull(FleetView fleet, int[] prompt) {
        return null;
    }

    /** A request was booked. */
    default void decided(FleetView fleet, int worker, Decision decision) {}
}
