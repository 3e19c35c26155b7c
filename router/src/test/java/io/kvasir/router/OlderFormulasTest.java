package io.kvasir.router;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.radix.OverlapScores;
import io.kvasir.pipeline.source.IndexState;
import io.kvasir.router.Decision.Exclusion;
import io.kvasir.router.RouteException.Kind;
import io.kvasir.router.policy.PolicyFailures;
import io.kvasir.router.policy.RandomSource;
import io.kvasir.router.policy.RoutingMode;
import io.kvasir.testsupport.Allocations;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;

/** The presets load-deviation and logits against costs that were computed by hand. */
class OlderFormulasTest {
    private static final int BLOCK_SIZE = 16;
    private static final double CLOSE = 1e-12;

    private long seed = Seeds.next("OlderFormulasTest");
    private final Decision decision = new Decision();
    private final OverlapScores cached = new OverlapScores(64);
    private final OverlapScores active = new OverlapScores(64);
    private final List<Worker> workers = new ArrayList<>();
    private KvRouter router;

    private void start(String policy, int count) {
        router =
                KvRouter.builder()
                        .set("selection-policy", policy)
                        .tickedBy(() -> 0)
                        .blockSize(BLOCK_SIZE)
                        .maxWorkers(64)
                        .maxBlocks(1_024, 1_024)
                        .maxActiveRequests(64)
                        .random(RandomSource.seeded(seed))
                        .build();
        for (int i = 0; i < count; i++) {
            workers.add(router.addWorker(WorkerSpec.of(i, "w" + i, "http://w" + i)));
        }
    }

    @AfterEach
    void close() {
        router.close();
    }

    /** Gives a worker events, so that its overlaps count in full and not by half. */
    private void trust(Worker worker) {
        router.openDirect(worker, EngineMessages.source(worker.name(), BLOCK_SIZE))
                .onMessage(0, EngineMessages.stored(new int[0], 0, BLOCK_SIZE, 0));
        Eventually.holds("events of " + worker, () -> worker.state() == IndexState.EXACT);
    }

    private void load(Worker worker, long tokens, long blocks, int requests) {
        router.board().add(worker.slot(), tokens, blocks, requests);
    }

    private RouteRequest request(int tokens) {
        return router.newRequest().tokens(new int[tokens], tokens);
    }

    private Worker choose(RouteRequest request) throws RouteException {
        router.select(request, cached, active, decision);
        return decision.worker();
    }

    private void assertCosts(double... expected) {
        for (int i = 0; i < expected.length; i++) {
            assertEquals(expected[i], decision.cost(i), CLOSE, "w" + i);
        }
    }

    @Test
    void whereLoadsDifferBalanceCountsMost() throws RouteException {
        start("load-deviation", 3);
        for (int i = 0; i < 3; i++) {
            workers.get(i).capacity(100, 0, 10);
            load(workers.get(i), 0, 10L * (i + 1), i + 1);
        }
        trust(workers.get(1));
        cached.add(workers.get(1).slot(), 3);
        assertSame(workers.get(1), choose(request(64)));
        // loads 0.1 0.2 0.3, mean 0.2, deviation 0.082 > 0.02: alpha 0.7
        // new tokens: 64, 16, 64 of 64; requests: 1, 2, 3 of 10
        assertCosts(
                0.7 * -0.1 + 0.3 * 1 + 0.1 * 0.1,
                0.7 * 0 + 0.3 * 0.25 + 0.1 * 0.2,
                0.7 * 0.1 + 0.3 * 1 + 0.1 * 0.3);
        assertCosts(0.24, 0.095, 0.4);
    }

    @Test
    void whereLoadsAreAlikeWhatIsCachedCountsMost() throws RouteException {
        start("load-deviation", 3);
        final int[] blocks = {20, 21, 20};
        for (int i = 0; i < 3; i++) {
            workers.get(i).capacity(100, 0, 10);
            load(workers.get(i), 0, blocks[i], 1);
        }
        trust(workers.get(1));
        cached.add(workers.get(1).slot(), 2);
        assertSame(workers.get(1), choose(request(64)));
        // mean 0.20333, deviation 0.0047 <= 0.0203: alpha 0.3
        final double mean = 0.61 / 3;
        assertCosts(
                0.3 * (0.20 - mean) + 0.7 * 1 + 0.01,
                0.3 * (0.21 - mean) + 0.7 * 0.5 + 0.01,
                0.3 * (0.20 - mean) + 0.7 * 1 + 0.01);
        assertEquals(0.709, decision.cost(0), CLOSE);
    }

    @Test
    void theModesChangeAtATenthOfTheMean() throws RouteException {
        start("load-deviation", 2);
        workers.forEach(worker -> worker.capacity(1_000, 0, 0));
        load(workers.get(0), 0, 89, 0);
        load(workers.get(1), 0, 111, 0); // mean 100, deviation 11
        choose(request(16));
        assertCosts(0.7 * -0.011 + 0.3, 0.7 * 0.011 + 0.3);
        load(workers.get(0), 0, 2, 0);
        load(workers.get(1), 0, -2, 0); // mean 100, deviation 9
        choose(request(16));
        assertCosts(0.3 * -0.009 + 0.7, 0.3 * 0.009 + 0.7);
    }

    @ParameterizedTest
    @EnumSource(value = RoutingMode.class, names = "DIRECT", mode = EnumSource.Mode.EXCLUDE)
    void fullWorkersAreSkippedInAnyMode(RoutingMode mode) throws RouteException {
        start("load-deviation", 40);
        final Random random = new Random(seed);
        for (Worker worker : workers) {
            worker.capacity(random.nextInt(3) * 10L, 0, random.nextInt(3) * 4L);
        }
        for (int round = 0; round < 300; round++) {
            final Worker changed = workers.get(random.nextInt(40));
            load(changed, random.nextInt(64), random.nextInt(4), 1);
            changed.available(random.nextInt(4) > 0);
            final Worker excluded = workers.get(random.nextInt(40));
            final RouteRequest request = request(40).mode(mode).exclude(excluded);
            final boolean any = workers.stream().anyMatch(w -> usable(w) && w != excluded);
            if (!any) {
                assertThrows(RouteException.class, () -> choose(request));
                continue;
            }
            final Worker chosen = choose(request);
            assertTrue(usable(chosen), decision::explain);
            assertNotEquals(excluded, chosen);
        }
    }

    private static boolean usable(Worker worker) {
        return worker.available()
                && (worker.kvBlocks() == 0 || worker.activeBlocks() < worker.kvBlocks())
                && (worker.requestSlots() == 0 || worker.activeRequests() < worker.requestSlots());
    }

    @Test
    void whereAllAreFullThatIsSaid() throws RouteException {
        start("load-deviation", 2);
        workers.get(0).capacity(10, 0, 0);
        workers.get(1).capacity(0, 0, 3);
        load(workers.get(0), 0, 10, 1);
        load(workers.get(1), 0, 50, 3);
        final RouteException all = assertThrows(RouteException.class, () -> choose(request(16)));
        assertEquals(Kind.ALL_WORKERS_BUSY, all.kind());
        assertTrue(
                all.getMessage()
                        .contains(
                                "w0/0: full by selection-policy=load-deviation, blocks in use=10"
                                        + " of 10, requests=1;"),
                all.getMessage());
        assertEquals(Exclusion.BUSY, decision.exclusion(1));
        load(workers.get(1), 0, -1, -1);
        assertSame(workers.get(1), choose(request(16)));
    }

    @Test
    void theScoreIsTwiceTheHitLessUsageLessWaiting() throws RouteException {
        start("logits", 3);
        for (int i = 0; i < 3; i++) {
            workers.get(i).capacity(100, 0);
        }
        load(workers.get(0), 0, 50, 0);
        load(workers.get(1), 40, 10, 0);
        load(workers.get(2), 160, 20, 0);
        trust(workers.get(1));
        trust(workers.get(2));
        cached.add(workers.get(1).slot(), 1);
        cached.add(workers.get(2).slot(), 4);
        assertSame(workers.get(2), choose(request(80)));
        // hits: 0, 16, 64 of 80 tokens; waiting: 0, 40, 160 of 160
        assertCosts(0.5, 0.1 + 0.25 - 0.4, 0.2 + 1 - 1.6);
        assertCosts(0.5, -0.05, -0.4);
    }

    @Test
    void whereNothingSpeaksForAnyNoneIsPreferred() throws RouteException {
        seed = 20_26; // one seed: the bound of chi-square holds always or never
        start("logits", 8);
        final int[] chosen = new int[8];
        for (int i = 0; i < 8_000; i++) {
            chosen[(int) choose(request(64)).id()]++;
        }
        double chi = 0;
        for (int times : chosen) {
            chi += (times - 1_000.0) * (times - 1_000.0) / 1_000;
        }
        final double chiSquare = chi;
        assertTrue(chi < 42, () -> "7 degrees of freedom, 1 in a million: " + chiSquare);
        assertEquals(0, decision.cost());
    }

    @ParameterizedTest
    @ValueSource(strings = {"load-deviation", "logits"})
    void whatIsNotKnownIsTakenFromTheOthers(String policy) throws RouteException {
        start(policy, 3);
        workers.get(1).capacity(200, 0, 20);
        load(workers.get(0), 0, 20, 2);
        load(workers.get(1), 0, 20, 2);
        choose(request(16));
        assertEquals(decision.cost(0), decision.cost(1), CLOSE);
        workers.get(1).capacity(0, 0, 0); // nothing is known: the greatest load is all
        load(workers.get(0), 0, 20, 2);
        choose(request(16));
        if (policy.equals("logits")) {
            assertCosts(1, 0.5, 0);
        } else {
            assertCosts(0.7 * 0.5 + 0.3 + 0.1, 0.7 * 0 + 0.3 + 0.05, 0.7 * -0.5 + 0.3);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"load-deviation", "logits"})
    void aCreditOfTheRequestsOwnIsOfTheLinearCostAlone(String policy) throws RouteException {
        start(policy, 2);
        cached.add(workers.get(0).slot(), 2);
        choose(request(64));
        final double cost = decision.cost(0);
        choose(request(64).overlapCredit(0));
        assertEquals(cost, decision.cost(0));
        assertEquals(0, decision.addedBlocks(0));
    }

    @ParameterizedTest
    @ValueSource(strings = {"load-deviation", "logits"})
    void anEmptyPromptAndOneWorkerAreNoSpecialCases(String policy) throws RouteException {
        start(policy, 1);
        assertSame(workers.get(0), choose(request(0)));
        assertTrue(Double.isFinite(decision.cost()));
        load(workers.get(0), 7, 9, 1);
        assertSame(workers.get(0), choose(request(5)));
        workers.get(0).available(false);
        assertEquals(
                Kind.NO_WORKERS,
                assertThrows(RouteException.class, () -> choose(request(5))).kind());
        assertEquals(new PolicyFailures(0, 0, 0, 0), router.status().policyFailures());
    }

    @ParameterizedTest
    @ValueSource(strings = {"load-deviation", "logits"})
    void theyAllocateNothing(String policy) {
        start(policy, 64);
        workers.forEach(worker -> worker.capacity(1_000, 0, 100));
        for (int i = 0; i < 64; i += 3) {
            cached.add(workers.get(i).slot(), 2);
            load(workers.get(i), i, i, i);
        }
        final RouteRequest request = request(64);
        assertEquals(
                0,
                Allocations.bytesPerRound(
                        5_000,
                        () -> {
                            try {
                                choose(request);
                            } catch (RouteException e) {
                                throw new AssertionError(e);
                            }
                        }));
    }
}
