package io.kvasir.router;

import io.kvasir.core.load.LoadBoard;
import io.kvasir.core.radix.OverlapScores;

import java.util.concurrent.atomic.AtomicLong;

/**
 * Picks a worker from what was matched and what is booked. Any thread, each with its own {@link
 * Decision}.
 *
 * <p>With the linear cost and no temperature, workers that hold the same of the prompt, or nothing
 * of it, differ by their load alone, and the decision's mirror knows the least loaded of every 64.
 * So only groups of 64 with a worker that a match has listed are looked at one by one. Any other
 * cost or a temperature looks at all.
 */
final class WorkerSelector {
    private final CostModel costModel;
    private final boolean linear;
    private final CostSampler picker;
    private final LoadBoard board;
    private final double degradedCredit;
    private final AtomicLong turn = new AtomicLong();

    WorkerSelector(
            CostModel costModel, RandomSource random, LoadBoard board, double degradedCredit) {
        this.costModel = costModel;
        this.linear = costModel.equals(CostModel.LINEAR);
        this.picker = new CostSampler(random);
        this.board = board;
        this.degradedCredit = degradedCredit;
    }

    /** Records the workers' loads and what the matches found; the numbers of events stay. */
    void look(RouteRequest request, OverlapScores cached, OverlapScores active, Decision out) {
        out.look(request, cached, active, board, degradedCredit);
    }

    /**
     * Chooses by what was recorded.
     *
     * @throws RouteException if no worker can be chosen
     */
    void choose(Decision out) throws RouteException {
        if (out.eligibleCount() == 0) {
            throw out.noCandidate();
        }
        final boolean sampled = out.mode() == RoutingMode.KV && out.temperature() > 0;
        if (!linear || sampled) {
            out.price(costModel);
        }
        out.choose(
                switch (out.mode()) {
                    case KV -> cheapest(out);
                    case ROUND_ROBIN ->
                            out.nthEligible(
                                    (int)
                                            Long.remainderUnsigned(
                                                    turn.getAndIncrement(), out.eligibleCount()));
                    case RANDOM -> out.nthEligible(picker.anyOf(out.eligibleCount()));
                    case DIRECT -> out.pinnedSlot();
                });
    }

    private int cheapest(Decision out) {
        return out.prices() == null
                ? leastRelative(out)
                : picker.cheapest(out.prices(), out.roster().slotEnd(), out.temperature());
    }

    /**
     * One of the cheapest, each as likely. A cost that trusts the overlap is a bound; whoever is
     * drawn among the lowest bounds and can be trusted is as cheap as anybody. Otherwise, all who
     * could win are asked, and it is drawn again.
     */
    private int leastRelative(Decision out) {
        final int slot = drawWith(out, out.lowestBound());
        return out.isExact(slot) ? slot : drawWith(out, out.lowestRelative());
    }

    private int drawWith(Decision out, double cost) {
        int ties = 0;
        int slot = -1;
        for (int group = out.next(0, cost); group >= 0; group = out.next(group + 1, cost)) {
            final long tied = out.slotsWith(group, cost);
            if (tied != 0) {
                ties += Long.bitCount(tied);
                slot = group * Long.SIZE + Long.numberOfTrailingZeros(tied);
            }
        }
        return ties == 1 ? slot : nthWith(out, cost, picker.anyOf(ties));
    }

    private static int nthWith(Decision out, double cost, int n) {
        int left = n;
        for (int group = out.next(0, cost); group >= 0; group = out.next(group + 1, cost)) {
            final long tied = out.slotsWith(group, cost);
            final int count = Long.bitCount(tied);
            if (left < count) {
                return group * Long.SIZE + nthBit(tied, left);
            }
            left -= count;
        }
        throw new AssertionError("counted more ties than there are: n=" + n + ", cost=" + cost);
    }

    /** Place of the n-th set bit, counted from 0. */
    static int nthBit(long bits, int n) {
        long rest = bits;
        for (int i = 0; i < n; i++) {
            rest &= rest - 1;
        }
        return Long.numberOfTrailingZeros(rest);
    }
}
