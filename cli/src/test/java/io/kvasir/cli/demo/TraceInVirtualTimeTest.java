package io.kvasir.cli.demo;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.cli.load.LoadClient;
import io.kvasir.cli.load.MooncakeTrace;
import io.kvasir.cli.load.RunStats;
import io.kvasir.cli.load.TraceDriver;
import io.kvasir.cli.load.TracePrompts;
import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.prompt.chat.SimModel;
import io.kvasir.router.policy.RoutingMode;
import io.kvasir.sim.config.SimConfig;
import io.kvasir.sim.config.VirtualClock;
import io.kvasir.sim.state.SimState;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.TimeUnit;

/**
 * A trace through gateway and engines over real sockets, while driver and engines live in virtual
 * time: it moves on when all that was sent has reached an engine, and what engines did the gateway.
 */
@Order(1) // takes long: begins first, beside the others
class TraceInVirtualTimeTest {
    private static final int REQUESTS = 36;
    private static final int CONVERSATIONS = 12;
    private static final int ENGINES = 3;
    private static final int GAP_MS = 400;
    private static final int STEP_TOKENS = 512;

    private final VirtualClock clock = new VirtualClock();

    /** Twelve conversations that take turns; each turn repeats its past and adds one hash id. */
    private static List<MooncakeTrace.Request> conversations() {
        final List<MooncakeTrace.Request> requests = new ArrayList<>();
        for (int i = 0; i < REQUESTS; i++) {
            final int turn = i / CONVERSATIONS;
            final long[] ids = new long[turn + 1];
            for (int j = 0; j < ids.length; j++) {
                ids[j] = 1_000L * (i % CONVERSATIONS) + j;
            }
            requests.add(
                    new MooncakeTrace.Request((long) i * GAP_MS, STEP_TOKENS * ids.length, 4, ids));
        }
        return requests;
    }

    private RunStats.Result play(RoutingMode mode) throws InterruptedException {
        final List<MooncakeTrace.Request> requests = conversations();
        final Cluster.Plan plan =
                new Cluster.Plan(
                        "127.0.0.1",
                        0,
                        Cluster.Plan.same(ENGINES, () -> SimConfig.builder().build()),
                        GatewayConfig::builder);
        final RunStats stats = new RunStats(1);
        try (Cluster cluster = Cluster.start(plan, mode, clock);
                LoadClient client =
                        new LoadClient(cluster.url(), Duration.ofSeconds(60), Map.of(), clock)) {
            final TraceDriver driver =
                    new TraceDriver(
                            client,
                            new TracePrompts(SimModel.NAME, 256),
                            stats,
                            1,
                            Integer.MAX_VALUE);
            final long startNs = clock.nanoTime();
            final CompletableFuture<Long> played =
                    CompletableFuture.supplyAsync(
                            () -> {
                                try {
                                    return driver.play(requests);
                                } catch (InterruptedException e) {
                                    throw new CompletionException(e);
                                }
                            });
            boolean moves = true;
            while (moves) {
                Eventually.holds(
                        () -> arrivals(cluster) == due(requests, startNs) || played.isDone());
                moves = clock.advanceToNext();
                Eventually.holds(() -> isSettled(cluster));
            }
            return stats.result(mode.spelling(), ENGINES, played.join());
        }
    }

    /** Requests of the trace that have been sent by now. */
    private long due(List<MooncakeTrace.Request> requests, long startNs) {
        final long nowMs = TimeUnit.NANOSECONDS.toMillis(clock.nanoTime() - startNs);
        return requests.stream().filter(request -> request.timestampMs() <= nowMs).count();
    }

    /** Requests that have reached an engine. */
    private static long arrivals(Cluster cluster) {
        return cluster.engines().stream()
                .map(engine -> engine.state(0))
                .mapToLong(state -> state.admitted() + state.waiting())
                .sum();
    }

    /**
     * Whether the gateway knows all that its engines have done: every event is applied, and the
     * bookings of requests that have ended are released.
     */
    private static boolean isSettled(Cluster cluster) {
        final JsonNode workers = cluster.workers();
        for (int i = 0; i < ENGINES; i++) {
            final SimState engine = cluster.engines().get(i).state(0);
            final JsonNode worker = workers.get(i);
            if (worker.path("event_sequence").asLong() != engine.lastSequence()
                    || worker.path("active_requests").asLong()
                            != engine.running() + engine.waiting()) {
                return false;
            }
        }
        return true;
    }

    @Test
    void kvRoutingFindsEachConversationsPastAndRandomRoutingAPartOfIt()
            throws InterruptedException {
        final RunStats.Result kv = play(RoutingMode.KV);
        final RunStats.Result random = play(RoutingMode.RANDOM);
        for (RunStats.Result result : List.of(kv, random)) {
            assertEquals(REQUESTS, result.requests());
            assertEquals(0, result.errors(), result.firstErrors().toString());
            assertEquals(0, result.issueLagP99Ms());
            assertEquals(REQUESTS, result.prediction().exact(), result.toString());
        }
        final long turns = REQUESTS / CONVERSATIONS;
        final long past = CONVERSATIONS * STEP_TOKENS * turns * (turns - 1) / 2;
        assertEquals(past, kv.cachedTokens());
        assertTrue(random.cachedTokens() < past, random.toString());
    }
}
