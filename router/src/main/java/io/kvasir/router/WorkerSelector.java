package io.kvasir.router;

import java.util.concurrent.atomic.AtomicLong;

/**
 * Chooses a worker among those of a {@link Selection}. Any thread, each with its own selection.
 *
 * <p>With the linear cost and no temperature, workers that hold the same of the prompt, or nothing
 * of it, differ by their load alone, and the copy of the loads knows the least loaded of every 64.
 * So only groups of 64 with a worker that a match has listed are computed one by one. Any other
 * cost, a temperature or a cost of the request's own computes all.
 */
final class WorkerSelector {
    private final CostModel costModel;
    private final boolean linear;
    private final CostSampler sampler;
    private final AtomicLong turn = new AtomicLong();

    WorkerSelector(CostModel costModel, RandomSource random) {
        this.costModel = costModel;
        this.linear = costModel.equals(CostModel.LINEAR);
        this.sampler = new CostSampler(random);
    }

    /**
     * Chooses by what was recorded.
     *
     * @throws RouteException if no worker can be chosen
     */
    void choose(Selection selection) throws RouteException {
        selection.addCosts();
        final Candidates candidates = selection.candidates();
        final int count = candidates.count();
        if (count == 0) {
            throw candidates.none();
        }
        final boolean sampled = selection.mode() == RoutingMode.KV && selection.temperature() > 0;
        if (!linear || sampled || selection.added().any()) {
            selection.price(costModel);
        }
        selection.choose(
                switch (selection.mode()) {
                    case KV -> selection.isPriced() ? sample(selection) : cheapest(selection);
                    case ROUND_ROBIN ->
                            candidates.nth(
                                    (int) Long.remainderUnsigned(turn.getAndIncrement(), count));
                    case RANDOM -> candidates.nth(sampler.anyOf(count));
                    case DIRECT -> candidates.pinnedSlot();
                });
    }

    private int sample(Selection selection) {
        return sampler.cheapest(
                selection.modelCosts(), selection.workers().slotEnd(), selection.temperature());
    }

    /**
     * One of the cheapest by the linear cost, each as likely. A cost that trusts the overlap is a
     * bound: one that is drawn among the lowest bounds, and can be trusted, is as cheap as any.
     * Otherwise all that could win are asked, and it is drawn again.
     */
    private int cheapest(Selection selection) {
        final CandidateCosts costs = selection.costs();
        final int slot = drawWith(costs, costs.lowestBound());
        return costs.isExact(slot) ? slot : drawWith(costs, costs.lowest());
    }

    private int drawWith(CandidateCosts costs, double cost) {
        int ties = 0;
        int slot = -1;
        for (int group = costs.nextGroup(0, cost);
                group >= 0;
                group = costs.nextGroup(group + 1, cost)) {
            final long tied = costs.slotsWith(group, cost);
            if (tied != 0) {
                ties += Long.bitCount(tied);
                slot = group * Long.SIZE + Long.numberOfTrailingZeros(tied);
            }
        }
        return ties == 1 ? slot : nthWith(costs, cost, sampler.anyOf(ties));
    }

    private static int nthWith(CandidateCosts costs, double cost, int n) {
        int left = n;
        for (int group = costs.nextGroup(0, cost);
                group >= 0;
                group = costs.nextGroup(group + 1, cost)) {
            final long tied = costs.slotsWith(group, cost);
            final int count = Long.bitCount(tied);
            if (left < count) {
                return group * Long.SIZE + Candidates.nthBit(tied, left);
            }
            left -= count;
        }
        throw new AssertionError("counted more ties than there are: n=" + n + ", cost=" + cost);
    }
}
