package io.kvasir.router;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.router.Decision.Exclusion;
import io.kvasir.router.RouteException.Kind;
import io.kvasir.router.policy.RoutingMode;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;

/** Workers beyond a limit of load. */
class BusyLimitsTest {
    private static final int BLOCK_SIZE = 16;

    private final Decision decision = new Decision();
    private final Random random = new Random(Seeds.next("BusyLimitsTest"));
    private final List<Lease> leases = new ArrayList<>(); // forgotten ones would be released
    private KvRouter router;
    private int prompts;

    @AfterEach
    void close() {
        router.close();
    }

    private void start(double blocks, long tokens, double share) {
        router =
                KvRouter.builder()
                        .tickedBy(() -> 0)
                        .blockSize(BLOCK_SIZE)
                        .maxWorkers(128)
                        .set(RouterSettings.BUSY_DECODE_BLOCKS, blocks)
                        .set(RouterSettings.BUSY_PREFILL_TOKENS, tokens)
                        .set(RouterSettings.BUSY_PREFILL_SHARE, share)
                        .build();
    }

    private Worker worker(int id, long kvBlocks, long batchTokens) {
        final Worker worker = router.addWorker(WorkerSpec.of(id, "w" + id, "http://w" + id));
        worker.capacity(kvBlocks, batchTokens);
        return worker;
    }

    /** A prompt that nothing else has. */
    private RouteRequest request(int blocks) {
        final int[] prompt = new int[blocks * BLOCK_SIZE];
        prompt[0] = ++prompts;
        return router.newRequest().tokens(prompt, prompt.length);
    }

    private Lease book(Worker worker, int blocks) throws RouteException {
        final long requests = worker.activeRequests();
        final long before = worker.activeBlocks();
        final Lease lease = router.reserve(request(blocks).pin(worker), decision);
        leases.add(lease);
        EngineMessages.awaitLoad(router, worker, requests + 1, before + blocks);
        return lease;
    }

    private Worker choose(RoutingMode mode) throws RouteException {
        router.select(request(1).mode(mode), decision);
        return decision.worker();
    }

    private RouteException refused(RouteRequest request) {
        return assertThrows(RouteException.class, () -> router.select(request, decision));
    }

    @ParameterizedTest
    @EnumSource(value = RoutingMode.class, names = "DIRECT", mode = EnumSource.Mode.EXCLUDE)
    void aBusyWorkerIsNoCandidateInAnyModeUntilItsLoadIsBelow(RoutingMode mode)
            throws RouteException {
        start(0.5, 0, 0);
        final Worker small = worker(1, 20, 0);
        final Worker large = worker(2, 2_000, 0);
        final Lease at = book(small, 10);
        final Lease beyond = book(small, 1);
        book(large, 500);
        for (int i = 0; i < 20; i++) {
            assertSame(large, choose(mode));
        }
        assertEquals(Exclusion.BUSY, decision.exclusion(0));
        assertEquals(Exclusion.NONE, decision.exclusion(1));
        beyond.close();
        EngineMessages.awaitLoad(router, small, 1, 10);
        choose(mode);
        assertEquals(
                Exclusion.NONE, decision.exclusion(0), "as much as the limit is not beyond it");
        at.close();
    }

    @Test
    void whereAllAreBusyTheRefusalNamesLimitAndValue() throws RouteException {
        start(0, 100, 0);
        final Worker one = worker(1, 0, 0);
        final Worker two = worker(2, 0, 0);
        book(one, 20);
        final Lease less = book(two, 10);
        final RouteException refused = refused(request(1));
        assertEquals(Kind.ALL_WORKERS_BUSY, refused.kind());
        assertTrue(refused.kind().retryable());
        assertTrue(
                refused.getMessage()
                        .contains(
                                "2 of 2 workers could be used and are busy; the one with the least"
                                        + " load is w2/0: prefill tokens=160,"
                                        + " active-prefill-tokens-threshold=100"),
                refused.getMessage());
        assertEquals(Kind.ALL_WORKERS_BUSY, refused(request(1).pin(one)).kind());
        assertEquals(
                Kind.ALL_WORKERS_BUSY,
                refused(request(1).mode(RoutingMode.DIRECT).pin(one)).kind());
        less.prefillComplete();
        Eventually.holds(
                "prefilled",
                () -> {
                    try {
                        return choose(RoutingMode.KV) == two;
                    } catch (RouteException e) {
                        return false; // not seen yet
                    }
                });
        two.available(false);
        assertEquals(Kind.ALL_WORKERS_BUSY, refused(request(1)).kind());
        router.removeWorker(one);
        assertEquals(Kind.NO_WORKERS, refused(request(1)).kind());
    }

    @Test
    void whatIsNotKnownOfAWorkerDoesNotMakeItBusy() throws RouteException {
        start(0.01, 0, 0.01);
        final Worker unknown = worker(1, 0, 0);
        book(unknown, 100);
        assertSame(unknown, choose(RoutingMode.KV));
        unknown.capacity(-1, 5_000);
        assertEquals(
                "1 of 1 workers could be used and are busy; the one with the least load is w1/0:"
                        + " prefill tokens=1600 of 5000 a step,"
                        + " active-prefill-tokens-threshold-frac=0.01; add workers, or raise the"
                        + " limit",
                refused(request(1)).getMessage());
        unknown.capacity(1_000, -1);
        assertEquals(Kind.ALL_WORKERS_BUSY, refused(request(1)).kind());
        unknown.capacity(100_000, 1_000_000);
        assertSame(unknown, choose(RoutingMode.KV));
    }

    @Test
    void inManyFleetsAChoiceIsNeverBusyAndARefusalIsOfAll() throws RouteException {
        start(0.5, 0, 0);
        final List<Worker> workers = new ArrayList<>();
        for (int i = 0; i < 100; i++) {
            workers.add(worker(i, 1 + random.nextInt(60), 0));
        }
        final List<RoutingMode> modes = new ArrayList<>(List.of(RoutingMode.values()));
        modes.remove(RoutingMode.DIRECT);
        int refused = 0;
        for (int i = 0; i < 3_000; i++) {
            try {
                final RoutingMode mode = modes.get(random.nextInt(modes.size()));
                leases.add(router.reserve(request(1 + random.nextInt(3)).mode(mode), decision));
                assertTrue(
                        decision.decodeBlocks(workers.indexOf(decision.worker()))
                                        - decision.requestBlocks()
                                <= 0.5 * decision.worker().kvBlocks(),
                        decision::explain);
            } catch (RouteException e) {
                assertEquals(Kind.ALL_WORKERS_BUSY, e.kind());
                for (Worker worker : workers) {
                    assertTrue(worker.activeBlocks() > 0.5 * worker.kvBlocks(), worker.toString());
                }
                refused++;
            }
        }
        assertTrue(refused > 0, "the fleet was never full");
    }
}
