package io.kvasir.cli.simulate;

import io.kvasir.cli.load.MooncakeTrace;
import io.kvasir.cli.load.TracePrompts;
import io.kvasir.router.policy.Candidate;
import io.kvasir.router.policy.WorkerCost;
import io.kvasir.sim.SteppedEngine;

import org.agrona.collections.Long2LongHashMap;

import java.util.List;

/**
 * What a router could do at best that decides request by request: it sees the engines' queues and
 * caches as they are at this moment, without events and without delay, and it knows which blocks
 * later requests will ask for, so that it can say what an eviction will cost. It does not look
 * ahead: what it does to the queues of later requests it weighs as the others do. So it is no upper
 * bound, but what better information alone would be worth.
 */
final class ClairvoyantCost extends OwnCost {
    private static final double OWN_WEIGHT = 5;

    private final Long2LongHashMap lastUse;
    private final int blockSize;

    /**
     * Reads the future.
     *
     * @param requests all that will arrive, in order
     */
    ClairvoyantCost(String name, FleetPlan plan, List<MooncakeTrace.Request> requests) {
        super(name, OWN_WEIGHT);
        blockSize = plan.engine().blockSize();
        lastUse = new Long2LongHashMap(-1);
        final SteppedEngine namer = new SteppedEngine(plan.engine(), (_, _) -> {});
        final TracePrompts prompts = FleetRun.prompts();
        for (int i = 0; i < requests.size(); i++) {
            for (long block : namer.names(prompts.tokens(requests.get(i)))) {
                lastUse.put(block, i);
            }
        }
    }

    @Override
    public WorkerCost costOrNull(FleetView fleet, int[] prompt) {
        final long[] names = fleet.engine(fleet.workers().getFirst()).names(prompt);
        return one -> tokens(fleet, one, prompt.length, names) / blockSize;
    }

    private double tokens(FleetView fleet, Candidate one, int promptTokens, long[] names) {
        final SteppedEngine engine = fleet.engine(one.worker());
        final double own = promptTokens - (double) engine.cachedBlocks(names) * blockSize;
        final int[] lost = new int[1];
        engine.forEachNextEvicted(
                (int) (own / blockSize),
                name -> lost[0] += lastUse.get(name) > fleet.arrivals() ? 1 : 0);
        return engine.tokensToPrefill() + OWN_WEIGHT * own + (double) lost[0] * blockSize;
    }
}
