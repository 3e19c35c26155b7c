package io.kvasir.router;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.load.PredictedPrefixesConfig;
import io.kvasir.pipeline.source.IndexState;
import io.kvasir.router.policy.RandomSource;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;

/** Workers without events: what they hold is predicted from what was routed to them. */
class ApproximateModeTest {
    private static final int BLOCK_SIZE = 16;
    private static final long TTL_MS = 120_000;
    private static final long START_MS = -50_000; // a clock may begin anywhere

    private final long seed = Seeds.next("ApproximateModeTest");
    private final Random random = new Random(seed);
    private final Decision decision = new Decision();
    private KvRouter router = router(1_000);

    private KvRouter router(long maxBlocks) {
        return KvRouter.builder()
                .blockSize(BLOCK_SIZE)
                .tickedBy(() -> 0)
                .maxWorkers(4)
                .random(RandomSource.seeded(seed))
                .routedPrefixes(
                        new PredictedPrefixesConfig(
                                1, maxBlocks, 0.5, TimeUnit.MILLISECONDS.toNanos(TTL_MS)))
                .build();
    }

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

    private void awaitApplied() {
        Eventually.holds(
                "empty rings",
                () -> router.bookingPipeline().backlog() + router.indexPipeline().backlog() == 0);
    }

    private void tick(long ms) {
        router.tick(TimeUnit.MILLISECONDS.toNanos(ms));
        awaitApplied();
    }

    /** A whole request: booked, answered, released. */
    private Worker route(int[] prompt) throws RouteException {
        try (Lease lease = router.reserve(request(prompt), decision)) {
            return lease.worker();
        } finally {
            awaitApplied();
        }
    }

    private int overlap(int[] prompt, Worker worker) throws RouteException {
        router.select(request(prompt).pin(worker), decision);
        return decision.overlapBlocks();
    }

    @Test
    void theSamePromptGoesToTheSameWorkerAndTheDecisionSaysWhy() throws RouteException {
        for (int i = 0; i < 4; i++) {
            worker(i);
        }
        final int[] prompt = prompt(8);
        final Worker first = route(prompt);
        for (int i = 0; i < 20; i++) {
            assertSame(first, route(prompt));
            assertEquals(8, decision.overlapBlocks());
            assertEquals(7 * BLOCK_SIZE, decision.predictedCachedTokens());
            assertEquals(1 + 8, decision.cost(), "one block to prefill, eight in use");
        }
        assertEquals(IndexState.PREDICTED, decision.state(first.slot()));
        assertTrue(decision.explain().contains("holds 8 blocks (PREDICTED, event -1)"));
        assertEquals(8, router.routedPrefixes().blocks());
        assertEquals(21, router.routedPrefixes().visits());
        assertEquals(0, first.indexedBlocks());
    }

    @Test
    void aPromptCountsForItsTtlAndALaterOneRefreshesWhatItShares() throws RouteException {
        final Worker worker = worker(1);
        final int[] prompt = prompt(6);
        final int[] half = Arrays.copyOf(prompt, 3 * BLOCK_SIZE);
        tick(START_MS);
        route(prompt);
        tick(START_MS + 60_000);
        route(half);
        tick(START_MS + TTL_MS);
        assertEquals(6, overlap(prompt, worker));
        tick(START_MS + TTL_MS + 1);
        assertEquals(3, overlap(prompt, worker));
        tick(START_MS + 60_000 + TTL_MS + 1);
        assertEquals(0, overlap(prompt, worker));
        assertEquals(2, router.routedPrefixes().expired());
        assertEquals(0, router.routedPrefixes().blocks());
    }

    @Test
    void whatCameBeforeTheFirstTickIsAsOldAsThat() throws RouteException {
        final Worker worker = worker(1);
        final int[] prompt = prompt(4);
        route(prompt);
        tick(START_MS);
        tick(START_MS + TTL_MS);
        assertEquals(4, overlap(prompt, worker));
        tick(START_MS + TTL_MS + 1);
        assertEquals(0, overlap(prompt, worker));
    }

    @Test
    void aboveTheLimitOfBlocksTheOldestPromptsGo() throws RouteException {
        router.close();
        router = router(12);
        final Worker worker = worker(1);
        final int[] oldest = prompt(4);
        final int[] older = prompt(4);
        final int[] newest = prompt(5);
        route(oldest);
        route(older);
        assertEquals(4, overlap(oldest, worker));
        route(newest); // 13 blocks, down to 6
        assertEquals(0, overlap(oldest, worker));
        assertEquals(0, overlap(older, worker));
        assertEquals(5, overlap(newest, worker));
        assertEquals(2, router.routedPrefixes().pruned());
    }

    @Test
    void aRemovedWorkersPredictionsGoWithIt() throws RouteException {
        final Worker old = worker(1);
        final int[] prompt = prompt(6);
        route(prompt);
        router.removeWorker(old);
        assertEquals(IndexState.GONE, old.state());
        awaitApplied();
        assertEquals(0, router.routedPrefixes().blocks());
        final Worker next = worker(2);
        assertEquals(old.slot(), next.slot());
        assertEquals(0, overlap(prompt, next));
    }

    @Test
    void aWorkerThatWasDownIsPredictedToHoldNothing() throws RouteException {
        final Worker restarted = worker(1);
        final Worker other = worker(2);
        final int[] prompt = prompt(6);
        final Lease running = router.reserve(request(prompt).pin(restarted), decision);
        router.reserve(request(prompt).pin(other), decision).close();
        awaitApplied();
        assertTrue(router.forgetPredicted(restarted));
        awaitApplied();
        assertEquals(0, overlap(prompt, restarted));
        assertEquals(6, overlap(prompt, other));
        assertTrue(running.isOpen());
        assertEquals(6, restarted.activeBlocks());

        running.close();
        router.reserve(request(prompt).pin(restarted), decision).close();
        awaitApplied();
        assertEquals(6, overlap(prompt, restarted), "from now on it counts again");
    }

    @Test
    void thereIsNothingToForgetOfAWorkerWithEventsOrWithoutPredictions() throws RouteException {
        final Worker worker = worker(1);
        route(prompt(6));
        router.openDirect(worker, EngineMessages.source("w1", BLOCK_SIZE));
        assertTrue(router.forgetPredicted(worker));
        awaitApplied();
        assertEquals(6, router.routedPrefixes().blocks());
        router.removeWorker(worker);
        assertTrue(router.forgetPredicted(worker));
        try (KvRouter byLoad = KvRouter.builder().blockSize(BLOCK_SIZE).build()) {
            assertTrue(byLoad.forgetPredicted(byLoad.addWorker(WorkerSpec.of(1, "w", "http://w"))));
        }
    }

    @Test
    void ofAnotherRoutersWorkerNothingIsForgotten() throws RouteException {
        final Worker worker = worker(1);
        final int[] prompt = prompt(6);
        router.reserve(request(prompt), decision).close();
        awaitApplied();
        try (KvRouter other = router(1_000)) {
            final Worker foreign = other.addWorker(WorkerSpec.of(2, "w2", "http://w2"));
            assertEquals(worker.slot(), foreign.slot());
            assertTrue(router.forgetPredicted(foreign));
        }
        awaitApplied();
        assertEquals(6, overlap(prompt, worker));
    }

    @Test
    void aBookingDecidedBeforeItsWorkerWasRemovedMeansNothingForTheSuccessor()
            throws RouteException {
        router.close();
        final AtomicBoolean swap = new AtomicBoolean();
        final List<Worker> successors = new ArrayList<>();
        router =
                KvRouter.builder()
                        .blockSize(BLOCK_SIZE)
                        .maxWorkers(2)
                        .random(
                                () -> {
                                    // between the choice and the booking
                                    if (swap.getAndSet(false)) {
                                        router.workers().forEach(router::removeWorker);
                                        awaitApplied();
                                        successors.add(worker(3));
                                        successors.add(worker(4));
                                    }
                                    return 0;
                                })
                        .routedPrefixes(new PredictedPrefixesConfig(1, 100, 0.5, TTL_MS))
                        .build();
        worker(1);
        worker(2);
        swap.set(true);
        final int[] prompt = prompt(6);
        final Lease late = router.reserve(request(prompt), decision);
        awaitApplied();
        assertEquals(2, successors.size());
        assertEquals(IndexState.GONE, late.worker().state());
        assertFalse(late.isOpen());
        assertEquals(0, router.activeLeases());
        assertEquals(0, router.routedPrefixes().blocks());
        for (Worker successor : successors) {
            assertEquals(0, successor.activeRequests());
            assertEquals(0, successor.activeBlocks());
            assertEquals(0, successor.prefillTokens());
        }
        late.close();

        try (Lease own = router.reserve(request(prompt).pin(successors.get(1)), decision)) {
            awaitApplied();
            assertTrue(own.isOpen());
            assertEquals(6, successors.get(1).activeBlocks(), "its own bookings count");
        }
        assertEquals(6, router.routedPrefixes().blocks());
    }

    @Test
    void aWorkerWithEventsIsJudgedByThemAlone() throws RouteException {
        final Worker silent = worker(1);
        final int[] before = prompt(5);
        route(before);
        assertEquals(5, overlap(before, silent));

        final Worker speaking = silent;
        router.openDirect(speaking, EngineMessages.source("w1", BLOCK_SIZE))
                .onMessage(0, EngineMessages.stored(before, 2, BLOCK_SIZE, 100));
        Eventually.holds("its event", speaking::ready);
        assertEquals(2, overlap(before, speaking));
        assertEquals(IndexState.EXACT, decision.state(0));

        final int[] after = prompt(5);
        route(after);
        assertEquals(0, overlap(after, speaking));
        assertEquals(1, router.routedPrefixes().visits(), "nothing more is remembered");
    }

    @Test
    void workersWithAndWithoutEventsAreCompared() throws RouteException {
        final Worker speaking = worker(1);
        final Worker silent = worker(2);
        final int[] prompt = prompt(8);
        router.openDirect(speaking, EngineMessages.source("w1", BLOCK_SIZE))
                .onMessage(0, EngineMessages.stored(prompt, 3, BLOCK_SIZE, 100));
        Eventually.holds("its event", speaking::ready);
        router.reserve(request(prompt).pin(silent), decision).close();
        awaitApplied();
        assertSame(silent, route(prompt));
        assertEquals(3, decision.overlapBlocks(0));
        assertEquals(8, decision.overlapBlocks(1));
    }

    @Test
    void nothingIsPredictedUnlessItIsAskedFor() throws RouteException {
        router.close();
        router = KvRouter.builder().blockSize(BLOCK_SIZE).build();
        final Worker worker = worker(1);
        final int[] prompt = prompt(4);
        route(prompt);
        assertEquals(0, overlap(prompt, worker));
        assertEquals(IndexState.DEGRADED, worker.state());
        assertNull(router.routedPrefixes());
        assertFalse(router.settings().get(RouterSettings.APPROXIMATE));
    }
}
