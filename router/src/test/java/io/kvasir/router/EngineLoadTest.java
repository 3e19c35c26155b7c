package io.kvasir.router;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.load.EngineLoad;
import io.kvasir.core.load.OthersLoad;
import io.kvasir.router.load.LoadOutcome;
import io.kvasir.router.load.LoadReading;
import io.kvasir.router.load.LoadSource;
import io.kvasir.router.policy.RandomSource;
import io.kvasir.router.policy.RoutingMode;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicLong;

/** What engines report of their load, in decisions. The clock is virtual. */
class EngineLoadTest {
    private static final int BLOCK_SIZE = 16;
    private static final long TTL_NS = Duration.ofSeconds(5).toNanos();

    private final AtomicLong nowNs = new AtomicLong(1_000_000);
    private final Decision decision = new Decision();
    private final List<Lease> leases = new ArrayList<>(); // forgotten ones would be released
    private KvRouter router;
    private Worker first;
    private Worker second;
    private int prompts;

    private void start(boolean on) {
        start(on, "linear");
    }

    private void start(boolean on, String policy) {
        router =
                KvRouter.builder()
                        .tickedBy(nowNs::get)
                        .blockSize(BLOCK_SIZE)
                        .maxWorkers(4)
                        .random(RandomSource.seeded(7))
                        .set(RouterSettings.SELECTION_POLICY, policy)
                        .set(RouterSettings.ENGINE_LOAD, on)
                        .build();
        first = router.addWorker(new WorkerSpec(1, "first", "http://first", 0, null));
        second = router.addWorker(new WorkerSpec(1, "first", "http://first", 1, null));
    }

    @AfterEach
    void close() {
        router.close();
    }

    private RouteRequest request(int blocks) {
        final int[] prompt = new int[blocks * BLOCK_SIZE];
        prompt[0] = ++prompts;
        return router.newRequest().tokens(prompt, prompt.length);
    }

    private double cost(Worker worker) throws RouteException {
        router.select(request(4), decision);
        return decision.cost(worker == first ? 0 : 1);
    }

    private static LoadReading reading(int running, int waiting, int used) {
        return new LoadReading().running(running).waiting(waiting).usedBlocks(used);
    }

    private void pass(long ns) {
        router.tick(nowNs.addAndGet(ns));
    }

    private void book(Worker worker, int blocks) throws RouteException {
        final long before = worker.activeBlocks();
        leases.add(router.reserve(request(blocks).pin(worker), decision));
        Eventually.holds(
                "the booking",
                () ->
                        router.bookingPipeline().backlog() == 0
                                && worker.activeBlocks() == before + blocks);
    }

    @Test
    void switchedOffAReportChangesNothing() throws RouteException {
        start(false);
        final double before = cost(first);
        assertEquals(LoadOutcome.OFF, first.reportLoad(reading(9, 9, 900)));
        assertEquals(before, cost(first));
        assertNull(first.reportedLoadOrNull());
    }

    @Test
    void whatOthersHaveSentCountsAsBlocksInUseAndAsPromptsThatWait() throws RouteException {
        start(true);
        final double empty = cost(first);
        assertEquals(LoadOutcome.TAKEN, first.reportLoad(reading(2, 3, 20)));
        // 20 blocks in use, and three prompts of ten blocks each that wait
        assertEquals(empty + 20 + 30, cost(first));
        assertEquals(empty, cost(second));
        assertEquals(0, first.activeBlocks(), "what is booked is shown by itself");
        assertEquals(new OthersLoad(30 * BLOCK_SIZE, 20, 5), first.reportedLoadOrNull().others());
    }

    @ParameterizedTest
    @EnumSource(
            value = RoutingMode.class,
            names = {"KV", "POWER_OF_TWO", "LEAST_LOADED", "LEAST_CONNECTIONS"})
    void everyModeThatGoesByLoadSeesIt(RoutingMode mode) throws RouteException {
        start(true);
        first.reportLoad(reading(2, 3, 20));
        for (int i = 0; i < 20; i++) {
            router.select(request(4).mode(mode), decision);
            assertSame(second, decision.worker());
        }
    }

    @Test
    void ownBookingsAreNotCountedTwiceNorDoTheyVanish() throws RouteException {
        start(true);
        book(first, 10);
        book(first, 10);
        final double booked = cost(first);
        first.reportLoad(reading(2, 0, 20));
        assertEquals(booked, cost(first));
        first.reportLoad(reading(0, 0, 0)); // the engine has not seen them yet
        assertEquals(booked, cost(first));
        first.reportLoad(reading(3, 0, 27));
        assertEquals(booked + 7, cost(first));
        book(first, 10); // after the report: it counts by itself
        assertEquals(booked + 7 + 20, cost(first), 1e-9);
    }

    @Test
    void aReportThatIsTooOldCountsNoMore() throws RouteException {
        start(true);
        final double empty = cost(first);
        first.reportLoad(reading(2, 0, 20));
        pass(TTL_NS);
        assertEquals(empty + 20, cost(first));
        pass(1);
        assertEquals(empty, cost(first));
        assertNull(first.reportedLoadOrNull());
        assertEquals(TTL_NS + 1, first.loadSilentNs(LoadSource.EMBEDDER));
        assertEquals(-1, first.loadSilentNs(LoadSource.METRICS));
        first.reportLoad(reading(2, 0, 20));
        assertEquals(empty + 20, cost(first));
    }

    @Test
    void anOlderReportNeverTakesThePlaceOfANewerOne() throws RouteException {
        start(true);
        final double empty = cost(first);
        assertEquals(LoadOutcome.TAKEN, first.reportLoad(LoadSource.METRICS, 7, reading(1, 0, 5)));
        assertEquals(LoadOutcome.OLDER, first.reportLoad(LoadSource.METRICS, 6, reading(9, 9, 90)));
        assertEquals(empty + 5, cost(first));
        assertEquals(1, router.loadReports().of(LoadSource.METRICS, LoadOutcome.OLDER));
        assertEquals(LoadOutcome.TAKEN, second.reportLoad(LoadSource.METRICS, 6, reading(1, 0, 8)));
        assertEquals(empty + 8, cost(second));
    }

    @Test
    void anOrderThatIsFarAheadShutsOthersOutForTheTimeOfOneReportAtMost() throws RouteException {
        start(true);
        final double empty = cost(first);
        first.reportLoad(LoadSource.EVENT_PLANE, Long.MAX_VALUE, reading(1, 0, 5));
        for (int i = 0; i < 10; i++) {
            nowNs.addAndGet(TTL_NS / 10);
            assertEquals(
                    LoadOutcome.OLDER,
                    first.reportLoad(LoadSource.EVENT_PLANE, i, reading(1, 0, 50)));
        }
        nowNs.incrementAndGet(); // no tick: the report itself finds the one before it too old
        assertEquals(
                LoadOutcome.TAKEN, first.reportLoad(LoadSource.EVENT_PLANE, 1, reading(1, 0, 9)));
        assertEquals(empty + 9, cost(first));
    }

    @Test
    void aSourceThatStatesLessTakesNothingFromAnother() throws RouteException {
        start(true);
        final double empty = cost(first);
        first.reportLoad(LoadSource.METRICS, 1, reading(2, 3, 20).blocks(200).batchTokens(512));
        nowNs.addAndGet(TTL_NS / 2);
        first.reportLoad(LoadSource.EVENT_PLANE, 1, new LoadReading().usedBlocks(24));
        assertEquals(new EngineLoad(2, 3, -1, 24, 200, 512), first.reportedLoadOrNull().load());
        assertEquals(empty + 24 + 30, cost(first));
        pass(TTL_NS / 2 + 1); // the page has fallen silent, the plane has not
        assertEquals(new EngineLoad(-1, -1, -1, 24, 200, -1), first.reportedLoadOrNull().load());
        assertEquals(empty + 24, cost(first));
    }

    @ParameterizedTest
    @ValueSource(doubles = {Double.NaN, -1, Double.POSITIVE_INFINITY, 1e300})
    void aNumberThatIsNoneIsRefusedAndCounted(double value) throws RouteException {
        start(true);
        final double empty = cost(first);
        assertEquals(
                LoadOutcome.BAD_VALUE,
                first.reportLoad(new LoadReading().running(3).waiting(value)));
        assertEquals(LoadOutcome.EMPTY, first.reportLoad(new LoadReading().blocks(10)));
        assertEquals(empty, cost(first));
        assertEquals(1, router.loadReports().of(LoadSource.EMBEDDER, LoadOutcome.BAD_VALUE));
        assertEquals(1, router.loadReports().of(LoadSource.EMBEDDER, LoadOutcome.EMPTY));
    }

    @Test
    void whatAnEngineHasCountsWhereNothingElseIsKnown() {
        start(true);
        first.reportLoad(reading(0, 0, 0).blocks(512).batchTokens(2_048));
        assertEquals(512, first.kvBlocks());
        assertEquals(2_048, first.batchTokens());
        pass(TTL_NS + 1);
        assertEquals(512, first.kvBlocks(), "it is no load, and does not change");
        first.capacity(100, 0);
        assertEquals(100, first.kvBlocks());
        assertEquals(2_048, first.batchTokens());
    }

    @Test
    void theNextWorkerOfASlotHasNoneOfIt() throws RouteException {
        start(true);
        final double empty = cost(second);
        first.reportLoad(reading(2, 0, 20));
        router.removeWorker(first);
        assertEquals(LoadOutcome.UNKNOWN_WORKER, first.reportLoad(reading(2, 0, 20)));
        first = router.addWorker(new WorkerSpec(3, "third", "http://third", 0, null));
        assertEquals(empty, cost(first));
        assertNull(first.reportedLoadOrNull());
        assertEquals(-1, first.loadSilentNs(LoadSource.EMBEDDER));
    }

    @Test
    void theSameAgainCountsOnAndThenEnds() throws RouteException {
        start(true);
        final double empty = cost(first);
        for (int i = 0; i < 5; i++) {
            first.reportLoad(reading(2, 0, 20));
            pass(TTL_NS);
            assertEquals(empty + 20, cost(first));
        }
        pass(1);
        assertEquals(empty, cost(first));
        first.reportLoad(reading(2, 0, 20));
        assertEquals(empty + 20, cost(first));
    }

    @Test
    void tenThousandReportsOfManyThreadsLeaveNothingBehind() throws Exception {
        start(true);
        final double empty = cost(first);
        try (ExecutorService pool = Executors.newFixedThreadPool(4)) {
            final List<Future<?>> all = new ArrayList<>();
            for (LoadSource source : LoadSource.values()) {
                all.add(
                        pool.submit(
                                () -> {
                                    for (int i = 0; i < 2_500; i++) {
                                        final Worker worker = i % 2 == 0 ? first : second;
                                        worker.reportLoad(source, i, reading(i % 9, i % 5, i));
                                    }
                                }));
            }
            for (int i = 0; i < 1_000; i++) {
                assertTrue(cost(first) >= empty);
            }
            for (Future<?> one : all) {
                one.get();
            }
        }
        pass(TTL_NS + 1);
        assertEquals(empty, cost(first));
        assertEquals(empty, cost(second));
    }

    @Test
    void theOldFormulaGoesByWhatWaitsInTheEnginesWhereAllReportIt() throws RouteException {
        start(true, "logits");
        first.capacity(100, 0);
        second.capacity(100, 0);
        first.reportLoad(reading(4, 1, 50));
        second.reportLoad(reading(4, 4, 20));
        router.select(request(4), decision);
        assertEquals(0.50 + 1 / 4.0, decision.cost(0), 1e-12);
        assertEquals(0.20 + 4 / 4.0, decision.cost(1), 1e-12);
        assertSame(first, decision.worker());
        pass(TTL_NS + 1);
        router.select(request(4), decision);
        assertEquals(0, decision.cost(0), 1e-12);
    }

    @Test
    void anEngineWhoseCacheIsInUseAsAWholeIsFullForTheOldFormula() throws RouteException {
        start(true, "load-deviation");
        first.reportLoad(new LoadReading().running(1).usage(1).blocks(100));
        for (int i = 0; i < 20; i++) {
            router.select(request(1), decision);
            assertSame(second, decision.worker());
        }
    }

    @Test
    void limitsOfReportsThatAreNotTakenAreRefused() {
        start(true);
        final IllegalArgumentException off =
                assertThrows(
                        IllegalArgumentException.class,
                        () ->
                                KvRouter.builder()
                                        .set(RouterSettings.ENGINE_WAITING_LIMIT, 4L)
                                        .set(RouterSettings.BUSY_LEASE, Duration.ofSeconds(1))
                                        .build());
        assertTrue(off.getMessage().contains("engine-load=true"), off.getMessage());
        final IllegalArgumentException noLease =
                assertThrows(
                        IllegalArgumentException.class,
                        () ->
                                KvRouter.builder()
                                        .set(RouterSettings.ENGINE_LOAD, true)
                                        .set(RouterSettings.ENGINE_USAGE_LIMIT, 0.9)
                                        .build());
        assertTrue(noLease.getMessage().contains("busy-lease-ms"), noLease.getMessage());
    }
}
