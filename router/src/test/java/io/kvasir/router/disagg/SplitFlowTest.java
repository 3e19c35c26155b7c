package io.kvasir.router.disagg;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.router.disagg.SplitFlow.Path;
import io.kvasir.router.disagg.SplitFlow.Rules;
import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/** What a flow does with events in every order. */
class SplitFlowTest {
    private static final long PREFILL_NS = TimeUnit.SECONDS.toNanos(10);

    private static final LegFailure BROKEN = new LegFailure(Leg.DECODE, "broken", true);

    private final RecordedLegs legs = new RecordedLegs();
    private final ManualDeadlines deadlines = new ManualDeadlines();
    private SplitFlow flow;

    // the straight way

    @Test
    void aSplitRequestIsPrefilledThenHandedOverThenDecoded() {
        begin(FallbackPolicy.DECODE_ONLY);
        to(SplitState.DECODING, Path.COMPLETED);
        flow.decodeStarted(1);
        flow.decodeDone(1);
        assertEquals(
                List.of(
                        "choosePrefill 1",
                        "sendPrefill 1",
                        "handOver 1",
                        "chooseDecode 1",
                        "sendDecode 1",
                        "blocksFetched 1",
                        "blocksFetched 1"),
                legs.calls);
        assertEnded(SplitState.DONE);
        assertTrue(flow.isSplit());
    }

    @Test
    void aPrefillThatIsCompleteIsTheAnswer() {
        begin(FallbackPolicy.DECODE_ONLY);
        to(SplitState.HANDOFF, Path.COMPLETED);
        flow.prefillComplete(2);
        assertEquals(SplitState.HANDOFF, flow.state());
        flow.prefillComplete(1);
        flow.handedOver(1);
        flow.abandoned();
        assertEquals(
                List.of(
                        "choosePrefill 1",
                        "sendPrefill 1",
                        "handOver 1",
                        "freePrefill 1",
                        "answer 1"),
                legs.calls);
        assertEnded(SplitState.DONE);
    }

    @Test
    void inARendezvousThePrefillIsSentWithTheDecode() {
        begin(FallbackPolicy.DECODE_ONLY);
        to(SplitState.DECODING, Path.RENDEZVOUS);
        flow.prefillAnswered(1);
        flow.decodeDone(1);
        assertEquals(
                List.of(
                        "choosePrefill 1",
                        "handOver 1",
                        "chooseDecode 1",
                        "sendDecode 1",
                        "blocksFetched 1"),
                legs.calls);
        assertEnded(SplitState.DONE);
    }

    @Test
    void aRequestThatIsNotSplitHasOneDecodeAndNoBlocks() {
        begin(FallbackPolicy.OTHER_PREFILL);
        flow.notSplit(1);
        flow.decodeChosen(1);
        flow.decodeStarted(1);
        flow.decodeDone(1);
        assertEquals(
                List.of("choosePrefill 1", "freePrefill 1", "chooseDecode 1 alone", "sendDecode 1"),
                legs.calls);
        assertEnded(SplitState.DONE);
        assertFalse(flow.isSplit());
        assertTrue(deadlines.all.isEmpty());
    }

    @Test
    void aSecondStartDoesNothing() {
        begin(FallbackPolicy.FAIL);
        flow.start();
        assertEquals(List.of("choosePrefill 1"), legs.calls);
    }

    @Test
    void aFlowThatIsAbandonedBeforeItsStartBooksNothing() {
        flow = flow(FallbackPolicy.FAIL);
        flow.abandoned();
        flow.start();
        assertEquals(List.of("freePrefill 1"), legs.calls);
        assertEnded(SplitState.FAILED);
    }

    // late events

    @Test
    void eventsOfAnEarlierPrefillMeanNothing() {
        begin(FallbackPolicy.OTHER_PREFILL);
        to(SplitState.PREFILLING, Path.COMPLETED);
        flow.prefillFailed(1, "reset");
        for (SplitState state :
                List.of(
                        SplitState.SELECT_PREFILL,
                        SplitState.PREFILLING,
                        SplitState.HANDOFF,
                        SplitState.SELECT_DECODE,
                        SplitState.DECODING)) {
            to(state, Path.COMPLETED);
            assertNothingFollows(() -> everyEventOfAPrefill(1));
            assertEquals(state, flow.state());
        }
        assertEquals(2, flow.attempt());
    }

    @Test
    void eventsOfAnEarlierDecodeMeanNothing() {
        begin(FallbackPolicy.DECODE_ONLY);
        to(SplitState.DECODING, Path.RENDEZVOUS);
        flow.prefillFailed(1, "reset");
        assertEquals(SplitState.SELECT_DECODE, flow.state());
        assertNothingFollows(() -> everyEventOfADecode(1));
        flow.decodeChosen(2);
        assertEquals(SplitState.DECODING, flow.state());
        assertNothingFollows(() -> everyEventOfADecode(1));
        flow.decodeDone(2);
        assertEnded(SplitState.DONE);
    }

    @Test
    void legsThatFailInTheSameMomentAreOneFailure() {
        begin(FallbackPolicy.DECODE_ONLY);
        to(SplitState.DECODING, Path.RENDEZVOUS);
        legs.reaction =
                call -> {
                    if (call.equals("abortDecode 1")) {
                        flow.decodeFailed(1, BROKEN); // on its way when it was aborted
                    }
                };
        flow.prefillFailed(1, "reset");
        assertLast("abortDecode 1", "freePrefill 1", "chooseDecode 2 alone");
        assertEquals(SplitState.SELECT_DECODE, flow.state());
    }

    @Test
    void aDecodeThatWasGivenUpUsesNoFurtherPrefill() {
        begin(FallbackPolicy.OTHER_PREFILL);
        to(SplitState.DECODING, Path.COMPLETED);
        flow.decodeFailed(1, BROKEN);
        for (SplitState state :
                List.of(SplitState.SELECT_PREFILL, SplitState.PREFILLING, SplitState.HANDOFF)) {
            to(state, Path.COMPLETED);
            assertNothingFollows(() -> everyEventOfADecode(1));
        }
        assertEquals(2, flow.attempt());
    }

    @Test
    void aPrefillThatFailsAfterItsAnswerWasHandedOverMeansNothing() {
        begin(FallbackPolicy.FAIL);
        to(SplitState.SELECT_DECODE, Path.COMPLETED);
        assertNothingFollows(() -> flow.prefillFailed(1, "reset"));
        to(SplitState.DECODING, Path.COMPLETED);
        assertNothingFollows(() -> flow.prefillFailed(1, "reset"));
    }

    @ParameterizedTest
    @EnumSource(Path.class)
    void nothingFollowsTheEnd(Path path) {
        for (boolean done : List.of(true, false)) {
            begin(FallbackPolicy.OTHER_PREFILL);
            to(SplitState.DECODING, path);
            if (done) {
                flow.decodeDone(1);
            } else {
                flow.abandoned();
            }
            final SplitState end = flow.state();
            assertNothingFollows(
                    () -> {
                        everyEventOfAPrefill(1);
                        everyEventOfADecode(1);
                        everyEventOfAPrefill(2);
                        everyEventOfADecode(2);
                        flow.abandoned();
                        flow.start();
                        List.copyOf(deadlines.all).forEach(ManualDeadlines.Set::fire);
                    });
            assertEnded(end);
        }
    }

    @ParameterizedTest
    @EnumSource(Path.class)
    void everyEventTwiceIsAsGoodAsOnce(Path path) {
        begin(FallbackPolicy.DECODE_ONLY);
        flow.prefillChosen(1, path);
        flow.prefillChosen(1, path);
        if (path == Path.COMPLETED) {
            flow.prefillAnswered(1);
            flow.prefillAnswered(1);
        }
        flow.handedOver(1);
        flow.handedOver(1);
        flow.decodeChosen(1);
        flow.decodeChosen(1);
        flow.decodeStarted(1);
        flow.decodeStarted(1);
        flow.decodeDone(1);
        flow.decodeDone(1);
        assertEquals(path == Path.COMPLETED ? 7 : 6, legs.calls.size(), legs.calls.toString());
        assertEnded(SplitState.DONE);
    }

    // events from within, and from many threads

    @Test
    void aLegThatReportsBeforeItReturnsIsNotEnteredAgain() {
        flow = flow(FallbackPolicy.FAIL);
        legs.reaction = this::succeed;
        flow.start();
        assertEquals(
                List.of(
                        "choosePrefill 1",
                        "sendPrefill 1",
                        "handOver 1",
                        "chooseDecode 1",
                        "sendDecode 1",
                        "blocksFetched 1"),
                legs.calls);
        assertEnded(SplitState.DONE);
    }

    @Test
    void aClientThatLeavesWithinAnActionIsNoticedAfterTheWholeRow() {
        begin(FallbackPolicy.DECODE_ONLY);
        to(SplitState.DECODING, Path.COMPLETED);
        legs.reaction =
                call -> {
                    if (call.startsWith("abortDecode 1")) {
                        flow.abandoned();
                    }
                };
        flow.decodeFailed(1, BROKEN);
        assertLast(
                "abortDecode 1",
                "freePrefill 1",
                "chooseDecode 2 alone",
                "abortDecode 2",
                "freePrefill 1");
        assertEnded(SplitState.FAILED);
    }

    @Test
    void eventsFromManyThreadsEndInOneEndWithAllFreed() throws InterruptedException {
        final long seed = Seeds.next("SplitFlowTest");
        final Random random = new Random(seed);
        for (int round = 0; round < 300; round++) {
            manyThreads(random);
        }
    }

    private void manyThreads(Random random) throws InterruptedException {
        final RecordedLegs mine = new RecordedLegs();
        final List<FallbackPolicy> policies = List.of(FallbackPolicy.values());
        final FallbackPolicy policy = policies.get(random.nextInt(policies.size()));
        final SplitFlow shared =
                new SplitFlow(new Rules(policy, 3, PREFILL_NS), mine, (_, _) -> () -> {});
        final CountDownLatch go = new CountDownLatch(1);
        final List<Throwable> thrown = new ArrayList<>();
        final List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < 4; i++) {
            final Random own = new Random(random.nextLong());
            threads.add(
                    Thread.ofPlatform()
                            .start(
                                    () -> {
                                        try {
                                            go.await();
                                            for (int n = 0; n < 100; n++) {
                                                anyEvent(shared, own);
                                            }
                                        } catch (InterruptedException
                                                | RuntimeException
                                                | Error e) {
                                            synchronized (thrown) {
                                                thrown.add(e);
                                            }
                                        }
                                    }));
        }
        shared.start();
        go.countDown();
        for (Thread thread : threads) {
            thread.join();
        }
        shared.abandoned();
        assertEquals(List.of(), thrown);
        assertTrue(shared.state().isEnd());
        for (int attempt = 1; attempt <= shared.attempt(); attempt++) {
            assertTrue(
                    mine.calls.contains("freePrefill " + attempt)
                            || mine.calls.contains("blocksFetched " + attempt),
                    mine.calls.toString());
        }
    }

    private static void anyEvent(SplitFlow flow, Random random) {
        final int of = 1 + random.nextInt(4);
        switch (random.nextInt(13)) {
            case 0 -> flow.prefillChosen(of, Path.COMPLETED);
            case 1 -> flow.prefillChosen(of, Path.RENDEZVOUS);
            case 2, 3 -> flow.prefillAnswered(of);
            case 4 -> flow.prefillFailed(of, "reset");
            case 5, 6 -> flow.handedOver(of);
            case 7, 8 -> flow.decodeChosen(of);
            case 9 -> flow.decodeUnsent(of);
            case 10 -> flow.decodeFailed(of, BROKEN);
            case 11 -> flow.prefillComplete(of);
            default -> flow.decodeDone(random.nextInt(10) == 0 ? of : 0);
        }
    }

    @Test
    void whereNoWorkerCanAnswerAloneThePromptIsPrefilledAgain() {
        legs.alone = false;
        begin(FallbackPolicy.DECODE_ONLY);
        to(SplitState.DECODING, Path.RENDEZVOUS);
        flow.decodeFailed(1, BROKEN);
        assertLast("abortDecode 1", "freePrefill 1", "choosePrefill 2");
        assertEquals("decode (broken) -> PREFILL_AGAIN", legs.failures.getLast());
        flow.prefillFailed(2, "no_worker");
        assertLast("freePrefill 2", "report prefill (no_worker)");
        assertEnded(SplitState.FAILED);
    }

    @Test
    void aRequestThatAPrefillWorkerRefusesIsNotTriedAgain() {
        begin(FallbackPolicy.OTHER_PREFILL);
        to(SplitState.DECODING, Path.RENDEZVOUS);
        flow.prefillRefused(1);
        assertLast("abortDecode 1", "freePrefill 1", "report prefill (refused)");
        assertEnded(SplitState.FAILED);
    }

    // defects

    @ParameterizedTest
    @ValueSource(
            strings = {"choosePrefill", "sendPrefill", "handOver", "chooseDecode", "sendDecode"})
    void aLegThatThrowsFailsAndTheRequestIsServedWithoutIt(String method) {
        final IllegalStateException defect = new IllegalStateException("defect");
        flow = flow(FallbackPolicy.DECODE_ONLY);
        legs.reaction =
                call -> {
                    if (call.startsWith(method) && flow.isSplit()) {
                        throw defect;
                    }
                    succeed(call);
                };
        assertSame(defect, assertThrows(IllegalStateException.class, flow::start));
        assertTrue(legs.calls.contains("freePrefill 1"), legs.calls.toString());
        assertFalse(flow.isSplit());
        assertEnded(SplitState.DONE);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {"choosePrefill", "sendPrefill", "handOver", "chooseDecode", "sendDecode"})
    void aLegThatAlwaysThrowsEndsTheRequestWithANamedFailure(String method) {
        final StackOverflowError defect = new StackOverflowError("defect");
        for (FallbackPolicy policy : FallbackPolicy.values()) {
            legs.clear();
            flow = flow(policy);
            legs.reaction =
                    call -> {
                        if (call.startsWith(method)) {
                            throw defect;
                        }
                        succeed(call);
                    };
            assertSame(defect, assertThrows(StackOverflowError.class, flow::start));
            if (policy != FallbackPolicy.DECODE_ONLY || method.endsWith("Decode")) {
                assertLast(
                        "report "
                                + (method.endsWith("Decode") ? "decode" : "prefill")
                                + " (internal)");
            }
            assertTrue(flow.state().isEnd());
            assertTrue(deadlines.noneOpen());
            assertTrue(legs.calls.contains("freePrefill " + flow.attempt()));
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"abortDecode", "freePrefill", "report"})
    void theRowsOtherActionsAreDoneWhenOneThrows(String method) {
        begin(FallbackPolicy.FAIL);
        to(SplitState.DECODING, Path.RENDEZVOUS);
        final IllegalStateException defect = new IllegalStateException("defect");
        legs.reaction =
                call -> {
                    if (call.startsWith(method)) {
                        throw defect;
                    }
                };
        assertSame(
                defect,
                assertThrows(IllegalStateException.class, () -> flow.decodeFailed(1, BROKEN)));
        assertLast("abortDecode 1", "freePrefill 1", "report decode (broken)");
        assertEnded(SplitState.FAILED);
    }

    @Test
    void aDefectInBlocksFetchedDoesNotStopTheAnswer() {
        begin(FallbackPolicy.FAIL);
        to(SplitState.DECODING, Path.COMPLETED);
        legs.reaction =
                _ -> {
                    throw new IllegalStateException("defect");
                };
        assertThrows(IllegalStateException.class, () -> flow.decodeStarted(1));
        assertThrows(IllegalStateException.class, () -> flow.decodeDone(1));
        assertEnded(SplitState.DONE);
    }

    @Test
    void aDeadlineThatCannotBeSetFailsThePrefill() {
        final Deadlines closed =
                (_, _) -> {
                    throw new IllegalStateException("closed");
                };
        flow = new SplitFlow(new Rules(FallbackPolicy.FAIL, 1, PREFILL_NS), legs, closed);
        flow.start();
        assertThrows(IllegalStateException.class, () -> flow.prefillChosen(1, Path.COMPLETED));
        assertEquals(
                List.of("choosePrefill 1", "freePrefill 1", "report prefill (internal)"),
                legs.calls);
    }

    // deadlines

    @Test
    void aPrefillThatDoesNotAnswerInTimeIsFreedAndFails() {
        begin(FallbackPolicy.FAIL);
        to(SplitState.PREFILLING, Path.COMPLETED);
        assertEquals(PREFILL_NS, deadlines.open().delayNs());
        deadlines.open().fire();
        assertLast("freePrefill 1", "report prefill (timeout)");
        assertEnded(SplitState.FAILED);
    }

    @Test
    void anAnswerAMomentBeforeTheDeadlineWins() {
        begin(FallbackPolicy.FAIL);
        to(SplitState.PREFILLING, Path.COMPLETED);
        final ManualDeadlines.Set deadline = deadlines.open();
        legs.reaction =
                call -> {
                    if (call.equals("handOver 1")) {
                        deadline.fire(); // on its way when it was cancelled
                    }
                };
        flow.prefillAnswered(1);
        assertEquals(SplitState.HANDOFF, flow.state());
        assertNothingFollows(deadline::fire);
    }

    @Test
    void anAnswerAMomentAfterTheDeadlineIsLate() {
        begin(FallbackPolicy.OTHER_PREFILL);
        to(SplitState.PREFILLING, Path.COMPLETED);
        legs.reaction =
                call -> {
                    if (call.equals("freePrefill 1")) {
                        flow.prefillAnswered(1);
                    }
                };
        deadlines.open().fire();
        assertLast("freePrefill 1", "choosePrefill 2");
        assertEquals(SplitState.SELECT_PREFILL, flow.state());
    }

    @Test
    void aDeadlineOfAnEarlierPrefillMeansNothingToTheNext() {
        begin(FallbackPolicy.OTHER_PREFILL);
        to(SplitState.PREFILLING, Path.COMPLETED);
        final ManualDeadlines.Set first = deadlines.open();
        flow.prefillFailed(1, "reset");
        to(SplitState.PREFILLING, Path.COMPLETED);
        assertNothingFollows(first::fire);
    }

    @Test
    void aRendezvousHasAsMuchTimeHoweverManyDecodeWorkersAreTried() {
        begin(FallbackPolicy.FAIL);
        to(SplitState.DECODING, Path.RENDEZVOUS);
        final ManualDeadlines.Set deadline = deadlines.open();
        flow.decodeUnsent(1);
        flow.decodeChosen(2);
        assertSame(deadline, deadlines.open());
        deadline.fire();
        assertLast("abortDecode 2", "freePrefill 1", "report prefill (timeout)");
    }

    @Test
    void aPrefillOfARendezvousThatIsOverHasNoDeadlineAnyMore() {
        begin(FallbackPolicy.FAIL);
        to(SplitState.DECODING, Path.RENDEZVOUS);
        flow.prefillAnswered(1);
        assertTrue(deadlines.noneOpen());
        flow.decodeUnsent(1);
        flow.decodeChosen(2);
        assertTrue(deadlines.noneOpen());
    }

    // decode workers that do not take it

    @Test
    void aDecodeThatIsUnsentThoughItAnsweredIsBrokenOff() {
        begin(FallbackPolicy.DECODE_ONLY);
        to(SplitState.DECODING, Path.COMPLETED);
        flow.decodeStarted(1);
        flow.decodeUnsent(1);
        assertLast("blocksFetched 1", "abortDecode 1", "freePrefill 1");
        assertEnded(SplitState.FAILED);
    }

    @ParameterizedTest
    @EnumSource(FallbackPolicy.class)
    void onceTheClientGetsTheDecodeWorkersErrorNothingElseIsTried(FallbackPolicy fallback) {
        begin(fallback);
        to(SplitState.DECODING, Path.RENDEZVOUS);
        flow.errorStarted(2); // of another one
        flow.errorStarted(1);
        assertTrue(deadlines.noneOpen());
        legs.calls.clear();
        flow.prefillFailed(1, "closed");
        assertEquals(List.of("abortDecode 1", "freePrefill 1"), legs.calls);
        assertEnded(SplitState.FAILED);
    }

    @Test
    void anUnsentReportBeforeItWasSentMeansNothing() {
        begin(FallbackPolicy.DECODE_ONLY);
        to(SplitState.SELECT_DECODE, Path.COMPLETED);
        assertNothingFollows(() -> flow.decodeUnsent(1));
    }

    // policies

    @ParameterizedTest
    @CsvSource({
        "SELECT_PREFILL, COMPLETED",
        "PREFILLING, COMPLETED",
        "HANDOFF, COMPLETED",
        "SELECT_DECODE, COMPLETED",
        "DECODING, COMPLETED",
        "HANDOFF, RENDEZVOUS",
        "SELECT_DECODE, RENDEZVOUS",
        "DECODING, RENDEZVOUS"
    })
    void decodeOnlyComputesThePromptAtADecodeWorkerOnce(SplitState state, Path path) {
        begin(FallbackPolicy.DECODE_ONLY);
        to(state, path);
        final int decodes = count("chooseDecode");
        fail(state);
        assertEquals("chooseDecode " + (decodes + 1) + " alone", last());
        assertTrue(legs.calls.contains("freePrefill 1"));
        assertEquals(decodes == 1, legs.calls.contains("abortDecode 1"));
        flow.decodeFailed(decodes + 1, BROKEN);
        assertEquals("report decode (broken)", last());
        assertEnded(SplitState.FAILED);
    }

    @ParameterizedTest
    @CsvSource({
        "SELECT_PREFILL, COMPLETED",
        "PREFILLING, COMPLETED",
        "HANDOFF, COMPLETED",
        "SELECT_DECODE, COMPLETED",
        "DECODING, COMPLETED",
        "HANDOFF, RENDEZVOUS",
        "SELECT_DECODE, RENDEZVOUS",
        "DECODING, RENDEZVOUS"
    })
    void otherPrefillComputesThePromptAgainAsOftenAsItMay(SplitState state, Path path) {
        begin(FallbackPolicy.OTHER_PREFILL);
        to(state, path);
        fail(state);
        assertEquals("choosePrefill 2", last());
        assertTrue(legs.calls.contains("freePrefill 1"));
        to(state, path);
        fail(state);
        assertTrue(legs.calls.contains("freePrefill 2"));
        assertTrue(last().startsWith("report"), last());
        assertEnded(SplitState.FAILED);
    }

    @ParameterizedTest
    @CsvSource({
        "SELECT_PREFILL, COMPLETED",
        "PREFILLING, COMPLETED",
        "HANDOFF, COMPLETED",
        "SELECT_DECODE, COMPLETED",
        "DECODING, COMPLETED",
        "HANDOFF, RENDEZVOUS",
        "SELECT_DECODE, RENDEZVOUS",
        "DECODING, RENDEZVOUS"
    })
    void failAndAClientThatLeavesEndTheRequestAtOnce(SplitState state, Path path) {
        begin(FallbackPolicy.FAIL);
        to(state, path);
        fail(state);
        assertEquals("report " + failure(state), last());
        assertEquals("freePrefill 1", legs.calls.get(legs.calls.size() - 2));
        assertEnded(SplitState.FAILED);

        begin(FallbackPolicy.DECODE_ONLY);
        to(state, path);
        flow.abandoned();
        assertEquals("freePrefill 1", last());
        assertEquals(count("chooseDecode"), count("abortDecode"));
        assertEnded(SplitState.FAILED);
    }

    @ParameterizedTest
    @EnumSource(FallbackPolicy.class)
    void aFailureThatIsNotRetryableIsFinal(FallbackPolicy policy) {
        begin(policy);
        to(SplitState.DECODING, Path.COMPLETED);
        flow.decodeFailed(1, new LegFailure(Leg.DECODE, "timeout", false));
        assertLast("abortDecode 1", "freePrefill 1", "report decode (timeout)");
        assertEnded(SplitState.FAILED);
    }

    @Test
    void aClientThatHasAPartOfTheAnswerGetsNoReportAndNoSecondAnswer() {
        begin(FallbackPolicy.DECODE_ONLY);
        to(SplitState.DECODING, Path.COMPLETED);
        flow.decodeStarted(1);
        flow.decodeFailed(1, BROKEN);
        assertLast("blocksFetched 1", "abortDecode 1", "freePrefill 1");
        assertEnded(SplitState.FAILED);
    }

    // rendezvous

    @Test
    void aPrefillThatFailsBeforeTheDecodeAnswersEndsTheDecode() {
        begin(FallbackPolicy.OTHER_PREFILL);
        to(SplitState.DECODING, Path.RENDEZVOUS);
        flow.prefillFailed(1, "reset");
        assertLast("sendDecode 1", "abortDecode 1", "freePrefill 1", "choosePrefill 2");
    }

    @Test
    void aPrefillThatFailsAfterTheDecodeAnsweredMeansNothing() {
        begin(FallbackPolicy.OTHER_PREFILL);
        to(SplitState.DECODING, Path.RENDEZVOUS);
        flow.decodeStarted(1);
        assertNothingFollows(() -> flow.prefillFailed(1, "reset"));
        assertTrue(deadlines.noneOpen());
        flow.decodeDone(1);
        assertEnded(SplitState.DONE);
    }

    @Test
    void aPrefillThatFailsWhileAnotherDecodeWorkerIsChosenEndsTheChoice() {
        begin(FallbackPolicy.FAIL);
        to(SplitState.DECODING, Path.RENDEZVOUS);
        flow.decodeUnsent(1);
        flow.prefillFailed(1, "reset");
        assertLast("chooseDecode 2", "abortDecode 2", "freePrefill 1", "report prefill (reset)");
    }

    @Test
    void aPrefillAfterARendezvousThatWasOverCanFail() {
        begin(FallbackPolicy.OTHER_PREFILL);
        to(SplitState.DECODING, Path.RENDEZVOUS);
        flow.prefillAnswered(1);
        flow.decodeFailed(1, BROKEN);
        assertEquals("choosePrefill 2", last());
        flow.prefillFailed(2, "none");
        assertLast("choosePrefill 2", "freePrefill 2", "report prefill (none)");
        assertEnded(SplitState.FAILED);
    }

    @Test
    void aRendezvousAfterOneThatWasOverHasADeadlineOfItsOwn() {
        begin(FallbackPolicy.OTHER_PREFILL);
        to(SplitState.DECODING, Path.RENDEZVOUS);
        flow.prefillAnswered(1);
        flow.decodeFailed(1, BROKEN);
        to(SplitState.DECODING, Path.RENDEZVOUS);
        deadlines.open().fire();
        assertLast("abortDecode 2", "freePrefill 2", "report prefill (timeout)");
    }

    @Test
    void aDecodeAloneIsNotEndedByThePrefillThatWasGivenUp() {
        begin(FallbackPolicy.DECODE_ONLY);
        to(SplitState.DECODING, Path.RENDEZVOUS);
        flow.decodeFailed(1, BROKEN);
        flow.decodeChosen(2);
        assertNothingFollows(() -> everyEventOfAPrefill(1));
        assertTrue(deadlines.noneOpen());
    }

    @ParameterizedTest
    @CsvSource({"0, 1", "1, 0", "-1, 1"})
    void rulesWithoutAtLeastOneOfEachAreRefused(int prefills, long prefillNs) {
        assertThrows(
                IllegalArgumentException.class,
                () -> new Rules(FallbackPolicy.FAIL, prefills, prefillNs));
    }

    // helpers

    private SplitFlow flow(FallbackPolicy policy) {
        return new SplitFlow(new Rules(policy, 2, PREFILL_NS), legs, deadlines);
    }

    private void begin(FallbackPolicy policy) {
        legs.reaction = _ -> {};
        legs.clear();
        deadlines.all.clear();
        flow = flow(policy);
        flow.start();
    }

    /** Lets everything go well until a state. */
    private void to(SplitState state, Path path) {
        while (flow.state() != state) {
            final SplitState before = flow.state();
            switch (before) {
                case SELECT_PREFILL -> flow.prefillChosen(flow.attempt(), path);
                case PREFILLING -> flow.prefillAnswered(flow.attempt());
                case HANDOFF -> flow.handedOver(flow.attempt());
                case SELECT_DECODE -> flow.decodeChosen(count("chooseDecode"));
                case DECODING, DONE, FAILED -> throw new AssertionError(before.toString());
            }
            assertNotEquals(before, flow.state());
        }
    }

    /** The failure that is natural in a state. */
    private void fail(SplitState state) {
        final LegFailure how = failure(state);
        if (how.leg() == Leg.DECODE) {
            flow.decodeFailed(count("chooseDecode"), how);
        } else {
            flow.prefillFailed(flow.attempt(), how.kind());
        }
    }

    private static LegFailure failure(SplitState state) {
        return switch (state) {
            case SELECT_DECODE, DECODING -> BROKEN;
            default -> new LegFailure(Leg.PREFILL, "reset", true);
        };
    }

    /** Answers a call as if all went well. */
    private void succeed(String call) {
        final int of = number(call);
        switch (call.substring(0, call.indexOf(' '))) {
            case "choosePrefill" -> flow.prefillChosen(of, Path.COMPLETED);
            case "sendPrefill" -> flow.prefillAnswered(of);
            case "handOver" -> flow.handedOver(of);
            case "chooseDecode" -> flow.decodeChosen(of);
            case "sendDecode" -> flow.decodeDone(of);
            default -> {}
        }
    }

    private static int number(String call) {
        final String[] words = call.split(" ", -1);
        return words[0].equals("report") ? 0 : Integer.parseInt(words[1]);
    }

    private void everyEventOfAPrefill(int of) {
        flow.prefillChosen(of, Path.COMPLETED);
        flow.prefillChosen(of, Path.RENDEZVOUS);
        flow.prefillAnswered(of);
        flow.handedOver(of);
        flow.prefillComplete(of);
        flow.prefillFailed(of, "late");
    }

    private void everyEventOfADecode(int of) {
        flow.decodeChosen(of);
        flow.decodeStarted(of);
        flow.decodeUnsent(of);
        flow.decodeFailed(of, BROKEN);
        flow.decodeDone(of);
    }

    private void assertNothingFollows(Runnable events) {
        final SplitState before = flow.state();
        final List<String> calls = List.copyOf(legs.calls);
        events.run();
        assertEquals(calls, legs.calls);
        assertEquals(before, flow.state());
    }

    private void assertEnded(SplitState end) {
        assertEquals(end, flow.state());
        assertTrue(deadlines.noneOpen(), "a deadline runs");
    }

    private void assertLast(String... expected) {
        final int size = legs.calls.size();
        assertEquals(
                List.of(expected),
                legs.calls.subList(Math.max(0, size - expected.length), size),
                legs.calls.toString());
    }

    private String last() {
        return legs.calls.getLast();
    }

    private int count(String method) {
        return (int) legs.calls.stream().filter(call -> call.startsWith(method)).count();
    }
}
