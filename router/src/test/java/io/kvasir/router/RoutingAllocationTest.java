package io.kvasir.router;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.load.PredictedPrefixesConfig;
import io.kvasir.pipeline.source.IndexState;
import io.kvasir.router.load.LoadReading;
import io.kvasir.router.policy.RandomSource;
import io.kvasir.router.policy.RoutingMode;
import io.kvasir.router.policy.WorkerCost;
import io.kvasir.router.settings.LoraMode;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.testsupport.Allocations;
import io.kvasir.testsupport.Cores;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.concurrent.TimeUnit;

/** Heap bytes of the calling thread, the router warmed up: none. */
class RoutingAllocationTest {
    private static final int CALLS = 1_000;
    private static final int PROMPTS = 16;

    private final Decision decision = new Decision();
    private final Lease lease = new Lease();
    private final int[][] prompts = new int[PROMPTS][];
    private KvRouter router;
    private RouteRequest request;
    private int next;

    @BeforeEach
    void fill() {
        router =
                KvRouter.builder()
                        .maxWorkers(100)
                        .maxBlocks(4_096, 16_384)
                        .maxActiveRequests(32)
                        .random(RandomSource.seeded(1337))
                        .build();
        request = router.newRequest();
        final SplittableRandom random = new SplittableRandom(1337);
        for (int p = 0; p < PROMPTS; p++) {
            prompts[p] = random.ints(128 * 16, 0, 150_000).toArray();
        }
        for (int w = 0; w < 100; w++) {
            final Worker worker = router.addWorker(WorkerSpec.of(w, "w" + w, "http://w" + w));
            router.openDirect(worker, EngineMessages.source(worker.name(), 16))
                    .onMessage(
                            0,
                            EngineMessages.stored(prompts[w % PROMPTS], 128, 16, w * 1_000_000L));
            Eventually.holds(() -> "events of " + worker, worker::ready);
        }
    }

    @AfterEach
    void close() {
        router.close();
    }

    private RouteRequest next() {
        next = (next + 1) % PROMPTS;
        return request.reset().tokens(prompts[next], prompts[next].length);
    }

    @ParameterizedTest
    @CsvSource({
        "KV, 0",
        "KV, 0.5",
        "ROUND_ROBIN, 0",
        "RANDOM, 0",
        "POWER_OF_TWO, 0",
        "LEAST_LOADED, 0",
        "LEAST_CONNECTIONS, 0",
        "CONSISTENT_HASH, 0"
    })
    void selectingAllocatesNothing(RoutingMode mode, double temperature) {
        assertEquals(
                0,
                Allocations.bytesPerRound(
                        CALLS,
                        () -> {
                            try {
                                router.select(next().mode(mode).temperature(temperature), decision);
                            } catch (RouteException e) {
                                throw new AssertionError(e);
                            }
                        }));
    }

    @Test
    void aCostOfTheRequestsOwnAllocatesNothing() {
        final WorkerCost cost = candidate -> candidate.requestBlocks() - candidate.overlapBlocks();
        assertEquals(
                0,
                Allocations.bytesPerRound(
                        CALLS,
                        () -> {
                            try {
                                router.select(next().addCost(cost), decision);
                            } catch (RouteException e) {
                                throw new AssertionError(e);
                            }
                        }));
    }

    @ParameterizedTest
    @CsvSource({"0, KV", "3, KV", "0.5, ROUND_ROBIN"})
    void aCreditOfTheRequestsOwnAllocatesNothing(double credit, RoutingMode mode) {
        assertEquals(
                0,
                Allocations.bytesPerRound(
                        CALLS,
                        () -> {
                            try {
                                router.select(
                                        next().mode(mode)
                                                .overlapCredit(credit)
                                                .sharedCacheMultiplier(0.5),
                                        decision);
                            } catch (RouteException e) {
                                throw new AssertionError(e);
                            }
                        }));
    }

    @ParameterizedTest
    @CsvSource({"REQUIRED, KV", "REQUIRED, ROUND_ROBIN", "PREFERRED, KV", "PREFERRED, RANDOM"})
    void adaptersLabelsAndTaintsAllocateNothing(LoraMode lora, RoutingMode mode) {
        router.close();
        router =
                KvRouter.builder()
                        .maxWorkers(200)
                        .maxBlocks(4_096, 16_384)
                        .set(RouterSettings.LORA_MODE, lora)
                        .random(RandomSource.seeded(1337))
                        .build();
        request = router.newRequest();
        for (int w = 0; w < 200; w++) {
            final WorkerSpec spec = WorkerSpec.of(w, "w" + w, "http://w" + w);
            router.addWorker(
                            spec.labelled(Map.of("zone", "z" + w % 3))
                                    .tainted(w % 2 == 0 ? Set.of("spot", "night") : Set.of()))
                    .adapters(Set.of("a" + w % 5, "b"));
        }
        assertEquals(
                0,
                Allocations.bytesPerRound(
                        CALLS,
                        () -> {
                            try {
                                router.select(
                                        next().mode(mode)
                                                .lora("a1")
                                                .require("zone=z1")
                                                .tolerate("spot")
                                                .tolerate("night")
                                                .prefer("spot", 0.5),
                                        decision);
                            } catch (RouteException e) {
                                throw new AssertionError(e);
                            }
                        }));
    }

    @Test
    void workersWhoseHitsLackABlockAllocateNothing() {
        for (Worker worker : router.workers()) {
            for (int i = 0; i < 8 * (worker.slot() % 2); i++) {
                worker.engineHit(IndexState.EXACT, 2_000, 160, 160, 0, 144, true, 0);
            }
            assertEquals(worker.slot() % 2 == 1, worker.lacksLastBlock());
        }
        selectingAllocatesNothing(RoutingMode.KV, 0);
    }

    @ParameterizedTest
    @CsvSource({"true", "false"})
    void reservingAndReleasingAllocatesNothing(boolean deadline) {
        assertEquals(
                0,
                Allocations.bytesPerRound(
                        CALLS,
                        () -> {
                            final RouteRequest prompt = next();
                            if (deadline) {
                                prompt.deadline(1);
                            }
                            reserve(prompt);
                            lease.prefillComplete();
                            lease.outputTokens(20);
                            lease.close();
                        }));
    }

    @Test
    void theTimeOfThePrefillAllocatesNothingNorDoesItsPace() {
        assertReservingAllocatesNothing(
                KvRouter.builder().set(RouterSettings.SELECTION_POLICY, "prefill-time"));
    }

    @Test
    void aLimitOfTheExpectedFirstTokenMakesNothingToAllocate() {
        assertReservingAllocatesNothing(
                KvRouter.builder().set(RouterSettings.BUSY_TTFT, Duration.ofHours(1)));
    }

    /** With a hundred workers, prompts that are computed, and bookings that end. */
    private void assertReservingAllocatesNothing(RouterConfig.Builder builder) {
        router.close();
        router = builder.maxWorkers(100).maxActiveRequests(32).build();
        for (int w = 0; w < 100; w++) {
            router.addWorker(WorkerSpec.of(w, "w" + w, "http://w" + w));
        }
        request = router.newRequest();
        assertEquals(
                0,
                Allocations.bytesPerRound(
                        CALLS,
                        () -> {
                            reserve(next());
                            lease.prefillComplete();
                            lease.close();
                        }));
    }

    @Test
    void reportsOfEnginesAndMarksOfFullWorkersMakeNothingToAllocate() {
        final long[] nowNs = {1}; // the status that is looked at once a second allocates
        router.close();
        router =
                KvRouter.builder()
                        .tickedBy(() -> nowNs[0])
                        .maxWorkers(100)
                        .maxActiveRequests(32)
                        .set(RouterSettings.ENGINE_LOAD, true)
                        .set(RouterSettings.BUSY_LEASE, Duration.ofMillis(1))
                        .build();
        final List<Worker> workers = new ArrayList<>();
        for (int w = 0; w < 100; w++) {
            workers.add(router.addWorker(WorkerSpec.of(w, "w" + w, "http://w" + w)));
        }
        request = router.newRequest();
        for (Worker worker : workers) {
            worker.reportLoad(new LoadReading().running(3).waiting(1).usedBlocks(20));
        }
        workers.get(7).full("status 429"); // and a probe, answered or not, now and then
        assertEquals(
                0,
                Allocations.bytesPerRound(
                        CALLS,
                        () -> {
                            reserve(next());
                            lease.prefillComplete();
                            lease.close();
                            nowNs[0] += TimeUnit.MICROSECONDS.toNanos(20);
                            router.tick(nowNs[0]);
                        }));
    }

    @ParameterizedTest
    @CsvSource({"64, 500", "2000, 500", "16000, 250", "1048576, 30"})
    void reservingAllocatesNothingUpToTheConfiguredPromptLength(int tokens, int calls) {
        router.close();
        router = KvRouter.builder().maxWorkers(8).build();
        for (int w = 0; w < 8; w++) {
            router.addWorker(WorkerSpec.of(w, "w" + w, "http://w" + w));
        }
        request = router.newRequest();
        final int[] prompt = new SplittableRandom(7).ints(tokens, 0, 150_000).toArray();
        assertEquals(
                0,
                Allocations.bytesPerRound(
                        calls,
                        () -> {
                            reserve(request.reset().tokens(prompt, tokens));
                            lease.prefillComplete();
                            lease.close();
                        }));
    }

    @Test
    void predictingWhatWorkersHoldAllocatesNothing() {
        router.close();
        final long[] nowNs = {0};
        router =
                KvRouter.builder()
                        .tickedBy(() -> nowNs[0])
                        .maxWorkers(100)
                        .maxActiveRequests(32)
                        .routedPrefixes(new PredictedPrefixesConfig(100, 1_000, 0.8, 1_000_000))
                        .build();
        request = router.newRequest();
        for (int w = 0; w < 100; w++) {
            router.addWorker(WorkerSpec.of(w, "w" + w, "http://w" + w));
        }
        assertEquals(
                0,
                Allocations.bytesPerRound(
                        CALLS,
                        () -> {
                            reserve(next());
                            lease.close();
                            router.tick(nowNs[0] += 1_000);
                        }));
        assertTrue(router.routedPrefixes().pruned() > 0, "there was too much to hold");
        assertTrue(router.routedPrefixes().blocks() > 0);
    }

    private void reserve(RouteRequest prompt) {
        while (router.bookingPipeline().backlog() > 32) {
            Cores.giveWay(); // an open loop without engines fills any ring
        }
        try {
            router.reserve(prompt, decision, lease);
        } catch (RouteException e) {
            throw new AssertionError(e);
        }
    }
}
