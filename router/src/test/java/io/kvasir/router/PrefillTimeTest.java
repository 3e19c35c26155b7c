package io.kvasir.router;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.router.policy.RandomSource;
import io.kvasir.router.policy.RoutingMode;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** The selection policy {@code prefill-time}, and the pace that it learns. */
class PrefillTimeTest {
    private static final int BLOCK_SIZE = 16;
    private static final double IN_USE = 1.0 / 64;
    private static final long SECOND = TimeUnit.SECONDS.toNanos(1);

    private final long[] nowNs = {SECOND};
    private final Decision decision = new Decision();
    private final KvRouter router = builder().build();
    private final PrefillPaces paces = new PrefillPaces(8);
    private final List<Lease> leases = new ArrayList<>(); // a forgotten one would be released

    private RouterConfig.Builder builder() {
        return KvRouter.builder()
                .set(RouterSettings.SELECTION_POLICY, "prefill-time")
                .tickedBy(() -> nowNs[0])
                .blockSize(BLOCK_SIZE)
                .maxWorkers(4)
                .maxBlocks(4096, 8192)
                .random(RandomSource.seeded(1));
    }

    @AfterEach
    void close() {
        router.close();
    }

    private Worker worker(int id) {
        return router.addWorker(WorkerSpec.of(id, "w" + id, "http://w" + id));
    }

    private static int[] prompt(int blocks, int first) {
        final int[] prompt = new int[blocks * BLOCK_SIZE];
        Arrays.setAll(prompt, i -> first + i);
        return prompt;
    }

    private RouteRequest request(int blocks, int first) {
        return router.newRequest().tokens(prompt(blocks, first), blocks * BLOCK_SIZE);
    }

    /** Books a prompt on one worker, and waits until decisions see it. */
    private Lease book(Worker worker, int blocks, int first) throws RouteException {
        final Lease lease = router.reserve(request(blocks, first).pin(worker), decision);
        leases.add(lease);
        Eventually.holds("an empty ring", () -> router.bookingPipeline().backlog() == 0);
        return lease;
    }

    @Test
    void countsWhatIsNotCachedFourTimesAndTheQueueOnce() throws RouteException {
        final Worker first = worker(1);
        final Worker second = worker(2);
        book(first, 10, 0);
        router.select(request(5, 5_000), decision);
        assertSame(second, decision.worker());
        assertEquals(4 * 5 + 5 * IN_USE, decision.cost(1), 1e-9);
        assertEquals(10 + 4 * 5 + 15 * IN_USE, decision.cost(0), 1e-9);
    }

    @Test
    void aHitIsWorthAQueueOfFourTimesItsLength() throws RouteException {
        final Worker holder = worker(1);
        worker(2);
        final int[] held = prompt(20, 0);
        router.openDirect(holder, EngineMessages.source(holder.name(), BLOCK_SIZE))
                .onMessage(0, EngineMessages.stored(held, 20, BLOCK_SIZE, 1_000));
        Eventually.holds("the events", holder::ready);
        book(holder, 70, 5_000); // 19 blocks are reused of the prompt, which count 76
        router.select(request(20, 0), decision);
        assertSame(holder, decision.worker());
        book(holder, 10, 9_000);
        router.select(request(20, 0), decision);
        assertNotSame(holder, decision.worker());
    }

    @Test
    void theWeightOfARequestMovesBetweenTheTimeAndTheBlocksInUse() throws RouteException {
        worker(1);
        router.select(request(5, 0).overlapWeight(0), decision);
        assertEquals(5 * IN_USE, decision.cost(), 1e-9);
        router.select(request(5, 0).overlapWeight(2), decision);
        assertEquals(2 * 4 * 5 + 5 * IN_USE, decision.cost(), 1e-9);
    }

    @Test
    void aCostOfTheRequestsOwnIsAdded() throws RouteException {
        worker(1);
        final Worker near = worker(2);
        router.select(request(5, 0).addCost(one -> one.worker() == near ? 0 : 3), decision);
        assertSame(near, decision.worker());
        assertEquals(3, decision.cost(0) - decision.cost(1), 1e-9);
    }

    @Test
    void aWorkerThatIsSlowIsLearnedFromFirstTokens() throws RouteException {
        final Worker slow = worker(1);
        final Worker fast = worker(2);
        for (int i = 0; i < 200; i++) {
            final Lease onSlow = book(slow, 400, i * 20_000);
            final Lease onFast = book(fast, 400, i * 20_000 + 10_000);
            nowNs[0] += SECOND;
            onFast.prefillComplete(); // seen before the other one's, from the same moment on
            nowNs[0] += 3 * SECOND;
            onSlow.prefillComplete();
            onFast.close();
            onSlow.close();
        }
        Eventually.holds("an empty ring", () -> router.bookingPipeline().backlog() == 0);
        router.select(request(10, 1), decision);
        assertSame(fast, decision.worker());
        assertTrue(decision.cost(0) > 1.3 * decision.cost(1), () -> decision.cost(0) + "");
        assertTrue(decision.cost(0) < 4.2 * decision.cost(1), () -> decision.cost(0) + "");
    }

    @Test
    void whatIsDoneOfAQueueIsTakenOffAndNeverMoreThanHalf() {
        final PrefillPace pace = paces.of(worker(1));
        assertEquals(1_000, pace.remaining(1_000, 100 * SECOND)); // nothing is known of the pace
        pace.completed(1_000, 0, SECOND); // a millisecond a token
        assertEquals(1_000, pace.remaining(1_000, SECOND), 1e-6);
        assertEquals(750, pace.remaining(1_000, SECOND + SECOND / 4), 1e-6);
        assertEquals(500, pace.remaining(1_000, 100 * SECOND), 1e-6);
        assertEquals(0, pace.remaining(0, 100 * SECOND), 1e-6);
        pace.begins(100 * SECOND);
        assertEquals(1_000, pace.remaining(1_000, 100 * SECOND), 1e-6);
        assertEquals(1_000, pace.remaining(1_000, SECOND), 1e-6); // a clock that went back
        final double most = pace.remaining(Long.MAX_VALUE, Long.MAX_VALUE);
        assertTrue(most >= Long.MAX_VALUE / 2.0 && most <= Long.MAX_VALUE, () -> most + "");
    }

    @ParameterizedTest
    @CsvSource({"0, 1", "-5, 1", "NaN, 1", "Infinity, 1", "100, -1", "100, 4000"})
    void aSampleThatCannotBeIsIgnored(double tokens, long seconds) {
        final PrefillPace pace = paces.of(worker(1));
        pace.completed(tokens, 0, seconds * SECOND);
        assertEquals(0, paces.secondsPerToken());
        assertEquals(1, pace.factor());
        final long later = 5_000 * SECOND;
        pace.completed(1_000, later, later + SECOND);
        assertEquals(1.0 / 1_000, paces.secondsPerToken(), 1e-9);
        assertEquals(1, pace.factor());
    }

    @Test
    void promptsThatEndAtOnceSayNothingAlone() {
        final PrefillPace pace = paces.of(worker(1));
        pace.completed(100, 0, 0);
        assertEquals(0, paces.secondsPerToken());
        assertEquals(1, pace.factor());
    }

    @Test
    void noSampleMakesAWorkerMoreThanEightTimesAsSlowOrFast() {
        final PrefillPace slow = paces.of(worker(1));
        final PrefillPace fast = paces.of(worker(2));
        for (int i = 0; i < 1_000; i++) {
            slow.completed(1, (i - 1) * 3_600L * SECOND, i * 3_600L * SECOND);
            fast.completed(1e15, i, i + 1);
            assertTrue(slow.factor() >= 0.125 && slow.factor() <= 8, () -> slow.factor() + "");
            assertTrue(fast.factor() >= 0.125 && fast.factor() <= 8, () -> fast.factor() + "");
        }
    }

    @Test
    void theNextWorkerOfASlotBeginsAnew() {
        final Worker before = worker(1);
        final PrefillPace old = paces.of(before);
        assertSame(old, paces.of(before));
        old.completed(1_000, 0, SECOND);
        for (int id = 2; id < 20; id++) { // slots of removed workers are used again
            router.removeWorker(router.workers().getFirst());
            final Worker next = worker(id);
            assertNotSame(old, paces.of(next));
            assertEquals(1, paces.of(next).factor());
            assertSame(paces.of(next), paces.of(next));
        }
    }

    @Test
    void otherModesChooseAsBefore() throws RouteException {
        final Worker first = worker(1);
        final Worker second = worker(2);
        book(first, 10, 0);
        router.select(request(5, 0).mode(RoutingMode.LEAST_LOADED), decision);
        assertSame(second, decision.worker());
    }
}
