package io.kvasir.cli.simulate;

import io.kvasir.cli.load.MooncakeTrace;
import io.kvasir.cli.load.TracePrompts;
import io.kvasir.pipeline.ring.WaitMode;
import io.kvasir.pipeline.source.EngineStream;
import io.kvasir.pipeline.source.FreshnessLimits;
import io.kvasir.pipeline.source.RemovalRule;
import io.kvasir.pipeline.source.SourceConfig;
import io.kvasir.router.Decision;
import io.kvasir.router.KvRouter;
import io.kvasir.router.Lease;
import io.kvasir.router.RouteException;
import io.kvasir.router.RouteRequest;
import io.kvasir.router.RouterConfig;
import io.kvasir.router.Worker;
import io.kvasir.router.WorkerSpec;
import io.kvasir.router.policy.CandidateWorker;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.sim.SteppedEngine;
import io.kvasir.sim.config.SimConfig;
import io.kvasir.sim.state.SimState;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.locks.LockSupport;

/**
 * One policy over one workload in virtual time: the router as it is, engines that are stepped, and
 * events that arrive after a delay. Nothing waits for a clock, and equal plans, policies, seeds and
 * requests give equal results.
 *
 * <p>The router's two writers have threads of their own; each decision first waits until they have
 * done all that was published before it, so no result depends on how fast they are. One thread.
 */
final class FleetRun implements FleetView, AutoCloseable {
    private static final long NEVER = SteppedEngine.IDLE;
    private static final long START_NS = 1_000_000_000L;
    private static final long TICK_NS = 200_000_000L;
    private static final double NS_PER_MS = 1e6;
    private static final FreshnessLimits NEVER_STALE =
            new FreshnessLimits(Long.MAX_VALUE, Integer.MAX_VALUE, Long.MAX_VALUE);
    private static final double SPARE = 1.34; // room in the index beyond what the engines hold
    private static final int PUSHES_PER_SETTLE = 1024;
    private static final long SETTLE_PAUSE_NS = 10_000;
    private static final String MODEL = "m";
    private static final int VOCABULARY = 1 << 16;

    /** An event message on its way to the router. */
    @SuppressWarnings("ArrayRecordComponent") // never compared
    private record Delivery(long timeNs, EngineStream stream, long sequence, byte[] payload) {}

    private final Policy policy;
    private final KvRouter router;
    private final RouteRequest request;
    private final Decision decision = new Decision();
    private final TracePrompts prompts = prompts();
    private final List<Worker> workers = new ArrayList<>();
    private final SteppedEngine[] engines;
    private final long[] dueNs;
    private final ArrayDeque<Delivery> deliveries = new ArrayDeque<>();
    private final FleetStats stats;
    private long nowNs = START_NS;
    private long nextTickNs = START_NS;
    private int pushes;

    /**
     * Makes an idle fleet with empty caches.
     *
     * @param seed of ties and of random modes
     */
    FleetRun(FleetPlan plan, Policy policy, long seed) {
        this.policy = policy;
        engines = new SteppedEngine[plan.workers()];
        dueNs = new long[plan.workers()];
        Arrays.fill(dueNs, NEVER);
        stats = new FleetStats(plan.workers());
        router = router(plan, seed);
        request = router.newRequest();
        final long delayNs = Math.round(plan.eventDelayMs() * NS_PER_MS);
        for (int i = 0; i < engines.length; i++) {
            final Worker worker = router.addWorker(WorkerSpec.of(i, "sim-" + i, "sim:" + i));
            workers.add(worker);
            final EngineStream stream = router.openDirect(worker, source(worker, plan.engine()));
            engines[i] =
                    new SteppedEngine(
                            plan.engine(),
                            (sequence, payload) ->
                                    deliveries.add(
                                            new Delivery(
                                                    nowNs + delayNs, stream, sequence, payload)));
        }
    }

    private KvRouter router(FleetPlan plan, long seed) {
        final long held =
                (long) Math.ceil((double) plan.workers() * plan.engine().blocks() * SPARE);
        final RouterConfig.Builder builder =
                KvRouter.builder()
                        .set(RouterSettings.BLOCK_SIZE, plan.engine().blockSize())
                        .set(RouterSettings.MAX_WORKERS, plan.workers())
                        .set(RouterSettings.MAX_BLOCKS, held)
                        .set(RouterSettings.MAX_HELD_BLOCKS, held)
                        .set(RouterSettings.SEED, seed)
                        .set(RouterSettings.HASH_SEED, seed)
                        .set(RouterSettings.BOOKING_WAIT, WaitMode.BLOCKING)
                        .tickedBy(() -> nowNs);
        policy.configure(builder);
        return builder.build();
    }

    private static SourceConfig source(Worker worker, SimConfig engine) {
        return SourceConfig.of(worker.name(), 0, engine.blockSize(), "")
                .withRemovals(RemovalRule.PHYSICAL) // the engines announce every copy
                .withFreshness(NEVER_STALE); // it is measured by the machine's clock
    }

    /** Makes the prompts of all runs. */
    static TracePrompts prompts() {
        return new TracePrompts(MODEL, VOCABULARY);
    }

    /**
     * Plays requests to their end.
     *
     * @param requests in the order of their arrival
     */
    FleetStats.Result play(List<MooncakeTrace.Request> requests) {
        int arrived = 0;
        while (true) {
            final long arrivalNs =
                    arrived < requests.size() ? arrivalNs(requests.get(arrived)) : NEVER;
            final long nextNs = Math.min(arrivalNs, next());
            if (nextNs == NEVER) {
                break;
            }
            nowNs = nextNs;
            step();
            deliver();
            tick();
            if (arrivalNs == nowNs) {
                arrive(requests.get(arrived++));
            }
        }
        settle();
        checkEnd();
        return stats.result(policy.name());
    }

    private static long arrivalNs(MooncakeTrace.Request request) {
        return START_NS + Math.round(request.timestampMs() * NS_PER_MS);
    }

    /** The next moment at which something happens of itself. */
    private long next() {
        long next = deliveries.isEmpty() ? NEVER : deliveries.peekFirst().timeNs;
        for (long due : dueNs) {
            next = Math.min(next, due);
        }
        return next;
    }

    private void step() {
        for (int i = 0; i < engines.length; i++) {
            if (dueNs[i] <= nowNs) {
                dueNs[i] = engines[i].advance(nowNs);
            }
        }
    }

    private void deliver() {
        while (!deliveries.isEmpty() && deliveries.peekFirst().timeNs <= nowNs) {
            final Delivery due = deliveries.removeFirst();
            due.stream.onMessage(due.sequence, due.payload);
            if (++pushes % PUSHES_PER_SETTLE == 0) {
                settle(); // else the ring could be full, which would be a gap
            }
        }
    }

    private void tick() {
        if (nowNs >= nextTickNs) {
            router.tick(nowNs);
            nextTickNs = nowNs + TICK_NS;
        }
    }

    private void arrive(MooncakeTrace.Request arriving) {
        settle();
        final int[] tokens = prompts.tokens(arriving);
        final Lease lease = new Lease();
        try {
            request.reset().tokens(tokens, tokens.length).addCost(policy.costOrNull(this, tokens));
            router.reserve(request, decision, lease);
        } catch (RouteException e) {
            throw new IllegalStateException("the router refused a request: " + arriving, e);
        }
        final int chosen = workers.indexOf(lease.worker());
        policy.decided(this, chosen, decision);
        engines[chosen].submit(
                tokens,
                arriving.outputLength(),
                nowNs,
                new Served(lease, stats.arrived(chosen, tokens.length, nowNs)));
        dueNs[chosen] = engines[chosen].advance(nowNs);
    }

    /** Tells router and statistics how far a request is. */
    private final class Served implements SteppedEngine.Progress {
        private final Lease lease;
        private final FleetStats.Request counted;
        private int seen;

        Served(Lease lease, FleetStats.Request counted) {
            this.lease = lease;
            this.counted = counted;
        }

        @Override
        public void at(int cachedTokens, int generated, boolean finished) {
            if (generated == seen) {
                return;
            }
            if (seen == 0) {
                lease.prefillComplete();
            }
            counted.token(nowNs, cachedTokens, generated == 1);
            seen = generated;
            lease.outputTokens(generated);
            if (finished) {
                lease.close();
                counted.finished();
            }
        }
    }

    /** Waits until the writers have done all that was published. */
    private void settle() {
        while (router.indexPipeline().backlog() > 0 || router.bookingPipeline().backlog() > 0) {
            LockSupport.parkNanos(SETTLE_PAUSE_NS); // a writer may need this core
        }
    }

    private void checkEnd() {
        for (int i = 0; i < engines.length; i++) {
            final SimState engine = engines[i].state();
            if (engine.freeBlocks() != engine.blocks() || engine.running() + engine.waiting() > 0) {
                throw new IllegalStateException("requests are left after the end: " + engine);
            }
        }
        stats.checkEnd();
    }

    /** The engines, in the order of their workers. */
    List<SimState> engines() {
        return Arrays.stream(engines).map(SteppedEngine::state).toList();
    }

    @Override
    public List<Worker> workers() {
        return List.copyOf(workers);
    }

    @Override
    public SteppedEngine engine(CandidateWorker worker) {
        return engines[(int) worker.id()];
    }

    @Override
    public int arrivals() {
        return stats.arrivals();
    }

    @Override
    public double seconds() {
        return (nowNs - START_NS) / 1e9;
    }

    @Override
    public void close() {
        router.close();
    }
}
