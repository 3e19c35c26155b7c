package io.kvasir.cli.simulate;

import io.kvasir.router.RouterConfig;
import io.kvasir.router.policy.Candidate;
import io.kvasir.router.policy.RoutingMode;
import io.kvasir.router.policy.WorkerCost;
import io.kvasir.router.settings.RouterSettings;

import java.util.Arrays;

/**
 * A cost that stands in place of the router's: {@code blocks that wait before the prompt + own
 * weight × blocks of the prompt that are not cached}, to which kinds of policies add something.
 */
class OwnCost implements Policy {
    private final String name;
    private final double ownWeight;

    /**
     * @param ownWeight what a block of the prompt itself counts; 1 = when the prompt would be
     *     computed, more = what it takes from later prompts counts too
     */
    OwnCost(String name, double ownWeight) {
        this.name = name;
        this.ownWeight = ownWeight;
    }

    @Override
    public final String name() {
        return name;
    }

    @Override
    public final void configure(RouterConfig.Builder router) {
        router.set(RouterSettings.MODE, RoutingMode.KV)
                .costModel((all, costs) -> Arrays.fill(costs, 0, all.count(), 0));
    }

    @Override
    public WorkerCost costOrNull(FleetView fleet, int[] prompt) {
        return one -> one.prefillBlocks() + more(fleet, one);
    }

    /** What is added to the blocks until the prompt would be computed. */
    double more(FleetView fleet, Candidate one) {
        return (ownWeight - 1) * ownBlocks(one);
    }

    /** Blocks of the prompt that the worker would compute. */
    static double ownBlocks(Candidate one) {
        return one.requestBlocks() - one.overlapBlocks();
    }
}
