package io.kvasir.router;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.router.Decision.Exclusion;
import io.kvasir.router.RouteException.Kind;
import io.kvasir.router.policy.RoutingMode;
import io.kvasir.router.queue.QueueRank;
import io.kvasir.router.queue.RouterQueue;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

/** Workers of which the first token is expected too late; on a clock that stands still. */
class BusyTtftTest {
    private static final int BLOCK_SIZE = 16;
    private static final long MS = TimeUnit.MILLISECONDS.toNanos(1);

    private final long[] nowNs = {MS};
    private final Decision decision = new Decision();
    private final List<Lease> leases = new ArrayList<>(); // forgotten ones would be released
    private KvRouter router = builder().build();
    private int prompts;

    private RouterConfig.Builder builder() {
        return KvRouter.builder()
                .set(RouterSettings.BUSY_TTFT, Duration.ofSeconds(1))
                .tickedBy(() -> nowNs[0])
                .blockSize(BLOCK_SIZE)
                .maxWorkers(8)
                .maxBlocks(4_096, 8_192);
    }

    private void restart(RouterConfig.Builder builder) {
        router.close();
        router = builder.build();
    }

    @AfterEach
    void close() {
        router.close();
    }

    private Worker worker(int id) {
        return router.addWorker(WorkerSpec.of(id, "w" + id, "http://w" + id));
    }

    /** A prompt that nothing else has. */
    private RouteRequest request(int tokens) {
        final int[] prompt = new int[tokens];
        prompt[0] = ++prompts;
        return router.newRequest().tokens(prompt, tokens);
    }

    private Lease book(RouteRequest request) throws RouteException {
        final Lease lease = router.reserve(request, decision);
        leases.add(lease);
        settle();
        return lease;
    }

    private void settle() {
        Eventually.holds("an empty ring", () -> router.bookingPipeline().backlog() == 0);
    }

    private void computed(Lease lease) {
        lease.prefillComplete();
        lease.close();
        settle();
    }

    /** Teaches a pace of a millisecond a token. */
    private void learn(Worker worker) throws RouteException {
        final Lease lease = book(request(1_600).pin(worker));
        nowNs[0] += 1_600 * MS;
        computed(lease);
    }

    private RouteException refused(RouteRequest request) {
        final RouteException refused =
                assertThrows(RouteException.class, () -> router.select(request, decision));
        assertEquals(Kind.ALL_WORKERS_BUSY, refused.kind());
        return refused;
    }

    @Test
    void nothingIsRefusedBeforeAPaceIsKnown() throws RouteException {
        worker(1);
        for (int i = 0; i < 10; i++) {
            book(request(10_000));
        }
        assertEquals(10 * 10_000, router.workers().getFirst().prefillTokens());
    }

    @Test
    void aRequestIsRefusedWithLimitValueKnobAndTime() throws RouteException {
        final Worker worker = worker(1);
        learn(worker);
        final Lease before = book(request(2_000));
        final RouteException refused = refused(request(16));
        assertEquals(
                "1 of 1 workers could be used and are busy; the first token is expected soonest at"
                    + " w1/0: expected ms=2016, busy-ttft-ms=1000; add workers, or raise the limit",
                refused.getMessage());
        assertEquals(new RouteException.Limit("busy-ttft-ms", 1_000, 2_016), refused.limitOrNull());
        assertTrue(Math.abs(refused.retryNs() - 1_016 * MS) <= 2, "retry " + refused.retryNs());
        assertEquals(Exclusion.BUSY, decision.exclusion(0));
        nowNs[0] += 900 * MS; // what is done is taken off, half of it at most
        assertEquals(1_116, refused(request(16)).limitOrNull().observed());
        computed(before);
        router.select(request(16), decision);
        assertSame(worker, decision.worker(), "nothing is before it any more");
    }

    @Test
    void potentialLoadsAreOfWorkersThatAreInTime() throws RouteException {
        final Worker slow = worker(1);
        final Worker fast = worker(2);
        learn(slow);
        book(request(2_000).pin(slow));
        book(request(900).pin(fast));
        final List<PotentialLoad> loads = router.potentialLoads(request(16));
        assertEquals(List.of(fast), loads.stream().map(PotentialLoad::worker).toList());
        assertEquals(List.of(), router.potentialLoads(request(16).exclude(fast)));
    }

    @Test
    void aPromptThatFindsNothingBeforeItIsNeverTooLong() throws RouteException {
        final Worker worker = worker(1);
        learn(worker);
        final Lease first = book(request(20_000)); // 20 s alone: waiting would not help
        nowNs[0] += MS; // and the pace is learned anew from it
        for (int i = 0; i < 600; i++) {
            computed(first);
            computed(book(request(20_000)));
        }
        book(request(100));
        router.select(request(100), decision);
        assertSame(worker, decision.worker());
    }

    @ParameterizedTest
    @EnumSource(value = RoutingMode.class, mode = EnumSource.Mode.EXCLUDE, names = "DIRECT")
    void oneThatIsInTimeIsTakenInEveryMode(RoutingMode mode) throws RouteException {
        final Worker slow = worker(1);
        final Worker fast = worker(2);
        learn(slow);
        book(request(2_000).pin(slow));
        book(request(900).pin(fast));
        for (int i = 0; i < 20; i++) {
            router.select(request(16).mode(mode), decision);
            assertSame(fast, decision.worker());
        }
        final RouteException refused = refused(request(16).pin(slow));
        assertTrue(refused.getMessage().contains("w1/0"), refused.getMessage());
        book(request(90).pin(fast));
        assertTrue(refused(request(16)).getMessage().contains("soonest at w2/0"));
    }

    @Test
    void whatIsCachedTakesNoTime() throws RouteException {
        final Worker worker = worker(1);
        final int[] held = new int[100 * BLOCK_SIZE + 1];
        held[0] = ++prompts;
        router.openDirect(worker, EngineMessages.source(worker.name(), BLOCK_SIZE))
                .onMessage(0, EngineMessages.stored(held, 100, BLOCK_SIZE, 1_000));
        Eventually.holds("the events", worker::ready);
        learn(worker);
        book(request(500));
        assertEquals(2_101, refused(request(1_601)).limitOrNull().observed());
        router.select(router.newRequest().tokens(held, held.length), decision);
        assertEquals(100, decision.overlapBlocks());
    }

    @Test
    void whatPromptsTakeWhoseFirstTokenIsNotSeenIsNotTheNextOnes() throws RouteException {
        final Worker worker = worker(1);
        learn(worker);
        final Lease unseen = book(request(800).firstTokenUnseen(true));
        final Lease next = book(request(160));
        nowNs[0] += 800 * MS;
        computed(unseen);
        nowNs[0] += 160 * MS;
        computed(next);
        book(request(700));
        router.select(request(16), decision);
        assertSame(worker, decision.worker());
        assertEquals(1_216, refused(request(516)).limitOrNull().observed(), "a ms a token");
    }

    @Test
    void likewiseWhereTheRouterFindsThatTheyAreComputed() throws RouteException {
        final Worker worker = worker(1);
        computed(book(request(16).firstTokenUnseen(true))); // from here on times are learned
        for (int i = 0; i < 8; i++) {
            learn(worker);
        }
        final Lease unseen = book(request(800).firstTokenUnseen(true));
        final Lease next = book(request(160));
        nowNs[0] += 800 * MS;
        router.tick(nowNs[0]);
        settle();
        assertEquals(PromptEnd.EXPECTED, unseen.promptEnd());
        nowNs[0] += 100 * MS;
        computed(unseen); // its answer is there long after its prompt
        nowNs[0] += 60 * MS;
        computed(next);
        book(request(700));
        assertEquals(1_216, refused(request(516)).limitOrNull().observed(), "a ms a token");
    }

    @Test
    void whatAPromptTakesThatIsAbandonedIsNotTheNextOnes() throws RouteException {
        final Worker worker = worker(1);
        learn(worker);
        final Lease abandoned = book(request(800));
        final Lease next = book(request(160));
        nowNs[0] += 800 * MS;
        abandoned.close(); // its client has left before the first token
        settle();
        nowNs[0] += 100 * MS;
        abandoned.close(); // again: says nothing
        abandoned.prefillComplete(); // likewise
        nowNs[0] += 60 * MS;
        computed(next);
        book(request(700));
        assertEquals(1_216, refused(request(516)).limitOrNull().observed(), "a ms a token");
    }

    @Test
    void whatIsGivenUpBehindAnotherPromptIsNoEndOfThatOne() throws RouteException {
        final Worker worker = worker(1);
        learn(worker);
        final Lease computed = book(request(800));
        nowNs[0] += 700 * MS;
        book(request(160)).close(); // as of a request that is not split after all
        settle();
        nowNs[0] += 100 * MS;
        computed(computed);
        book(request(700));
        assertEquals(1_216, refused(request(516)).limitOrNull().observed(), "a ms a token");
    }

    @Test
    void anEndIsAlsoWhatComesAfterTheTimeoutOfABooking() throws RouteException {
        restart(
                builder()
                        .set(RouterSettings.BUSY_TTFT, Duration.ofMinutes(1))
                        .set(RouterSettings.BOOKING_TIMEOUT, Duration.ofSeconds(2)));
        final Worker worker = worker(1);
        learn(worker);
        final Lease seen = book(request(4_800));
        final Lease abandoned = book(request(4_800));
        final Lease next = book(request(160).noDeadline());
        nowNs[0] += 4_800 * MS;
        router.tick(nowNs[0]);
        settle();
        assertFalse(seen.isOpen() || abandoned.isOpen());
        computed(seen);
        nowNs[0] += 4_800 * MS;
        abandoned.close();
        nowNs[0] += 160 * MS;
        computed(next);
        router.change(router.settings().with(RouterSettings.BUSY_TTFT, Duration.ofSeconds(1)));
        book(request(700));
        assertEquals(1_216, refused(request(516)).limitOrNull().observed(), "a ms a token");
    }

    @Test
    void thePaceOfTheSlotsNextWorkerStaysWhenOneOfTheLastEnds() throws RouteException {
        restart(builder().maxWorkers(1));
        final Worker last = worker(1);
        final Lease late = book(request(800));
        router.removeWorker(last);
        final Worker next = worker(2);
        assertEquals(last.slot(), next.slot());
        learn(next);
        final Lease before = book(request(2_000));
        nowNs[0] += 900 * MS;
        late.prefillComplete();
        late.close();
        assertEquals(1_116, refused(request(16)).limitOrNull().observed(), "of its own work");
        before.close();
    }

    @Test
    void promptsWhoseTokensAreNotKnownDoNotRaiseThePace() throws RouteException {
        final Worker worker = worker(1);
        learn(worker);
        for (int i = 0; i < 10; i++) {
            final Lease unknown = book(router.newRequest());
            nowNs[0] += 5_000 * MS;
            computed(unknown);
        }
        book(request(2_000));
        assertEquals(2_016, refused(request(16)).limitOrNull().observed(), "a ms a token");
    }

    @Test
    void aPolicyOfPrefillTimeGoesByTheSamePace() throws RouteException {
        restart(builder().set(RouterSettings.SELECTION_POLICY, "prefill-time"));
        final Worker worker = worker(1);
        learn(worker);
        book(request(2_000));
        assertEquals(2_016, refused(request(16)).limitOrNull().observed());
    }

    @Test
    void itCanBeSetAndTakenBackWhileTheRouterRuns() throws RouteException {
        restart(builder().set(RouterSettings.BUSY_TTFT, Duration.ZERO));
        final Worker worker = worker(1);
        learn(worker); // without a listener
        router.change(router.settings().with(RouterSettings.BUSY_TTFT, Duration.ofSeconds(1)));
        router.select(request(16), decision);
        learn(worker);
        book(request(2_000));
        refused(request(16));
        router.change(router.settings().with(RouterSettings.BUSY_TTFT, Duration.ofSeconds(3)));
        router.select(request(16), decision);
        router.change(router.settings().with(RouterSettings.BUSY_TTFT, Duration.ZERO));
        book(request(20_000));
        router.select(request(16), decision);
    }

    @Test
    void withAQueueItWaitsUntilItIsInTime() throws RouteException {
        restart(builder().set(RouterSettings.QUEUE_PREFILL_TOKENS, 1_000_000L));
        final Worker worker = worker(1);
        learn(worker);
        try (RouterQueue queue = RouterQueue.steppedBy(router, () -> nowNs[0])) {
            final Lease before = book(request(2_000));
            final int[] prompt = {++prompts, 1};
            final CompletableFuture<Lease> waits =
                    queue.admit(request -> request.tokens(prompt, 2), QueueRank.USUAL);
            queue.step();
            assertFalse(waits.isDone());
            assertEquals(1, queue.status().requests());
            computed(before);
            queue.step();
            assertSame(worker, waits.join().worker());
            waits.join().close();
        }
    }

    @Test
    void withoutTokensToPrefillItWouldMeanNothing() {
        final IllegalArgumentException refused =
                assertThrows(
                        IllegalArgumentException.class,
                        () -> builder().set(RouterSettings.TRACK_PREFILL_TOKENS, false).build());
        assertTrue(refused.getMessage().contains("busy-ttft-ms=1000"), refused.getMessage());
        assertTrue(refused.getMessage().contains("track-prefill-tokens"), refused.getMessage());
    }
}
