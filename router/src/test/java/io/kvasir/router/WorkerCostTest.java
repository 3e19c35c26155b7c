package io.kvasir.router;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.router.policy.CandidateWorker;
import io.kvasir.router.policy.RandomSource;
import io.kvasir.router.policy.RoutingMode;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/** Costs that a request brings with it. */
class WorkerCostTest {
    private static final int BLOCK_SIZE = 16;
    private static final double INFINITE = Double.POSITIVE_INFINITY;

    private final long seed = Seeds.next("WorkerCostTest");
    private final Random random = new Random(seed);
    private final Decision decision = new Decision();
    private final KvRouter router =
            KvRouter.builder()
                    .tickedBy(() -> 0)
                    .blockSize(BLOCK_SIZE)
                    .maxWorkers(200)
                    .maxBlocks(4096, 8192)
                    .random(RandomSource.seeded(seed))
                    .build();
    private final Map<Worker, Double> costs = new ConcurrentHashMap<>();
    private final List<Lease> leases = new ArrayList<>(); // a forgotten one would be released

    @AfterEach
    void close() {
        router.close();
    }

    private Worker worker(int id, double cost) {
        final Worker worker = router.addWorker(WorkerSpec.of(id, "w" + id, "http://w" + id));
        costs.put(worker, cost);
        return worker;
    }

    private RouteRequest request() {
        return router.newRequest()
                .tokens(random.ints(4 * BLOCK_SIZE, 0, 50_000).toArray(), 4 * BLOCK_SIZE)
                .addCost(candidate -> costs.get(candidate.worker()));
    }

    @Test
    void addsToWhatAWorkerCosts() throws RouteException {
        worker(1, 0.5);
        final Worker near = worker(2, 0.25);
        router.select(request(), decision);
        assertSame(near, decision.worker());
        assertEquals(0.25, decision.addedBlocks(1));
        assertEquals(0.25, decision.cost(0) - decision.cost(1), 1e-9);
        assertEquals(decision.cost(1), decision.cost());

        // now the near one is busy by more than the way
        leases.add(router.reserve(request(), decision));
        Eventually.holds("an empty ring", () -> router.bookingPipeline().backlog() == 0);
        router.select(request(), decision);
        assertNotSame(near, decision.worker());
    }

    @Test
    void seesWhatTheDecisionKnowsOfACandidate() throws RouteException {
        final Worker worker = worker(1, 0);
        final List<String> seen = new ArrayList<>();
        router.select(
                request()
                        .addCost(
                                c -> {
                                    seen.add(
                                            c.worker()
                                                    + " "
                                                    + c.requestBlocks()
                                                    + " "
                                                    + c.overlapBlocks()
                                                    + " "
                                                    + c.prefillBlocks()
                                                    + " "
                                                    + c.decodeBlocks()
                                                    + " "
                                                    + c.activeRequests());
                                    return 0;
                                }),
                decision);
        assertEquals(List.of(worker + " 4 0 4.0 4 0"), seen);
    }

    @Test
    void theCheapestWorkerOfManyWinsWhateverTheirLoads() throws RouteException {
        for (int id = 0; id < 150; id++) {
            worker(id, random.nextInt(20) / 4.0);
        }
        for (int i = 0; i < 100; i++) {
            leases.add(router.reserve(request(), decision));
        }
        Eventually.holds("an empty ring", () -> router.bookingPipeline().backlog() == 0);
        for (int i = 0; i < 100; i++) {
            router.select(request(), decision);
            double least = INFINITE;
            for (int c = 0; c < decision.candidateCount(); c++) {
                final double own = costs.get(decision.candidate(c));
                assertEquals(own, decision.addedBlocks(c));
                final double cost = decision.prefillBlocks(c) + decision.decodeBlocks(c) + own;
                assertEquals(cost, decision.cost(c), 1e-9);
                least = Math.min(least, cost);
            }
            assertEquals(least, decision.cost(), 1e-9);
        }
    }

    @ParameterizedTest
    @EnumSource(value = RoutingMode.class, names = "DIRECT", mode = EnumSource.Mode.EXCLUDE)
    void anInfiniteCostTakesAWorkerOutInEveryMode(RoutingMode mode) throws RouteException {
        final Set<Worker> near = new HashSet<>();
        for (int id = 0; id < 150; id++) {
            final boolean far = random.nextInt(10) > 0;
            final Worker worker = worker(id, far ? INFINITE : 1);
            if (!far) {
                near.add(worker);
            }
        }
        near.add(worker(150, 1));
        final Set<Worker> chosen = new HashSet<>();
        for (int i = 0; i < 2_000; i++) {
            router.select(request().mode(mode), decision);
            chosen.add(decision.worker());
        }
        assertEquals(near, chosen);
        for (int i = 0; i < decision.candidateCount(); i++) {
            final boolean far = !near.contains(decision.candidate(i));
            assertEquals(
                    far ? Decision.Exclusion.OUT_OF_REACH : Decision.Exclusion.NONE,
                    decision.exclusion(i));
            assertEquals(far ? 0 : 1, decision.addedBlocks(i));
            assertEquals(far, Double.isNaN(decision.cost(i)));
        }
    }

    @Test
    void aRequestThatNoWorkerIsInReachOfSaysSo() {
        final Worker first = worker(1, INFINITE);
        worker(2, INFINITE);
        assertRefused(request(), RouteException.Kind.NO_WORKERS, "2 cost the request infinitely");
        assertRefused(
                request().exclude(first),
                RouteException.Kind.ALL_EXCLUDED,
                "1 failed this request before, 1 are unavailable, 1 of them by their cost");
        assertRefused(
                request().pin(first),
                RouteException.Kind.PINNED_UNAVAILABLE,
                "costs the request infinitely");
        assertRefused(
                request().pin(first).mode(RoutingMode.DIRECT),
                RouteException.Kind.PINNED_UNAVAILABLE,
                "costs the request infinitely");
    }

    private void assertRefused(RouteRequest request, RouteException.Kind kind, String text) {
        final RouteException refused =
                assertThrows(RouteException.class, () -> router.select(request, decision));
        assertEquals(kind, refused.kind());
        assertTrue(refused.getMessage().contains(text), refused.getMessage());
    }

    @Test
    void whatIsNoNumberIsTheDearestAndStillACandidate() throws RouteException {
        final Worker odd = worker(1, Double.NaN);
        final Worker dear = worker(2, Double.MAX_VALUE);
        final Worker cheap = worker(3, -INFINITE);
        router.select(request(), decision);
        assertSame(cheap, decision.worker());
        router.select(request().exclude(cheap), decision);
        assertTrue(List.of(odd, dear).contains(decision.worker()), "one of the dearest");
        router.select(request().exclude(cheap).exclude(dear), decision);
        assertSame(odd, decision.worker());
    }

    @Test
    void isNotAskedAboutWorkersThatAreNoCandidates() throws RouteException {
        final Worker excluded = worker(1, 0);
        final Worker unavailable = worker(2, 0);
        unavailable.available(false);
        final Worker asked = worker(3, 0);
        final List<CandidateWorker> seen = new ArrayList<>();
        router.select(
                request()
                        .exclude(excluded)
                        .addCost(
                                candidate -> {
                                    seen.add(candidate.worker());
                                    return 0;
                                }),
                decision);
        assertEquals(List.of(asked), seen);
        assertEquals(0, decision.addedBlocks(0));
    }

    @Test
    void aCostThatThrowsFailsItsOwnDecisionAlone() throws RouteException {
        worker(1, 0);
        final RouteRequest broken =
                request()
                        .addCost(
                                candidate -> {
                                    throw new IllegalStateException("broken");
                                });
        for (int i = 0; i < 100; i++) {
            assertThrows(IllegalStateException.class, () -> router.reserve(broken, new Decision()));
        }
        router.select(broken.reset().tokens(new int[40], 40), decision);
        assertEquals(0, decision.candidate(0).activeRequests());
    }

    @Test
    void mayChangeTheWorkersFromWithin() throws RouteException {
        final Worker removed = worker(1, 0);
        worker(2, 1);
        router.select(
                request()
                        .addCost(
                                candidate -> {
                                    if (candidate.worker() == removed) {
                                        router.removeWorker(removed);
                                        worker(3, 0);
                                    }
                                    return costs.get(candidate.worker());
                                }),
                decision);
        assertEquals(2, decision.candidateCount(), "those at the moment of the decision");
    }

    @Test
    void aFurtherDecisionOfTheSameObjectsHasNoTraceOfIt() throws RouteException {
        for (int id = 0; id < 130; id++) {
            worker(id, id % 2 == 0 ? INFINITE : 2);
        }
        final RouteRequest request = request();
        router.select(request, decision);
        router.select(request.reset().tokens(new int[40], 40), decision);
        for (int i = 0; i < decision.candidateCount(); i++) {
            assertEquals(Decision.Exclusion.NONE, decision.exclusion(i));
            assertEquals(0, decision.addedBlocks(i));
        }
    }
}
