package io.kvasir.cli.simulate;

import io.kvasir.router.Decision;
import io.kvasir.router.policy.Candidate;

import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.stream.Stream;

/**
 * New blocks go where what they evict is oldest: the age is how long ago a worker had computed as
 * much less as its cache holds, by what was sent to it.
 */
final class EvictionCost extends OwnCost {
    private static final double OWN_WEIGHT = 4;

    /** What 100 s of age take off the cost of a block that the worker would compute. */
    private static final double WEIGHT = 0.2;

    private static final double WEIGHT_SECONDS = 100;
    private static final double UNKNOWN_AGE = 400; // nothing was evicted yet

    /** When a worker had been sent so many blocks in all. */
    private record Sent(double seconds, double blocks) {}

    private final int cacheBlocks;
    private final ArrayDeque<Sent>[] sent;
    private final double[] blocks;

    /** For a fleet of so many workers with caches of so many blocks. */
    @SuppressWarnings("unchecked") // an array of one generic type
    EvictionCost(String name, FleetPlan plan) {
        super(name, OWN_WEIGHT);
        cacheBlocks = plan.engine().blocks();
        sent = Stream.generate(ArrayDeque::new).limit(plan.workers()).toArray(ArrayDeque[]::new);
        blocks = new double[plan.workers()];
        Arrays.stream(sent).forEach(each -> each.add(new Sent(0, 0)));
    }

    @Override
    double more(FleetView fleet, Candidate one) {
        final int worker = (int) one.worker().id();
        final double age =
                blocks[worker] <= cacheBlocks
                        ? UNKNOWN_AGE
                        : fleet.seconds() - sent[worker].peekFirst().seconds;
        return super.more(fleet, one) - WEIGHT * ownBlocks(one) * age / WEIGHT_SECONDS;
    }

    @Override
    public void decided(FleetView fleet, int worker, Decision decision) {
        blocks[worker] += decision.requestBlocks() - decision.overlapBlocks();
        sent[worker].addLast(new Sent(fleet.seconds(), blocks[worker]));
        while (sent[worker].size() > 1
                && sent[worker].peekFirst().blocks < blocks[worker] - cacheBlocks) {
            sent[worker].removeFirst();
        }
    }
}
