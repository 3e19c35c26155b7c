package io.kvasir.router;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.pipeline.source.EngineStream;
import io.kvasir.pipeline.source.IndexState;
import io.kvasir.router.policy.RandomSource;
import io.kvasir.router.policy.RoutingMode;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;

class KvRouterTest {
    private static final int BLOCK_SIZE = 16;

    private final long seed = Seeds.next("KvRouterTest");
    private final Random random = new Random(seed);
    private KvRouter router =
            KvRouter.builder()
                    .tickedBy(() -> 0)
                    .blockSize(BLOCK_SIZE)
                    .maxWorkers(8)
                    .random(RandomSource.seeded(seed))
                    .build();
    private final Decision decision = new Decision();

    @AfterEach
    void close() {
        router.close();
    }

    private Worker worker(int id) {
        return router.addWorker(WorkerSpec.of(id, "w" + id, "http://w" + id));
    }

    private int[] prompt(int blocks) {
        return random.ints((long) blocks * BLOCK_SIZE, 0, 50_000).toArray();
    }

    private RouteRequest request(int[] prompt) {
        return router.newRequest().tokens(prompt, prompt.length);
    }

    /**
     * Announces the prompt's first blocks on a worker, as an engine would, and waits until they are
     * indexed.
     */
    private EngineStream announce(Worker worker, int[] prompt, int blocks) {
        final EngineStream stream =
                router.openDirect(worker, EngineMessages.source(worker.name(), BLOCK_SIZE));
        stream.onMessage(
                0, EngineMessages.stored(prompt, blocks, BLOCK_SIZE, worker.slot() * 1_000_000L));
        Eventually.holds("event 0 of " + worker, worker::ready);
        return stream;
    }

    private Lease reserveOn(Worker worker, int[] prompt) throws RouteException {
        return router.reserve(request(prompt).pin(worker), decision);
    }

    private void awaitLoad(Worker worker, long blocks, long tokens, long requests) {
        Eventually.holds(
                () ->
                        worker
                                + ": "
                                + worker.activeBlocks()
                                + " blocks, "
                                + worker.prefillTokens()
                                + " tokens, "
                                + worker.activeRequests()
                                + " requests",
                () ->
                        worker.activeBlocks() == blocks
                                && worker.prefillTokens() == tokens
                                && worker.activeRequests() == requests);
    }

    @Test
    void overlapAndLoadAreWeighedAsInTheWorkedExample() throws RouteException {
        final int[] prompt = prompt(10);
        final int[] cached = {2, 5, 8};
        final int[] decode = {10, 5, 9};
        final List<Lease> leases = new ArrayList<>();
        for (int i = 0; i < 3; i++) {
            final Worker worker = worker(i + 1);
            announce(worker, prompt, cached[i]);
            final Lease lease = reserveOn(worker, prompt(decode[i]));
            lease.prefillComplete();
            leases.add(lease);
            awaitLoad(worker, decode[i], 0, 1);
        }

        router.select(request(prompt), decision);

        // the prompt's own 10 blocks count as decode blocks on each: 18, 10, 11 and 10 more
        assertEquals(28, decision.cost(0));
        assertEquals(20, decision.cost(1));
        assertEquals(21, decision.cost(2));
        assertEquals("w2", decision.worker().name());
        assertEquals(5, decision.overlapBlocks());
        assertEquals(5 * BLOCK_SIZE, decision.predictedCachedTokens());
        assertEquals(0, decision.eventSequence());
        leases.forEach(Lease::close);
    }

    @Test
    void aWholePromptInTheCacheStillComputesItsLastToken() throws RouteException {
        final int[] prompt = prompt(4);
        announce(worker(1), prompt, 4);
        router.select(request(prompt), decision);
        assertEquals(4, decision.overlapBlocks());
        assertEquals(3 * BLOCK_SIZE, decision.predictedCachedTokens());
    }

    @Test
    void saltAndAdapterMakeOtherBlocks() throws RouteException {
        final int[] prompt = prompt(4);
        announce(worker(1), prompt, 4);
        router.select(request(prompt).salt("tenant-a"), decision);
        assertEquals(0, decision.overlapBlocks());
        router.select(request(prompt).lora("adapter"), decision);
        assertEquals(0, decision.overlapBlocks());
    }

    @Test
    void selectBooksNothing() throws RouteException {
        final Worker worker = worker(1);
        router.select(request(prompt(3)), decision);
        assertEquals(0, worker.activeRequests());
        assertEquals(0, router.activeLeases());
    }

    @Test
    void aBookingCountsAtOnceAndItsReleaseTakesAllOfItBack() throws RouteException {
        final Worker worker = worker(1);
        final int[] prompt = prompt(5);
        final Lease first = router.reserve(request(prompt), decision);
        assertEquals(5, worker.activeBlocks());
        assertEquals(80, worker.prefillTokens());
        assertEquals(1, worker.activeRequests());
        awaitLoad(worker, 5, 80, 1);
        Eventually.holds("the prompt in the active index", () -> activePrefix(prompt) == 5);

        final Lease second = router.reserve(request(prompt), decision);
        awaitLoad(worker, 5, 160, 2); // the shared blocks count once
        first.prefillComplete();
        first.prefillComplete();
        awaitLoad(worker, 5, 80, 2);
        second.outputTokens(15);
        second.outputTokens(33);
        awaitLoad(worker, 7, 80, 2);
        second.close();
        second.close();
        awaitLoad(worker, 5, 0, 1);
        first.close();
        first.prefillComplete();
        awaitLoad(worker, 0, 0, 0);
        assertEquals(0, router.activeLeases());
    }

    @Test
    void outputOfAnyLengthFillsBlocksBehindAPromptThatEndsWithinOne() throws RouteException {
        final Worker worker = worker(1);
        final int[] prompt = new int[5 * 16 - 1];
        final Lease lease =
                router.reserve(router.newRequest().tokens(prompt, prompt.length), decision);
        lease.outputTokens(1);
        Eventually.holds("a block is filled", () -> worker.activeBlocks() == 5);
        lease.outputTokens(Integer.MAX_VALUE);
        Eventually.holds("as many as are counted", () -> worker.activeBlocks() > 10_000_000);
        lease.close();
        awaitLoad(worker, 0, 0, 0);
    }

    private int activePrefix(int[] prompt) {
        try {
            router.select(request(prompt), decision);
        } catch (RouteException e) {
            throw new AssertionError(e);
        }
        return decision.activePrefixBlocks(0);
    }

    @Test
    void roundRobinTakesTurnsAndRandomSpreads() throws RouteException {
        for (int i = 0; i < 4; i++) {
            worker(i);
        }
        final int[] prompt = prompt(1);
        final List<Long> turns = new ArrayList<>();
        for (int i = 0; i < 8; i++) {
            router.select(request(prompt).mode(RoutingMode.ROUND_ROBIN), decision);
            turns.add(decision.worker().id());
        }
        assertEquals(List.of(0L, 1L, 2L, 3L, 0L, 1L, 2L, 3L), turns);
        final Set<Long> seen = new HashSet<>();
        for (int i = 0; i < 200; i++) {
            router.select(request(prompt).mode(RoutingMode.RANDOM), decision);
            seen.add(decision.worker().id());
        }
        assertEquals(4, seen.size());
    }

    @Test
    void oneThatOnlyAsksLearnsWhoseTurnIsNextAndTakesNone() throws RouteException {
        for (int i = 0; i < 2; i++) {
            worker(i);
        }
        final RouteRequest one = request(prompt(1)).mode(RoutingMode.ROUND_ROBIN);
        for (int i = 0; i < 4; i++) {
            for (int asked = 0; asked <= i; asked++) {
                router.peek(one, decision);
                assertEquals(i % 2, decision.worker().id());
            }
            try (Lease lease = router.reserve(one, decision)) {
                assertEquals(i % 2, lease.worker().id());
            }
        }
    }

    @Test
    void directGoesWhereItIsToldOrRefuses() throws RouteException {
        worker(1);
        final Worker second = worker(2);
        router.select(request(prompt(1)).mode(RoutingMode.DIRECT).pin(second), decision);
        assertSame(second, decision.worker());
        final RouteException unpinned =
                assertThrows(
                        RouteException.class,
                        () -> router.select(request(prompt(1)).mode(RoutingMode.DIRECT), decision));
        assertEquals(RouteException.Kind.INVALID, unpinned.kind());
        second.available(false);
        final RouteException gone =
                assertThrows(
                        RouteException.class,
                        () ->
                                router.select(
                                        request(prompt(1)).mode(RoutingMode.DIRECT).pin(second),
                                        decision));
        assertEquals(RouteException.Kind.PINNED_UNAVAILABLE, gone.kind());
    }

    @Test
    void theWeightOfARequestOverridesTheRouters() throws RouteException {
        final Worker holder = worker(1);
        final Worker idle = worker(2);
        final int[] prompt = prompt(8);
        announce(holder, prompt, 8);
        try (Lease busy = reserveOn(holder, prompt(12))) {
            busy.prefillComplete();
            awaitLoad(holder, 12, 0, 1);
            router.select(request(prompt).overlapWeight(10), decision);
            assertSame(holder, decision.worker());
            router.select(request(prompt).overlapWeight(0), decision);
            assertSame(idle, decision.worker());
        }
        assertThrows(IllegalArgumentException.class, () -> request(prompt).overlapWeight(-1));
        for (double bad : new double[] {-1e-9, Double.NaN, Double.POSITIVE_INFINITY}) {
            assertThrows(IllegalArgumentException.class, () -> request(prompt).overlapCredit(bad));
            assertThrows(
                    IllegalArgumentException.class,
                    () -> request(prompt).sharedCacheMultiplier(bad));
        }
        assertEquals(
                "sharedCacheMultiplier=1.5 must be 0 to 1, as shared-cache-multiplier",
                assertThrows(
                                IllegalArgumentException.class,
                                () -> request(prompt).sharedCacheMultiplier(1.5))
                        .getMessage());
        assertThrows(IllegalArgumentException.class, () -> request(prompt).temperature(Double.NaN));
    }

    @Test
    void excludedAndUnavailableWorkersAreNamedInTheRefusal() throws RouteException {
        final RouteException none =
                assertThrows(
                        RouteException.class, () -> router.select(request(prompt(1)), decision));
        assertEquals(RouteException.Kind.NO_WORKERS, none.kind());
        final Worker only = worker(1);
        final RouteException excluded =
                assertThrows(
                        RouteException.class,
                        () -> router.select(request(prompt(1)).exclude(only), decision));
        assertEquals(RouteException.Kind.ALL_EXCLUDED, excluded.kind());
        assertEquals(Decision.Exclusion.EXCLUDED, decision.exclusion(0));
        only.available(false);
        assertThrows(RouteException.class, () -> router.select(request(prompt(1)), decision));
        assertEquals(Decision.Exclusion.UNAVAILABLE, decision.exclusion(0));
    }

    @Test
    void bookingsBeyondTheLimitAreRefusedAndLeaveNoLoad() throws RouteException {
        router.close();
        router = ticked().maxActiveRequests(2).build();
        final Worker worker = worker(1);
        final int[] prompt = prompt(2);
        final Lease first = router.reserve(request(prompt), decision);
        final Lease second = router.reserve(request(prompt), decision);
        final RouteException refused =
                assertThrows(RouteException.class, () -> router.reserve(request(prompt), decision));
        assertEquals(RouteException.Kind.OVERLOADED, refused.kind());
        assertTrue(refused.getMessage().contains("max-active-requests=2"), refused.getMessage());
        assertTrue(refused.kind().retryable());
        first.close();
        router.reserve(request(prompt), decision).close();
        second.close();
        awaitLoad(worker, 0, 0, 0);
    }

    /** Keeps the booking writer from its work until the latch is open. */
    private CountDownLatch blockBookings() {
        final CountDownLatch go = new CountDownLatch(1);
        assertTrue(
                router.bookingPipeline()
                        .workerGone(
                                7,
                                () -> {
                                    try {
                                        go.await();
                                    } catch (InterruptedException e) {
                                        Thread.currentThread().interrupt();
                                    }
                                }));
        return go;
    }

    @Test
    void oneThreadThatReservesAndClosesIsNeverRefusedHoweverFarTheWriterIsBehind()
            throws RouteException {
        final Worker worker = worker(1);
        final int[] prompt = prompt(2);
        final RouteRequest request = request(prompt);
        final Lease lease = new Lease();
        final CountDownLatch go = blockBookings();
        for (int i = 0; i < 60_000; i++) {
            router.reserve(request, decision, lease);
            lease.prefillComplete();
            lease.close();
        }
        assertEquals(0, router.activeLeases());
        assertEquals(0, worker.activeRequests());
        go.countDown();
        awaitLoad(worker, 0, 0, 0);
    }

    @Test
    void anOverloadThatTheWriterCausesIsCalledSo() throws RouteException {
        router.close();
        router = KvRouter.builder().maxWorkers(8).maxActiveRequests(256).build();
        worker(1);
        final RouteRequest request = request(prompt(1));
        final List<Lease> leases = new ArrayList<>();
        for (int i = 0; i < 256; i++) {
            leases.add(router.reserve(request, decision));
        }
        awaitApplied();
        final CountDownLatch go = blockBookings();
        leases.forEach(Lease::close);
        leases.clear();
        for (int i = 0; i < 128; i++) {
            leases.add(router.reserve(request, decision)); // a forgotten one would be released
        }
        final RouteException refused =
                assertThrows(RouteException.class, () -> router.reserve(request, decision));
        go.countDown();
        assertEquals(RouteException.Kind.OVERLOADED, refused.kind());
        assertTrue(refused.getMessage().contains("writer is behind: open=128 of max-active"));
        assertTrue(refused.getMessage().contains("booking-wait"), refused.getMessage());
        leases.forEach(Lease::close);
    }

    @Test
    void aLeaseTakesOneBookingAfterTheOther() throws RouteException {
        final Worker worker = worker(1);
        final Lease lease = new Lease();
        lease.close();
        lease.prefillComplete();
        assertFalse(lease.isOpen());
        router.reserve(request(prompt(2)), decision, lease);
        final long first = lease.requestId();
        assertTrue(lease.isOpen());
        assertThrows(
                IllegalStateException.class,
                () -> router.reserve(request(prompt(3)), decision, lease));
        lease.close();
        router.reserve(request(prompt(3)), decision, lease);
        assertFalse(router.bookingPipeline().free(first), "late");
        assertTrue(lease.isOpen());
        awaitLoad(worker, 3, 48, 1);
        lease.close();
        lease.close();
        awaitLoad(worker, 0, 0, 0);
    }

    /** All that was published before is applied: steps of bookings and events. */
    private void awaitApplied() {
        Eventually.holds(
                "empty rings",
                () -> router.bookingPipeline().backlog() + router.indexPipeline().backlog() == 0);
    }

    /** By these tests alone, from 0 on. */
    private static RouterConfig.Builder ticked() {
        return KvRouter.builder().blockSize(BLOCK_SIZE).tickedBy(() -> 0);
    }

    private void tick(long nowMs) {
        router.tick(TimeUnit.MILLISECONDS.toNanos(nowMs));
        awaitApplied();
    }

    @ParameterizedTest
    @CsvSource({"1_000_000_000, 1_000, 1_002", "0, 0, 2", "-5_000_000_000, -5_000, -4_998"})
    void aForgottenLeaseEndsBehindItsDeadline(long deadlineNs, long nowMs, long laterMs)
            throws RouteException {
        final Worker worker = worker(1);
        final Lease forgotten = router.reserve(request(prompt(2)).deadline(deadlineNs), decision);
        final Lease kept = router.reserve(request(prompt(4)), decision);
        tick(nowMs);
        assertTrue(forgotten.isOpen());
        tick(laterMs);
        assertFalse(forgotten.isOpen());
        assertTrue(kept.isOpen());
        assertEquals(1, router.expiredLeases());
        forgotten.prefillComplete();
        forgotten.outputTokens(64);
        forgotten.close();
        awaitLoad(worker, 4, 64, 1);
        assertEquals(1, router.activeLeases());
        kept.close();
        awaitLoad(worker, 0, 0, 0);
    }

    @Test
    void aDeadlineInThePastEndsTheBookingAtTheNextTick() throws RouteException {
        final Worker worker = worker(1);
        tick(5_000);
        final Lease late = router.reserve(request(prompt(2)).deadline(1_000_000), decision);
        assertTrue(late.isOpen());
        tick(5_200);
        assertFalse(late.isOpen());
        awaitLoad(worker, 0, 0, 0);
    }

    @Test
    void aRequestThatIsResetHasNoDeadline() throws RouteException {
        worker(1);
        final int[] prompt = prompt(2);
        final RouteRequest reused = request(prompt).deadline(1).reset();
        try (Lease lease = router.reserve(reused.tokens(prompt, prompt.length), decision)) {
            tick(60_000);
            assertTrue(lease.isOpen());
        }
    }

    @Test
    void aLateCloseOfAnExpiredLeaseLeavesThePlacesNextBookingAlone() throws RouteException {
        router.close();
        router = ticked().maxActiveRequests(1).build();
        final Worker worker = worker(1);
        final Lease old = router.reserve(request(prompt(2)).deadline(1), decision);
        tick(1_000);
        final Lease next = router.reserve(request(prompt(3)), decision);
        assertEquals((int) old.requestId(), (int) next.requestId(), "the same place");
        old.prefillComplete();
        old.close();
        assertTrue(next.isOpen());
        awaitLoad(worker, 3, 48, 1);
        next.close();
        awaitLoad(worker, 0, 0, 0);
    }

    @Test
    void aLeaseThatIsClosedWhileItExpiresGivesItsPlaceBackOnce() throws Exception {
        closeWhileTheyExpire(400);
    }

    @Tag("integration") // a race: the more rounds, the more is seen
    @Test
    void noneOfManyLeasesThatAreClosedWhileTheyExpireGivesItsPlaceBackTwice() throws Exception {
        closeWhileTheyExpire(10_000);
    }

    private void closeWhileTheyExpire(int rounds) throws Exception {
        router.close();
        final int places = 4;
        router = ticked().maxActiveRequests(places).build();
        final Worker worker = worker(1);
        final int[] prompt = prompt(3);
        try (ExecutorService ticker = Executors.newSingleThreadExecutor()) {
            for (int round = 1; round <= rounds; round++) {
                final long now = round * 10_000_000L;
                final List<Lease> leases = new ArrayList<>();
                for (int i = 0; i < places; i++) {
                    leases.add(router.reserve(request(prompt).deadline(now), decision));
                }
                final Future<?> ticked = ticker.submit(() -> router.tick(now + 5_000_000));
                leases.forEach(Lease::close);
                ticked.get();
                awaitApplied();
                assertEquals(0, router.activeLeases());
            }
        }
        awaitLoad(worker, 0, 0, 0);
        assertEquals(0, router.bookingPipeline().failures());
    }

    @Test
    void theLeasesOfARemovedWorkerEndWithIt() throws RouteException {
        router.close();
        router = ticked().maxActiveRequests(2).build();
        final Worker gone = worker(1);
        final Lease held = reserveOn(gone, prompt(2));
        router.reserve(request(prompt(2)).deadline(1), decision); // never closed
        router.removeWorker(gone);
        awaitApplied();
        assertFalse(held.isOpen());
        assertEquals(0, router.activeLeases());

        final Worker next = worker(2);
        assertEquals(gone.slot(), next.slot());
        final Lease first = router.reserve(request(prompt(4)), decision);
        final Lease second = router.reserve(request(prompt(5)), decision);
        held.prefillComplete();
        held.close();
        tick(1_000);
        awaitLoad(next, 9, 144, 2);
        assertEquals(0, router.expiredLeases());
        first.close();
        second.close();
        awaitLoad(next, 0, 0, 0);
    }

    @Test
    void aBookingWhoseBlocksDoNotFitIsOneAsOthersAre() throws RouteException {
        router.close();
        router =
                KvRouter.builder()
                        .blockSize(BLOCK_SIZE)
                        .maxBlocks(8, 8)
                        .maxActiveRequests(1)
                        .build();
        final Worker worker = worker(1);
        for (int i = 0; i < 3; i++) {
            final Lease lease = router.reserve(request(prompt(20)), decision);
            awaitApplied();
            assertTrue(lease.isOpen());
            awaitLoad(worker, 20, 20 * BLOCK_SIZE, 1);
            assertThrows(RouteException.class, () -> router.reserve(request(prompt(1)), decision));
            lease.close();
            awaitLoad(worker, 0, 0, 0);
        }
    }

    @Test
    void theIndexHasTheBytesThatItIsGiven() {
        final long byLimits = router.index().bytes();
        router.close();
        router = KvRouter.builder().maxWorkers(8).indexBytes(1 << 20).build();
        assertEquals(1 << 20, router.settings().get(RouterSettings.INDEX_BYTES));
        assertEquals(1 << 20, router.index().config().budgetBytes());
        assertTrue(router.index().bytes() < byLimits, () -> router.index().bytes() + " bytes");
    }

    @Test
    void theLeastIndexTakesStores() throws RouteException {
        router.close();
        router =
                KvRouter.builder()
                        .blockSize(BLOCK_SIZE)
                        .indexBytes(RouterSettings.MIN_INDEX_BYTES)
                        .build();
        final int[] prompt = prompt(4);
        announce(worker(1), prompt, 4);
        router.select(request(prompt), decision);
        assertEquals(4, decision.overlapBlocks());
    }

    @ParameterizedTest
    @ValueSource(longs = {-1, 1, RouterSettings.MIN_INDEX_BYTES - 1, 137_438_953_345L})
    void anIndexSizeOutOfRangeIsRefusedWithItsLimits(long bytes) {
        final RouterConfig.Builder builder = KvRouter.builder();
        final String message =
                assertThrows(IllegalArgumentException.class, () -> builder.indexBytes(bytes))
                        .getMessage();
        assertEquals(
                "index-bytes=" + bytes + " is out of range; range: 0 or 65536..137438953344",
                message);
    }

    @Test
    void aTickAfterTheEndDoesNothing() {
        router.close();
        router.tick(1);
    }

    @Test
    void aRemovedWorkersSlotServesItsSuccessorWithoutItsBlocks() throws RouteException {
        final int[] prompt = prompt(6);
        final Worker old = worker(1);
        announce(old, prompt, 6);
        router.removeWorker(old);
        assertEquals(IndexState.GONE, old.state());
        awaitApplied();
        assertEquals(0, router.index().heldBlocks(old.slot()));
        assertEquals(old.slot(), worker(2).slot());
        router.select(request(prompt), decision);
        assertEquals(0, decision.overlapBlocks());
        assertFalse(router.workers().contains(old));
    }

    @Test
    void concurrentCallersSeeEachOthersBookings() throws Exception {
        final int callers = 16;
        for (int i = 0; i < 4; i++) {
            worker(i);
        }
        final CountDownLatch start = new CountDownLatch(1);
        // The caller of a worker's k-th booking has not seen 3 others at most, and one of the other
        // three workers has (16 - k) / 3 at most: k - 4 <= (16 - k) / 3, so k is 7 at most.
        // With all at once, as on 16 cores, each may choose as if there were no other.
        final Semaphore atOnce = new Semaphore(4);
        final List<Future<Lease>> leases = new ArrayList<>();
        try (ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor()) {
            for (int i = 0; i < callers; i++) {
                final int[] prompt = prompt(20);
                leases.add(
                        threads.submit(
                                () -> {
                                    start.await();
                                    atOnce.acquire();
                                    try {
                                        return router.reserve(request(prompt), new Decision());
                                    } finally {
                                        atOnce.release();
                                    }
                                }));
            }
            start.countDown();
            for (Future<Lease> lease : leases) {
                assertNotNull(lease.get(1, TimeUnit.MINUTES));
            }
        }
        long total = 0;
        for (Worker worker : router.workers()) {
            assertTrue(
                    worker.activeRequests() <= callers / 2,
                    worker + ": " + worker.activeRequests());
            total += worker.activeRequests();
        }
        assertEquals(callers, total);
        for (Future<Lease> lease : leases) {
            lease.get().close();
        }
        for (Worker worker : router.workers()) {
            awaitLoad(worker, 0, 0, 0);
        }
    }
}
