package io.kvasir.cli.simulate;

import io.kvasir.router.policy.Candidate;

/**
 * Weights by load: the longer the queue, the less a hit counts beside it, as the time to the first
 * token counts squared besides.
 */
final class ConvexCost extends OwnCost {
    private static final double OWN_WEIGHT = 5;
    private static final double SQUARE_BLOCKS = 6_250; // 10 s at 10,000 tokens/s in blocks of 16

    ConvexCost(String name) {
        super(name, OWN_WEIGHT);
    }

    @Override
    double more(FleetView fleet, Candidate one) {
        final double blocks = one.prefillBlocks();
        return super.more(fleet, one) + blocks * blocks / SQUARE_BLOCKS;
    }
}
