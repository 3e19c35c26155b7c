package io.kvasir.router;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.pipeline.source.EngineStream;
import io.kvasir.pipeline.source.FreshnessLimits;
import io.kvasir.pipeline.source.IndexCause;
import io.kvasir.pipeline.source.IndexState;
import io.kvasir.pipeline.source.RemovalRule;
import io.kvasir.pipeline.source.SourceConfig;
import io.kvasir.router.journal.JournalRecord;
import io.kvasir.router.settings.PredictionCheck;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.router.settings.Setting;
import io.kvasir.testsupport.Cores;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.IntStream;

/** How far the index can be trusted decides what is chosen and booked. */
class TruthTest {
    private static final int BLOCK_SIZE = 16;
    private static final int TOKENS = 10 * BLOCK_SIZE + 1;
    private static final int[] PROMPT = IntStream.range(0, TOKENS).toArray();
    private static final FreshnessLimits AT_ONCE = new FreshnessLimits(1, 2, 1);

    private KvRouter router =
            KvRouter.builder()
                    .blockSize(BLOCK_SIZE)
                    .maxWorkers(8)
                    .maxBlocks(1_024, 1_024)
                    .maxActiveRequests(64)
                    .build();
    private final Decision decision = new Decision();

    @AfterEach
    void close() {
        router.close();
    }

    private RouteRequest request() {
        return router.newRequest().tokens(PROMPT, TOKENS);
    }

    private static void await(Worker worker, IndexState state) {
        Eventually.holds(() -> worker + ": " + worker.state(), () -> worker.state() == state);
    }

    /** Announces the prompt's 10 blocks on a new worker. */
    private EngineStream announce(Worker worker, SourceConfig source) {
        final EngineStream stream = router.openDirect(worker, source);
        stream.onMessage(0, EngineMessages.stored(PROMPT, 10, BLOCK_SIZE, 1_000));
        await(worker, IndexState.EXACT);
        return stream;
    }

    private static SourceConfig source(FreshnessLimits limits) {
        return EngineMessages.source("w", BLOCK_SIZE).withFreshness(limits);
    }

    @Test
    void aDeadEnginesBlocksCountNothingInChoiceAndBooking() throws RouteException {
        final Worker worker = router.addWorker(WorkerSpec.of(1, "w", "x"));
        final EngineStream stream = announce(worker, source(AT_ONCE));
        router.select(request(), decision);
        assertEquals(10 * BLOCK_SIZE, decision.predictedCachedTokens());

        stream.onDisconnected("closed by peer");
        await(worker, IndexState.STALE);
        Eventually.holds("the end of the credit", () -> worker.credit(1) == 0);
        try (Lease lease = router.reserve(request(), decision)) {
            assertEquals(10, decision.overlapBlocks());
            assertEquals(0, decision.predictedCachedTokens());
            assertEquals(TOKENS / (double) BLOCK_SIZE, decision.prefillBlocks(0));
            assertEquals(TOKENS, worker.prefillTokens());
            assertTrue(lease.isOpen());
        }
    }

    @Test
    void aDegradedEnginesBlocksAreBookedByTheirCredit() throws RouteException {
        final Worker worker = router.addWorker(WorkerSpec.of(1, "w", "x"));
        final EngineStream stream = announce(worker, source(FreshnessLimits.DEFAULT));
        stream.onMessage(5, EngineMessages.stored(new int[BLOCK_SIZE], 1, BLOCK_SIZE, 5_000));
        await(worker, IndexState.DEGRADED);

        try (Lease lease = router.reserve(request(), decision)) {
            assertEquals(5 * BLOCK_SIZE, decision.predictedCachedTokens());
            assertEquals(TOKENS - 5 * BLOCK_SIZE, worker.prefillTokens());
            assertTrue(lease.isOpen());
        }
    }

    @Test
    void theRoutersLimitsOfStalenessAreThoseOfSourcesWithoutTheirOwn() throws RouteException {
        router.close();
        router =
                KvRouter.builder()
                        .set(RouterSettings.STALE_AFTER, Duration.ofMillis(1))
                        .set(RouterSettings.STALE_AFTER_PROMPTS, 2)
                        .build();
        final Worker worker = router.addWorker(WorkerSpec.of(1, "w", "x"));
        announce(worker, source(FreshnessLimits.DEFAULT));
        final int[] other = IntStream.range(5_000, 5_100).toArray();
        serve(other);
        serve(other);
        Eventually.holds("applied", () -> worker.sourceStatus().behind() == 0);
        final long beganNs = System.nanoTime();
        while (System.nanoTime() - beganNs < 1_000_000) {
            Cores.giveWay(); // the limit's time passes
        }
        serve(other);
        assertEquals(IndexState.STALE, worker.state());
    }

    @Test
    void anEngineThatServesPromptsAndAnnouncesNothingIsStale() throws RouteException {
        final Worker worker = router.addWorker(WorkerSpec.of(1, "w", "x"));
        final EngineStream stream = announce(worker, source(AT_ONCE));
        final int[] other = IntStream.range(5_000, 5_100).toArray();
        for (int i = 0; i < 3; i++) {
            serve(other);
        }
        await(worker, IndexState.STALE);
        stream.onMessage(1, EngineMessages.stored(other, 1, BLOCK_SIZE, 5_000));
        await(worker, IndexState.EXACT);
        serve(PROMPT); // all of it is known to be there: nothing to announce
        serve(PROMPT);
        serve(PROMPT);
        assertEquals(IndexState.EXACT, worker.state());
    }

    /**
     * Its prompts are cached each by itself: what they have in common with the first is no loss.
     */
    @Test
    void aBatchOfPromptsMakesNoEngineStaleThatAnnouncesNothing() throws RouteException {
        final Worker worker = router.addWorker(WorkerSpec.of(1, "w", "x"));
        announce(worker, source(AT_ONCE));
        final int[] batch = Arrays.copyOf(PROMPT, 2 * TOKENS);
        System.arraycopy(PROMPT, 0, batch, TOKENS, TOKENS);
        for (int i = 0; i < 3; i++) {
            serve(router.newRequest().tokens(batch, batch.length).severalPrompts(true));
        }
        assertEquals(IndexState.EXACT, worker.state());
        for (int i = 0; i < 3; i++) {
            serve(batch); // as one prompt it has new blocks
        }
        await(worker, IndexState.STALE);
    }

    @Test
    void promptsThatAreAnnouncedBeforeTheirAnswersAreNoSilence() throws RouteException {
        final Worker worker = router.addWorker(WorkerSpec.of(1, "w", "x"));
        final EngineStream stream = announce(worker, source(AT_ONCE));
        final int[] other = IntStream.range(5_000, 5_100).toArray();
        final List<Lease> leases = new ArrayList<>();
        for (int i = 0; i < 8; i++) {
            leases.add(router.reserve(router.newRequest().tokens(other, 100), decision));
        }
        stream.onMessage(1, EngineMessages.stored(other, 1, BLOCK_SIZE, 5_000));
        for (Lease lease : leases) {
            lease.prefillComplete();
            lease.close();
        }
        stream.tick();
        await(worker, IndexState.EXACT);
    }

    @Test
    void aPromptThatIsComputedAnewIsBookedWholeAndMakesNoEngineStale() throws RouteException {
        final Worker worker = router.addWorker(WorkerSpec.of(1, "w", "x"));
        announce(worker, source(AT_ONCE));
        try (Lease lease = router.reserve(request().readsNoCache(true), decision)) {
            assertEquals(0, decision.overlapBlocks());
            assertEquals(0, decision.predictedCachedTokens());
            assertEquals(TOKENS, worker.prefillTokens());
            assertTrue(lease.isOpen());
        }
        for (int i = 0; i < 3; i++) {
            serve(request().readsNoCache(true));
        }
        assertEquals(IndexState.EXACT, worker.state());
        router.select(request(), decision);
        assertEquals(10 * BLOCK_SIZE, decision.predictedCachedTokens());
    }

    private void serve(int[] prompt) throws RouteException {
        serve(router.newRequest().tokens(prompt, prompt.length));
    }

    private void serve(RouteRequest request) throws RouteException {
        try (Lease lease = router.reserve(request, decision)) {
            lease.prefillComplete();
            lease.prefillComplete();
        }
    }

    /** One request that has the worker to itself; what its engine says of it. */
    private void hit(int stated) throws RouteException {
        final Lease lease = router.reserve(request(), decision);
        final Worker worker = lease.worker();
        final long before = decision.activeRequests();
        lease.prefillComplete();
        lease.close();
        Eventually.holds("the release", () -> worker.activeRequests() == before);
        lease.engineCachedTokens(stated);
    }

    private void hits(int times, int stated) throws RouteException {
        for (int i = 0; i < times; i++) {
            hit(stated);
        }
    }

    @Test
    void anEngineThatHasMoreThanItAnnouncesLosesCreditUntilItIsAsPredicted() throws RouteException {
        final Worker worker = router.addWorker(WorkerSpec.of(1, "w", "x"));
        final EngineStream stream = router.openDirect(worker, source(FreshnessLimits.DEFAULT));
        stream.onMessage(0, EngineMessages.stored(PROMPT, 4, BLOCK_SIZE, 1_000));
        await(worker, IndexState.EXACT);
        hits(15, 10 * BLOCK_SIZE);
        assertEquals(IndexState.EXACT, worker.state());
        hit(10 * BLOCK_SIZE);
        assertEquals(IndexState.DEGRADED, worker.state());
        assertEquals(IndexCause.FORECASTS, worker.cause());
        assertTrue(worker.indexProblem().contains("more in 16"), worker.indexProblem());
        router.select(request(), decision);
        assertEquals(IndexState.DEGRADED, decision.indexState());
        assertEquals(2 * BLOCK_SIZE, decision.predictedCachedTokens());
        assertEquals(4 * BLOCK_SIZE, decision.believedCachedTokens());

        stream.onMessage(1, EngineMessages.stored(PROMPT, 10, BLOCK_SIZE, 1_000));
        Eventually.holds("applied", () -> worker.eventSequence() == 1);
        hits(14, 10 * BLOCK_SIZE);
        assertEquals(IndexState.DEGRADED, worker.state());
        hit(10 * BLOCK_SIZE);
        assertEquals(IndexState.EXACT, worker.state());
        router.select(request(), decision);
        assertEquals(10 * BLOCK_SIZE, decision.predictedCachedTokens());
    }

    /** As vLLM does where it drafts with EAGLE: what it holds is right, what it uses is less. */
    @Test
    void anEngineThatComputesTheLastBlockAnewIsExactAndABlockLessIsExpected()
            throws RouteException {
        final Worker worker = router.addWorker(WorkerSpec.of(1, "w", "x"));
        announce(worker, source(FreshnessLimits.DEFAULT));
        for (int i = 0; i < 8; i++) {
            assertEquals(10 * BLOCK_SIZE, predicted());
            hit(9 * BLOCK_SIZE);
        }
        assertTrue(worker.lacksLastBlock());
        for (int i = 0; i < 100; i++) {
            assertEquals(IndexState.EXACT, worker.state());
            assertEquals(9 * BLOCK_SIZE, predicted());
            assertEquals(9, decision.overlapBlocks());
            hit(9 * BLOCK_SIZE);
        }
        assertEquals(RemovalRule.PHYSICAL, worker.sourceStatus().removals());

        hits(32, 10 * BLOCK_SIZE); // the engine was restarted without its drafter
        assertFalse(worker.lacksLastBlock());
        assertEquals(10 * BLOCK_SIZE, predicted());
        assertEquals(IndexState.EXACT, worker.state());
    }

    /**
     * The last token is always computed: of ten whole blocks nine are reused, and of those eight.
     */
    @Test
    void ofAPromptOfWholeBlocksTheLastThatIsReusedIsLacked() throws RouteException {
        final Worker worker = router.addWorker(WorkerSpec.of(1, "w", "x"));
        announce(worker, source(FreshnessLimits.DEFAULT));
        hits(8, 9 * BLOCK_SIZE);
        router.select(router.newRequest().tokens(PROMPT, 10 * BLOCK_SIZE), decision);
        assertEquals(8 * BLOCK_SIZE, decision.predictedCachedTokens());
        router.select(router.newRequest().tokens(PROMPT, 10 * BLOCK_SIZE - 1), decision);
        assertEquals(8 * BLOCK_SIZE, decision.predictedCachedTokens());
        for (int tokens : new int[] {BLOCK_SIZE + 1, BLOCK_SIZE, 1}) {
            router.select(router.newRequest().tokens(PROMPT, tokens), decision);
            assertEquals(0, decision.predictedCachedTokens());
        }
    }

    @Test
    void whatWasConcludedOfALastBlockIsOfOneWorkerAndNotOfItsSlot() throws RouteException {
        final Worker worker = router.addWorker(WorkerSpec.of(1, "w", "x"));
        announce(worker, source(FreshnessLimits.DEFAULT));
        hits(8, 9 * BLOCK_SIZE);
        assertEquals(9 * BLOCK_SIZE, predicted());
        router.removeWorker(worker);
        final Worker next = router.addWorker(WorkerSpec.of(2, "next", "y"));
        announce(next, source(FreshnessLimits.DEFAULT));
        assertEquals(10 * BLOCK_SIZE, predicted());
    }

    @Test
    void aPredictedWorkersLastBlockIsJudgedLikewise() throws RouteException {
        final Worker worker = withoutEvents();
        hit(0);
        Eventually.holds("predicted", () -> predicted() == 10 * BLOCK_SIZE);
        hits(8, 9 * BLOCK_SIZE);
        assertEquals(9 * BLOCK_SIZE, predicted());
        hits(32, 9 * BLOCK_SIZE);
        assertEquals(9 * BLOCK_SIZE, predicted());
        assertEquals(IndexCause.NO_EVENTS, worker.cause());
    }

    private int predicted() {
        try {
            router.select(request(), decision);
        } catch (RouteException e) {
            throw new AssertionError(e);
        }
        return decision.predictedCachedTokens();
    }

    @Test
    void whatIsConcludedFromHitsIsASetting() throws RouteException {
        for (PredictionCheck check : PredictionCheck.values()) {
            router.close();
            router =
                    KvRouter.builder()
                            .blockSize(BLOCK_SIZE)
                            .set(RouterSettings.PREDICTION_CHECK, check)
                            .build();
            final Worker worker = router.addWorker(WorkerSpec.of(1, "w", "x"));
            final EngineStream stream = router.openDirect(worker, source(FreshnessLimits.DEFAULT));
            stream.onMessage(0, EngineMessages.stored(PROMPT, 4, BLOCK_SIZE, 1_000));
            await(worker, IndexState.EXACT);
            hits(16, 10 * BLOCK_SIZE);
            assertEquals(
                    check == PredictionCheck.BOTH ? IndexState.DEGRADED : IndexState.EXACT,
                    worker.state(),
                    "too low, " + check);
            hits(8, 0);
            assertEquals(
                    check == PredictionCheck.OFF ? IndexState.EXACT : IndexState.DEGRADED,
                    worker.state(),
                    "too high, " + check);
        }
    }

    @Test
    void aChangedCreditIsShownOfWorkersThatAreRegistered() throws RouteException {
        final Worker worker = router.addWorker(WorkerSpec.of(1, "w", "x"));
        final EngineStream stream = announce(worker, source(FreshnessLimits.DEFAULT));
        stream.onMessage(5, EngineMessages.stored(new int[BLOCK_SIZE], 1, BLOCK_SIZE, 5_000));
        await(worker, IndexState.DEGRADED);
        assertEquals(0.5, worker.indexCredit());
        change(RouterSettings.DEGRADED_CREDIT, 0.25);
        assertEquals(0.25, worker.indexCredit());
        change(RouterSettings.DEGRADED_CREDIT, 0.0);
        assertEquals(0, worker.indexCredit());
    }

    private <T> void change(Setting<T> row, T value) {
        router.change(router.settings().with(row, value));
    }

    @Test
    void aChangedCheckHoldsForWorkersThatAreRegistered() throws RouteException {
        final Worker worker = router.addWorker(WorkerSpec.of(1, "w", "x"));
        final EngineStream stream = router.openDirect(worker, source(FreshnessLimits.DEFAULT));
        stream.onMessage(0, EngineMessages.stored(PROMPT, 4, BLOCK_SIZE, 1_000));
        await(worker, IndexState.EXACT);
        change(RouterSettings.PREDICTION_CHECK, PredictionCheck.OVER);
        hits(16, 10 * BLOCK_SIZE);
        assertEquals(IndexState.EXACT, worker.state(), "more than predicted says nothing");
        change(RouterSettings.PREDICTION_CHECK, PredictionCheck.BOTH);
        hits(16, 10 * BLOCK_SIZE);
        assertEquals(IndexState.DEGRADED, worker.state());
        change(RouterSettings.PREDICTION_CHECK, PredictionCheck.OFF);
        assertEquals(IndexState.EXACT, worker.state(), "nothing is concluded from hits any more");
        hits(40, 10 * BLOCK_SIZE);
        assertEquals(IndexState.EXACT, worker.state());
    }

    /** The worker of another router, which predicts what it holds. */
    private Worker withoutEvents() {
        router.close();
        router =
                KvRouter.builder()
                        .blockSize(BLOCK_SIZE)
                        .set(RouterSettings.APPROXIMATE, true)
                        .build();
        return router.addWorker(WorkerSpec.of(1, "w", "x"));
    }

    @Test
    void aPredictedWorkersCreditIsBackWhenHitsAreNotChecked() throws RouteException {
        final Worker worker = withoutEvents();
        hit(0);
        Eventually.holds("the routed prompt", () -> isHeld());
        hits(8, 0);
        assertEquals(0.5, worker.indexCredit());
        change(RouterSettings.DEGRADED_CREDIT, 0.75);
        assertEquals(0.75, worker.indexCredit());
        change(RouterSettings.PREDICTION_CHECK, PredictionCheck.OFF);
        assertEquals(IndexCause.NO_EVENTS, worker.cause());
        assertEquals(1, worker.indexCredit());
    }

    @Test
    void blocksThatRunningRequestsBringAreNoWrongForecast() throws RouteException {
        final Worker worker = router.addWorker(WorkerSpec.of(1, "w", "x"));
        final EngineStream stream = router.openDirect(worker, source(FreshnessLimits.DEFAULT));
        stream.onMessage(0, EngineMessages.stored(new int[BLOCK_SIZE], 1, BLOCK_SIZE, 5_000));
        await(worker, IndexState.EXACT);
        try (Lease running = router.reserve(request(), decision)) {
            Eventually.holds("the running prompt", () -> isInUse());
            hits(100, 10 * BLOCK_SIZE); // its blocks are there, and are announced later
            assertEquals(IndexState.EXACT, worker.state());
            assertTrue(running.isOpen());
        }
    }

    private boolean isInUse() {
        try {
            router.select(request(), decision);
            return decision.activePrefixBlocks(0) == 10;
        } catch (RouteException e) {
            throw new IllegalStateException(e);
        }
    }

    @Test
    void aWorkerThatIsPredictedWronglyStaysPredictedAndLosesCredit() throws RouteException {
        final Worker worker = withoutEvents();
        assertEquals(IndexCause.NO_EVENTS, worker.cause());
        assertEquals(IndexState.PREDICTED, worker.state());
        assertEquals(1, worker.indexCredit());
        hit(0); // the first one holds nothing
        Eventually.holds("the routed prompt", () -> isHeld());
        hits(8, 0);
        assertEquals(IndexState.PREDICTED, worker.state());
        assertEquals(IndexCause.FORECASTS, worker.cause());
        assertEquals(0.5, worker.indexCredit());
        assertFalse(worker.indexProblem().isEmpty());
        router.select(request(), decision);
        assertEquals(5 * BLOCK_SIZE, decision.predictedCachedTokens());
        hits(15, 10 * BLOCK_SIZE);
        assertEquals(IndexCause.NO_EVENTS, worker.cause());
        assertEquals(1, worker.indexCredit());
        hits(8, 0);
        assertEquals(IndexCause.FORECASTS, worker.cause());
        assertTrue(router.forgetPredicted(worker)); // it was down
        assertEquals(IndexCause.NO_EVENTS, worker.cause());
        router.removeWorker(worker);
        assertEquals(IndexCause.CLOSED, worker.cause());
        assertEquals(0, worker.indexCredit());
    }

    @Test
    void whatAnEngineStoppedToStateIsForgottenAfterTenMinutes() throws RouteException {
        final AtomicLong nowNs = new AtomicLong(1);
        router.close();
        router =
                KvRouter.builder()
                        .blockSize(BLOCK_SIZE)
                        .set(RouterSettings.APPROXIMATE, true)
                        .tickedBy(nowNs::get)
                        .build();
        final Worker worker = router.addWorker(WorkerSpec.of(1, "w", "x"));
        hit(0);
        Eventually.holds("the routed prompt", () -> isHeld());
        hits(8, 0);
        assertEquals(0.5, worker.indexCredit());
        router.tick(nowNs.addAndGet(Duration.ofMinutes(9).toNanos()));
        assertEquals(IndexCause.FORECASTS, worker.cause());
        router.tick(nowNs.addAndGet(Duration.ofMinutes(2).toNanos()));
        assertEquals(IndexCause.NO_EVENTS, worker.cause());
        assertEquals(1, worker.indexCredit());
    }

    private boolean isHeld() {
        try {
            router.select(request(), decision);
            return decision.overlapBlocks(0) == 10;
        } catch (RouteException e) {
            throw new IllegalStateException(e);
        }
    }

    @Test
    void withoutEventsAndPredictionsNothingIsBelieved() throws RouteException {
        final Worker worker = router.addWorker(WorkerSpec.of(1, "w", "x"));
        assertEquals(IndexState.DEGRADED, worker.state());
        assertEquals(IndexCause.NO_EVENTS, worker.cause());
        hits(100, 10 * BLOCK_SIZE);
        assertEquals(IndexCause.NO_EVENTS, worker.cause());
    }

    @Test
    void theEnginesWordOnItsBlocksCountsWhateverComesFirst() throws RouteException {
        final Worker worker = router.addWorker(WorkerSpec.of(1, "w", "x"));
        worker.engineBlockSize(2 * BLOCK_SIZE);
        final EngineStream stream = router.openDirect(worker, source(FreshnessLimits.DEFAULT));
        assertEquals(IndexCause.NOT_LOADED, worker.cause());
        stream.onMessage(0, EngineMessages.removed(1, 7));
        await(worker, IndexState.DEGRADED);
        assertEquals(IndexCause.BLOCK_SIZE, worker.cause());
        worker.engineBlockSize(BLOCK_SIZE);
        await(worker, IndexState.EXACT);
        worker.engineBlockSize(-1);
        assertEquals(IndexState.EXACT, worker.state());
    }

    @Test
    void aDegradedEngineThatComputesAndAnnouncesNothingIsStale() throws RouteException {
        final Worker worker = router.addWorker(WorkerSpec.of(1, "w", "x"));
        final EngineStream stream = announce(worker, source(AT_ONCE));
        stream.onMessage(5, EngineMessages.stored(new int[BLOCK_SIZE], 1, BLOCK_SIZE, 5_000));
        await(worker, IndexState.DEGRADED);
        hits(10, 10 * BLOCK_SIZE); // it had all, and computes no block
        assertEquals(IndexState.DEGRADED, worker.state());
        hits(3, 5 * BLOCK_SIZE);
        assertEquals(IndexState.STALE, worker.state());
        assertEquals(IndexCause.SILENT, worker.cause());
        stream.onMessage(6, EngineMessages.stored(new int[BLOCK_SIZE], 1, BLOCK_SIZE, 6_000));
        await(worker, IndexState.DEGRADED);
    }

    @Test
    void aHitIsTakenOnceForABooking() throws RouteException {
        final Worker worker = router.addWorker(WorkerSpec.of(1, "w", "x"));
        announce(worker, source(FreshnessLimits.DEFAULT));
        final Lease lease = router.reserve(request().id("first"), decision);
        lease.engineCachedTokens(-9);
        assertEquals(JournalRecord.UNKNOWN, inJournal("first"), "no number that engines state");
        lease.engineCachedTokens(32);
        lease.close();
        for (int i = 0; i < 100; i++) {
            lease.engineCachedTokens(i % 2);
        }
        assertEquals(IndexState.EXACT, worker.state());
        assertEquals(32, inJournal("first"));

        router.reserve(request().id("second"), decision, lease);
        lease.engineCachedTokens(48);
        assertEquals(48, inJournal("second"), "the next booking of the same lease");
        lease.close();
    }

    @Test
    void ofThreadsThatStateAHitAtOnceOneIsTaken() throws Exception {
        final Worker worker = router.addWorker(WorkerSpec.of(1, "w", "x"));
        announce(worker, source(FreshnessLimits.DEFAULT));
        final Lease lease = router.reserve(request(), decision);
        try (ExecutorService threads = Executors.newFixedThreadPool(4)) {
            for (int i = 0; i < 100; i++) {
                threads.execute(() -> lease.engineCachedTokens(0));
            }
        }
        lease.close();
        assertEquals(IndexState.EXACT, worker.state());
    }

    private long inJournal(String id) {
        final JournalRecord record = router.journal().newRecord();
        assertTrue(router.journal().find(id, router.journal().end(), record) >= 0);
        return record.engineCachedTokens();
    }

    @Test
    void numbersThatNoEngineStatesSayNothing() throws RouteException {
        final Worker worker = router.addWorker(WorkerSpec.of(1, "w", "x"));
        announce(worker, source(FreshnessLimits.DEFAULT));
        hits(100, -1);
        hits(100, Integer.MIN_VALUE);
        assertEquals(IndexState.EXACT, worker.state());
        hits(100, Integer.MAX_VALUE);
        assertEquals(IndexState.DEGRADED, worker.state());
        new Lease().engineCachedTokens(5); // of no booking
    }

    @Test
    void requestsThatFailSayNothingOfTheEvents() throws RouteException {
        final Worker worker = router.addWorker(WorkerSpec.of(1, "w", "x"));
        announce(worker, source(AT_ONCE));
        final int[] other = IntStream.range(5_000, 5_100).toArray();
        for (int i = 0; i < 5; i++) {
            router.reserve(router.newRequest().tokens(other, other.length), decision).close();
        }
        assertEquals(IndexState.EXACT, worker.state());
    }

    @Test
    void readyMeansThatWhatWasReceivedCanBeFound() throws Exception {
        final Worker worker = router.addWorker(WorkerSpec.of(1, "w", "x"));
        assertTrue(router.awaitReady(Duration.ZERO)); // without events there is nothing to wait for
        final EngineStream stream =
                router.openDirect(worker, EngineMessages.source("w", BLOCK_SIZE));
        assertFalse(worker.ready());
        assertFalse(router.awaitReady(Duration.ofMillis(1)));
        for (int i = 0; i < 300; i++) {
            stream.onMessage(
                    i,
                    EngineMessages.stored(
                            new int[] {i, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
                            1,
                            BLOCK_SIZE,
                            i * 10L));
        }

        assertTrue(router.awaitReady(Duration.ofSeconds(30)));
        assertEquals(299, worker.eventSequence());
        assertEquals(300, worker.indexedBlocks());
        assertEquals(IndexState.EXACT, worker.state());
    }

    @Test
    void aBlockSizeThatIsNotTheRoutersIsRefused() {
        final Worker worker = router.addWorker(WorkerSpec.of(1, "w", "x"));
        final SourceConfig source = EngineMessages.source("w", 2 * BLOCK_SIZE);

        assertThrows(IllegalArgumentException.class, () -> router.openDirect(worker, source));
        assertThrows(
                IllegalArgumentException.class,
                () -> router.addWorker(new WorkerSpec(2, "v", "y", 0, source)));
        assertEquals(1, router.workers().size());
        assertNotEquals(IndexState.EXACT, worker.state());
    }
}
