package io.kvasir.router;

import io.kvasir.router.policy.RandomSource;
import io.kvasir.router.policy.RoutingMode;
import io.kvasir.router.settings.SessionMode;

import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongSupplier;

/**
 * Chooses a worker among those of a {@link Selection}. Any thread, each with its own selection.
 *
 * <p>With the linear cost and no temperature, workers that hold the same of the prompt, or nothing
 * of it, differ by their load alone, and the copy of the loads knows the least loaded of every 64.
 * So only groups of 64 with a worker that a match has listed are computed one by one. Any other
 * policy, a temperature, and a request with a cost of its own or that says what cached blocks
 * count, compute all.
 */
final class WorkerSelector {
    private final RandomSource random;
    private final LoadSelector byLoad;
    private final AtomicLong turn = new AtomicLong();
    private final LongSupplier clock;

    WorkerSelector(RandomSource random, LongSupplier clock) {
        this.random = random;
        byLoad = new LoadSelector(random);
        this.clock = clock;
    }

    /**
     * Chooses by what was recorded.
     *
     * @throws RouteException if no worker can be chosen
     */
    void choose(Selection selection) throws RouteException {
        final boolean timed = narrow(selection);
        final RouterRules rules = selection.rules();
        final GuardedPolicy policy = rules.policy();
        final Candidates candidates = selection.candidates();
        final int count = candidates.count();
        if (count == 0) {
            throw candidates.none(policy.name());
        }
        if (selection.isOnlyWithRoom()) {
            candidates.checkRoom(rules.room());
        }
        selection.costs().candidatesAreFinal();
        final boolean byCost = selection.mode() == RoutingMode.KV;
        if (timed
                || !policy.hasLinearCost()
                || selection.added().any()
                || selection.prefersSome()
                || selection.countsOtherwise()
                || (byCost
                        && (selection.temperature() > 0
                                || policy.judges()
                                || !policy.isLinear()))) {
            selection.price(policy);
        }
        final int bound = selection.sessionSlot();
        if (bound >= 0 && staysWith(selection, bound, rules.sessionMode())) {
            selection.chooseBySession(bound);
            return;
        }
        selection.choose(
                switch (selection.mode()) {
                    case KV -> selection.isPriced() ? selection.pick(policy) : cheapest(selection);
                    case ROUND_ROBIN ->
                            candidates.nth((int) Long.remainderUnsigned(turn(selection), count));
                    case RANDOM -> candidates.nth(LoadSelector.anyOf(random, count));
                    case POWER_OF_TWO -> byLoad.fewerOfTwo(selection);
                    case LEAST_LOADED -> byLoad.leastLoaded(selection);
                    case LEAST_CONNECTIONS -> byLoad.fewestRequests(selection);
                    case CONSISTENT_HASH -> rules.byHash().slot(selection, selection.affinityKey());
                    case DIRECT -> candidates.pinnedSlot();
                });
    }

    /**
     * Takes out candidates of those that a match has found: which the policy does not allow, of
     * which the first token is expected too late, whose cost the request says is infinite, and that
     * others with its adapter are preferred to. Any may be chosen that is left.
     *
     * @return whether their costs are no bounds any more
     */
    boolean narrow(Selection selection) {
        final RouterRules rules = selection.rules();
        final GuardedPolicy policy = rules.policy();
        selection.decidedBy(policy.name());
        selection.paces(rules.pacesOrNull(), rules.pacesOrNull() == null ? 0 : clock.getAsLong());
        if (policy.judges()) {
            selection.judge(policy);
        }
        final boolean timed = rules.busyTtftNs() > 0 && selection.takeOutSlow(rules.busyTtftNs());
        selection.addCosts();
        selection
                .candidates()
                .preferAdapter(selection.isOnlyWithRoom() ? rules.room() : RoomLimits.NONE);
        return timed;
    }

    private long turn(Selection selection) {
        return selection.isOnlyAsked() ? turn.get() : turn.getAndIncrement();
    }

    private static boolean staysWith(Selection selection, int slot, SessionMode mode) {
        return selection.mode() != RoutingMode.DIRECT
                && (mode == SessionMode.HARD
                        || LoadSelector.isWithin(selection, slot, selection.requestBlocks()));
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
        return ties == 1 ? slot : nthWith(costs, cost, LoadSelector.anyOf(random, ties));
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
