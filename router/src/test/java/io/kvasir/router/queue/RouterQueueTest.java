package io.kvasir.router.queue;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.memory.ClosedException;
import io.kvasir.router.Decision;
import io.kvasir.router.Lease;
import io.kvasir.router.RouteException;
import io.kvasir.router.RouteRequest;
import io.kvasir.router.Worker;
import io.kvasir.router.WorkerSpec;
import io.kvasir.router.queue.QueueException.Kind;
import io.kvasir.router.queue.QueueWorld.Waiter;
import io.kvasir.router.settings.LoraMode;
import io.kvasir.router.settings.QueuePolicy;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.Undeclared;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;
import java.util.stream.Stream;

/** What waits for a worker, and what ends its wait; on a clock that stands still. */
class RouterQueueTest {
    private static final long SECOND = TimeUnit.SECONDS.toNanos(1);

    private QueueWorld world = QueueWorld.ofTokens(0);

    private void world(QueueWorld other) {
        world.close();
        world = other;
    }

    @AfterEach
    void close() {
        world.close();
    }

    private static QueueRank priority(int priority) {
        return new QueueRank(priority, 0, QueueRank.NO_DEADLINE);
    }

    private static QueueRank headStart(long ns) {
        return new QueueRank(0, ns, QueueRank.NO_DEADLINE);
    }

    private static QueueRank deadline(long atNs) {
        return new QueueRank(0, 0, atNs);
    }

    /** Lets one after the other go; the order in which they were booked, the first one left out. */
    private List<Waiter> order() {
        for (int i = 0; i < world.admitted.size(); i++) {
            world.computed(world.admitted.get(i));
        }
        return world.admitted.subList(1, world.admitted.size());
    }

    @Test
    void aRequestThatFindsRoomIsBookedAtOnceOnItsOwnThread() {
        final Worker worker = world.worker(1);
        final Waiter one = world.admit(100);
        assertSame(worker, one.worker);
        assertSame(Thread.currentThread(), one.by);
        assertEquals(0, one.waitedNs);
        assertFalse(one.ticket.isWaiting());
        assertFalse(one.ticket.cancel());
        assertEquals(0, world.queue.status().waited());
    }

    @Test
    void oneThatFindsNoneWaitsUntilThePromptBeforeItIsComputed() {
        world.worker(1);
        final Waiter one = world.admit(100);
        final Waiter two = world.admit(100);
        world.pass(SECOND);
        assertTrue(two.isWaiting());
        assertEquals(1, world.queue.status().requests());
        assertEquals(100, world.queue.status().tokens());
        assertEquals(SECOND, world.queue.status().oldestNs());
        world.computed(one);
        assertNotNull(two.lease);
        assertEquals(SECOND, two.waitedNs);
        assertEquals(0, world.queue.status().requests());
        assertEquals(0, world.queue.status().tokens());
        assertEquals(1, world.queue.status().waited());
    }

    /** To match and to choose is time of the router. */
    @Test
    void theTryThatBooksIsNoPartOfTheWait() {
        world.worker(1);
        final AtomicInteger tries = new AtomicInteger();
        final Consumer<RouteRequest> takesTime =
                _ -> {
                    tries.incrementAndGet();
                    world.nowNs.addAndGet(SECOND);
                };
        final Waiter one = world.admit(100, takesTime);
        assertEquals(0, one.waitedNs);
        tries.set(0);
        final Waiter two = world.admit(100, takesTime);
        assertTrue(two.isWaiting());
        world.computed(one);
        assertNotNull(two.lease);
        assertEquals((tries.get() - 1) * SECOND, two.waitedNs);
    }

    @Test
    void oneWaitsUntilTheBookingBeforeItEnds() {
        world.worker(1);
        final Waiter one = world.admit(100);
        final Waiter two = world.admit(100);
        world.ended(one);
        assertNotNull(two.lease);
    }

    @Test
    void aNewWorkerHasRoom() {
        world.worker(1);
        world.admit(100);
        final Waiter two = world.admit(100);
        final Worker second = world.worker(2);
        assertTrue(two.isWaiting(), "the embedder steps");
        world.queue.step();
        assertSame(second, two.worker);
    }

    @Test
    void aWorkerThatIsAvailableAgainHasRoom() {
        world.worker(1);
        final Worker second = world.worker(2);
        second.available(false);
        world.admit(100);
        final Waiter two = world.admit(100);
        world.queue.step();
        assertTrue(two.isWaiting());
        second.available(true);
        world.queue.step();
        assertSame(second, two.worker);
    }

    @Test
    void theThresholdIsAPartOfAStepOfWhichMoreMayBecomeKnown() {
        world(QueueWorld.of(RouterSettings.QUEUE_THRESHOLD, 0.5));
        final Worker worker = world.worker(1);
        worker.capacity(0, 200);
        world.admit(100);
        final Waiter within = world.admit(1);
        assertNotNull(within.lease, "100 tokens are no more than half of 200");
        final Waiter beyond = world.admit(1);
        assertTrue(beyond.isWaiting());
        worker.capacity(0, 202);
        world.queue.step();
        assertNotNull(beyond.lease);
        worker.capacity(0, 0);
        assertNotNull(world.admit(1_000).lease, "what is not known is no limit");
    }

    @Test
    void oneWithRoomOpensAllWorkersToTheChoice() {
        world(QueueWorld.ofTokens(100));
        final Worker loaded = world.worker(1);
        final Worker idle = world.worker(2);
        admitTo(loaded, 200, QueueRank.USUAL);
        final Waiter pinned = admitTo(loaded, 10, priority(9));
        assertTrue(pinned.isWaiting(), "its only worker has none");
        assertSame(idle, world.admit(10).worker);
    }

    private Waiter admitTo(Worker pin, int count, QueueRank rank) {
        return world.admit(world.new Waiter(world.prompt(count), pin), rank);
    }

    @ParameterizedTest
    @CsvSource({"FCFS, 0 1 2 3", "LCFS, 3 2 1 0", "WSPT, 2 0 3 1"})
    void thePolicySaysWhichIsNext(QueuePolicy policy, String expected) {
        world(
                QueueWorld.of(
                        QueueWorld.config()
                                .set(RouterSettings.QUEUE_PREFILL_TOKENS, 0L)
                                .set(RouterSettings.QUEUE_POLICY, policy)));
        world.worker(1);
        world.admit(100);
        final List<Waiter> waiters = new ArrayList<>();
        for (int tokens : new int[] {200, 400, 100, 300}) {
            world.nowNs.addAndGet(1_000);
            waiters.add(world.admit(tokens));
        }
        final List<String> order =
                order().stream().map(w -> Integer.toString(waiters.indexOf(w))).toList();
        assertEquals(expected, String.join(" ", order));
    }

    @Test
    void ofPromptsTheUncachedPartCountsForWspt() {
        world(
                QueueWorld.of(
                        QueueWorld.config()
                                .set(RouterSettings.QUEUE_PREFILL_TOKENS, 0L)
                                .set(RouterSettings.QUEUE_POLICY, QueuePolicy.WSPT)
                                .set(RouterSettings.APPROXIMATE, true)));
        world.worker(1);
        final Waiter known = world.admit(1600);
        Eventually.holds(
                "what was routed is known", () -> world.router.routedPrefixes().blocks() >= 100);
        final Waiter small = world.admit(800);
        final Waiter large = world.admit(world.new Waiter(known.tokens, null), QueueRank.USUAL);
        world.computed(known);
        assertNotNull(large.lease, "16 tokens at most are left of it");
        assertTrue(small.isWaiting());
    }

    /** No overlap of another one's is taken for that of a prompt for which there is no booking. */
    @Test
    void aPromptThatFindsAllBookingsTakenIsMeasuredToo() {
        world(
                QueueWorld.of(
                        QueueWorld.config()
                                .maxActiveRequests(1)
                                .set(RouterSettings.QUEUE_PREFILL_TOKENS, 10_000L)
                                .set(RouterSettings.QUEUE_POLICY, QueuePolicy.WSPT)
                                .set(RouterSettings.APPROXIMATE, true)));
        world.worker(1);
        final Waiter known = world.admit(1_600);
        Eventually.holds(
                "what was routed is known", () -> world.router.routedPrefixes().blocks() >= 100);
        known.lease.close();
        final Waiter cached = world.new Waiter(known.tokens, null);
        Eventually.holds(
                "its entry is free again",
                () -> {
                    world.pass(SECOND / 10);
                    return world.router.activeLeases() == 0;
                });
        assertSame(cached, world.admit(cached, QueueRank.USUAL));
        assertEquals(100, cached.overlapBlocks);
        final Waiter large = world.admit(1_600);
        final Waiter small = world.admit(800);
        assertTrue(large.isWaiting() && small.isWaiting());
        cached.lease.close();
        Eventually.holds(
                "its entry is free again, too",
                () -> {
                    world.pass(SECOND / 10);
                    return world.admitted.size() == 3;
                });
        assertNotNull(small.lease);
        assertTrue(large.isWaiting());
    }

    @Test
    void aHigherPriorityGoesFirstWithinAWindow() {
        world.worker(1);
        world.admit(100);
        final Waiter low = world.admit(1, priority(-1));
        final Waiter usual = world.admit(1);
        final Waiter high = world.admit(1, priority(3));
        assertEquals(List.of(high, usual, low), order());
    }

    @Test
    void aHeadStartCountsAsIfItHadComeEarlier() {
        world.worker(1);
        world.admit(100);
        final Waiter first = world.admit(1);
        world.nowNs.addAndGet(SECOND);
        final Waiter late = world.admit(1);
        final Waiter started = world.admit(1, headStart(SECOND / 2));
        assertEquals(List.of(first, started, late), order());
    }

    @Test
    void theEarlierDeadlineGoesFirstAndBeforeThoseWithout() {
        world.worker(1);
        world.admit(100);
        final Waiter none = world.admit(1);
        final Waiter late = world.admit(1, deadline(world.nowNs.get() + 5 * SECOND));
        final Waiter soon = world.admit(1, deadline(world.nowNs.get() + 2 * SECOND));
        assertEquals(List.of(soon, late, none), order());
    }

    @Test
    void nobodyWaitsForEverBehindHigherPriorities() {
        world.worker(1);
        world.admit(1);
        final Waiter low = world.admit(1, priority(-2));
        int overtaken = 0;
        while (low.isWaiting()) { // one of higher priority comes whenever one goes
            assertTrue(overtaken++ < 100, "overtaken " + overtaken + " times");
            world.admit(1, priority(0));
            world.nowNs.addAndGet(SECOND);
            world.computed(world.admitted.getLast());
        }
        // two windows of ten seconds, one request a second
        assertTrue(overtaken > 10 && overtaken <= 31, "overtaken " + overtaken + " times");
    }

    @Test
    void withoutAgingPriorityAloneCounts() {
        world(
                QueueWorld.of(
                        QueueWorld.config()
                                .set(RouterSettings.QUEUE_PREFILL_TOKENS, 0L)
                                .set(RouterSettings.QUEUE_MAX_WAIT, Duration.ofHours(1))
                                .set(RouterSettings.QUEUE_AGING, Duration.ZERO)));
        world.worker(1);
        world.admit(1);
        final Waiter low = world.admit(1, priority(-1));
        for (int i = 0; i < 100; i++) {
            world.admit(1);
            world.nowNs.addAndGet(10 * SECOND);
            world.computed(world.admitted.getLast());
        }
        assertTrue(low.isWaiting());
    }

    @Test
    void aDeadlineInThePastIsRefusedAtOnceAlsoWithRoom() {
        world.worker(1);
        final Waiter late = world.admit(1, deadline(world.nowNs.get()));
        assertEquals(Kind.DEADLINE, late.kind());
        assertEquals(0, world.queue.status().requests());
    }

    @ParameterizedTest
    @ValueSource(longs = {Long.MIN_VALUE, Long.MIN_VALUE + 1_000, -1})
    void aDeadlineFarInThePastIsRefusedAndKeepsNoOtherWaiting(long atNs) {
        world.worker(1);
        world.admit(100);
        final Waiter other = world.admit(1);
        world.pass(SECOND); // later than a deadline can be subtracted from
        final Waiter late = world.admit(1, deadline(atNs));
        assertEquals(Kind.DEADLINE, late.kind());
        assertTrue(((QueueException) late.refusal).observed() > 0, late.refusal.getMessage());
        world.pass(world.router.settings().get(RouterSettings.QUEUE_MAX_WAIT).toNanos());
        assertEquals(Kind.WAITED_TOO_LONG, other.kind());
        assertEquals(0, world.queue.status().requests());
    }

    @Test
    void aDeadlineIsAheadHoweverFarItIs() {
        world.nowNs.set(-SECOND);
        world.worker(1);
        final Waiter one = world.admit(1, deadline(Long.MAX_VALUE - 1));
        assertNotNull(one.lease);
    }

    @Test
    void whatHasWaitedToItsDeadlineLeavesAtOnce() {
        world.worker(1);
        final Waiter one = world.admit(1);
        final Waiter two = world.admit(1, deadline(world.nowNs.get() + SECOND));
        final Waiter three = world.admit(1);
        world.pass(SECOND - 1);
        assertTrue(two.isWaiting());
        world.pass(3_000_001);
        assertEquals(Kind.DEADLINE, two.kind());
        assertEquals(3, ((QueueException) two.refusal).observed(), "ms beyond it");
        assertNull(((QueueException) two.refusal).limitName());
        assertEquals(1, world.queue.status().requests());
        world.computed(one);
        assertNotNull(three.lease);
        assertEquals(1, two.outcomes.get());
    }

    @Test
    void nobodyWaitsLongerThanTheLimitWhichTheRefusalNames() {
        world.worker(1);
        world.admit(1);
        final Waiter two = world.admit(1);
        world.pass(TimeUnit.MILLISECONDS.toNanos(30_000));
        final QueueException refusal = assertInstanceOf(QueueException.class, two.refusal);
        assertEquals(Kind.WAITED_TOO_LONG, refusal.kind());
        assertEquals("queue-max-wait-ms", refusal.limitName());
        assertEquals(30_000, refusal.limit());
        assertEquals(30_000, refusal.observed());
        assertTrue(refusal.retryAfterNs() > 0);
        assertEquals(
                "no worker had room for the request in time: ms waited=30000,"
                        + " queue-max-wait-ms=30000",
                refusal.getMessage());
    }

    @Test
    void aFullQueueRefusesAndNamesItsLimit() {
        world(
                QueueWorld.of(
                        QueueWorld.config()
                                .set(RouterSettings.QUEUE_PREFILL_TOKENS, 0L)
                                .set(RouterSettings.QUEUE_MAX_REQUESTS, 2)));
        world.worker(1);
        final Waiter one = world.admit(1);
        final Waiter two = world.admit(1);
        final Waiter three = world.admit(1);
        final Waiter four = world.admit(1);
        assertEquals(Kind.QUEUE_FULL, four.kind());
        assertEquals(2, ((QueueException) four.refusal).observed());
        assertEquals("queue-max-requests", ((QueueException) four.refusal).limitName());
        assertTrue(three.ticket.cancel());
        final Waiter five = world.admit(1);
        assertTrue(five.isWaiting(), "it has the room of one that has left");
        world.computed(one);
        assertNotNull(two.lease);
        assertTrue(world.admit(1).isWaiting());
        assertEquals(1L, world.queue.status().refused().get(Kind.QUEUE_FULL));
    }

    /** With a worker that has no room. */
    private void aQueueOfAHundredTokens() {
        world(
                QueueWorld.of(
                        QueueWorld.config()
                                .set(RouterSettings.QUEUE_PREFILL_TOKENS, 0L)
                                .set(RouterSettings.QUEUE_MAX_TOKENS, 100L)));
        world.worker(1);
        world.admit(1);
    }

    @Test
    void tokensAreBoundedToo() {
        aQueueOfAHundredTokens();
        world.admit(60);
        final Waiter large = world.admit(41);
        assertEquals(Kind.QUEUE_TOKENS_FULL, large.kind());
        assertEquals(101, ((QueueException) large.refusal).observed());
        assertTrue(world.admit(40).isWaiting());
    }

    @Test
    void oneThatGaveWayToTokensNamesTheirLimit() {
        aQueueOfAHundredTokens();
        world.admit(30);
        final Waiter last = world.admit(60);
        assertTrue(world.admit(50, priority(1)).isWaiting());
        assertEquals(Kind.DISPLACED, last.kind());
        final QueueException why = (QueueException) last.refusal;
        assertEquals(RouterSettings.QUEUE_MAX_TOKENS.name(), why.limitName());
        assertEquals(100, why.limit());
        assertEquals(90, why.observed());
        assertTrue(why.getMessage().endsWith("queued tokens=90, queue-max-tokens=100"));
    }

    @Test
    void oneOfHigherPriorityTakesTheRoomOfTheLastOnesOfLower() {
        world(
                QueueWorld.of(
                        QueueWorld.config()
                                .set(RouterSettings.QUEUE_PREFILL_TOKENS, 0L)
                                .set(RouterSettings.QUEUE_MAX_TOKENS, 100L)
                                .set(RouterSettings.QUEUE_MAX_REQUESTS, 3)));
        world.worker(1);
        world.admit(1);
        final Waiter first = world.admit(30);
        final Waiter second = world.admit(30);
        final Waiter third = world.admit(30);
        final Waiter high = world.admit(60, priority(1));
        assertTrue(high.isWaiting());
        assertTrue(first.isWaiting());
        assertEquals(Kind.DISPLACED, second.kind());
        assertEquals(Kind.DISPLACED, third.kind());
        assertEquals(
                "the request gave way to one of higher priority: queued requests=3,"
                        + " queue-max-requests=3",
                third.refusal.getMessage());
        final Waiter larger = world.admit(90, priority(1));
        assertEquals(Kind.QUEUE_TOKENS_FULL, larger.kind(), "nobody gives way to it in vain");
        assertTrue(first.isWaiting());
    }

    /** Those that have waited for windows stand before the higher ones that come last. */
    @Test
    void theLowestGiveWayAlsoWhereTheyHaveWaitedLong() {
        world(
                QueueWorld.of(
                        QueueWorld.config()
                                .set(RouterSettings.QUEUE_PREFILL_TOKENS, 0L)
                                .set(RouterSettings.QUEUE_AGING, Duration.ofSeconds(1))
                                .set(RouterSettings.QUEUE_MAX_REQUESTS, 3)));
        world.worker(1);
        world.admit(1);
        final Waiter first = world.admit(30, priority(0));
        final Waiter second = world.admit(30, priority(0));
        final Waiter middle = world.admit(30, priority(1));
        world.pass(5 * SECOND);
        final Waiter high = world.admit(30, priority(2));
        assertEquals(Kind.DISPLACED, second.kind());
        final Waiter another = world.admit(30, priority(2));
        assertEquals(Kind.DISPLACED, first.kind());
        assertTrue(another.isWaiting() && high.isWaiting() && middle.isWaiting());
        assertEquals(Kind.QUEUE_FULL, world.admit(30, priority(1)).kind());
    }

    @Test
    void aRequestThatIsGivenUpLeavesNothing() {
        world.worker(1);
        final Waiter one = world.admit(1);
        final Waiter two = world.admit(10);
        final Waiter three = world.admit(10);
        assertTrue(two.ticket.cancel());
        assertFalse(two.ticket.cancel());
        assertFalse(two.ticket.isWaiting());
        assertEquals(10, world.queue.status().tokens());
        world.computed(one);
        assertNull(two.lease);
        assertNotNull(three.lease);
        assertEquals(0, two.outcomes.get());
        assertEquals(1, world.queue.status().cancelled());
    }

    @Test
    void requestsForOtherWorkersDoNotWaitBehindOneAnother() {
        final Worker one = world.worker(1);
        final Worker two = world.worker(2);
        admitTo(one, 10, QueueRank.USUAL);
        final Waiter atTwo = admitTo(two, 10, QueueRank.USUAL);
        final Waiter forOne = admitTo(one, 10, priority(9));
        final Waiter forAny = world.admit(10);
        assertTrue(forOne.isWaiting() && forAny.isWaiting());
        world.computed(atTwo);
        assertSame(two, forAny.worker);
        assertTrue(forOne.isWaiting());
    }

    /** What a request asks of its worker; of two, one has it. */
    enum Ask {
        LABEL,
        TAINT,
        PREFERENCE,
        ADAPTER,
        COST;

        WorkerSpec having(WorkerSpec spec) {
            return switch (this) {
                case LABEL -> spec.labelled(Map.of("pool", "b"));
                case TAINT, PREFERENCE -> spec.tainted(Set.of("a"));
                case ADAPTER, COST -> spec;
            };
        }

        boolean isTaint() {
            return this == TAINT || this == PREFERENCE;
        }

        void of(RouteRequest request, Worker may) {
            switch (this) {
                case LABEL -> request.require("pool=b");
                case TAINT -> request.tolerate("a");
                case PREFERENCE -> request.prefer("a", 1);
                case ADAPTER -> request.lora("x");
                case COST ->
                        request.addCost(
                                candidate ->
                                        candidate.worker() == may ? 0 : Double.POSITIVE_INFINITY);
            }
        }
    }

    @ParameterizedTest
    @CsvSource({"LABEL", "TAINT", "PREFERENCE", "ADAPTER", "COST"})
    void whatIsAskedOfTheWorkerSaysWhomARequestWaitsBehind(Ask ask) {
        world(
                QueueWorld.of(
                        QueueWorld.config()
                                .set(RouterSettings.QUEUE_PREFILL_TOKENS, 0L)
                                .set(RouterSettings.LORA_MODE, LoraMode.REQUIRED)));
        final Worker one = world.router.addWorker(ask.having(WorkerSpec.of(1, "w1", "http://w1")));
        if (ask == Ask.ADAPTER) {
            one.adapters(Set.of("x"));
        }
        final WorkerSpec spec = WorkerSpec.of(2, "w2", "http://w2");
        final Worker two = world.router.addWorker(ask.isTaint() ? spec.tainted(Set.of("b")) : spec);
        final Waiter atOne = world.admit(10, request -> ask.of(request, one));
        final Waiter forOne = world.admit(10, request -> ask.of(request, one));
        assertSame(one, atOne.worker);
        assertTrue(forOne.isWaiting());
        final Consumer<RouteRequest> other =
                ask.isTaint() ? request -> request.tolerate("b") : _ -> {};
        final Waiter atTwo = world.admit(10, other);
        world.queue.step();
        assertSame(two, atTwo.worker, "which has room");
        final Waiter nextForTwo = world.admit(10, other);
        assertTrue(nextForTwo.isWaiting());
        world.computed(atTwo);
        assertSame(two, nextForTwo.worker);
        assertTrue(forOne.isWaiting());
        world.computed(atOne);
        assertSame(one, forOne.worker);
    }

    @Test
    void anAdapterLetsOthersPassOnlyWhereItCounts() {
        world(QueueWorld.of(QueueWorld.config().set(RouterSettings.QUEUE_PREFILL_TOKENS, 0L)));
        final Worker one = world.worker(1);
        one.adapters(Set.of("x"));
        final Waiter first = world.admit(10);
        final Waiter adapted = world.admit(10, request -> request.lora("x"));
        final Waiter plain = world.admit(10);
        assertTrue(adapted.isWaiting() && plain.isWaiting());
        world.change(RouterSettings.LORA_MODE, LoraMode.REQUIRED);
        final Worker two = world.worker(2);
        world.queue.step();
        assertSame(two, plain.worker, "the only one that has room is not for the one before it");
        assertTrue(adapted.isWaiting());
        world.change(RouterSettings.LORA_MODE, LoraMode.OFF);
        world.computed(plain);
        assertSame(two, adapted.worker);
        world.ended(first);
    }

    @Test
    void whereOnlyAWorkerWithoutThePreferredAdapterHasRoomItIsTaken() {
        world(
                QueueWorld.of(
                        QueueWorld.config()
                                .set(RouterSettings.QUEUE_PREFILL_TOKENS, 0L)
                                .set(RouterSettings.LORA_MODE, LoraMode.PREFERRED)));
        final Worker with = world.worker(1);
        with.adapters(Set.of("x"));
        final Worker without = world.worker(2);
        final Consumer<RouteRequest> adapted = request -> request.lora("x");
        final Waiter first = world.admit(10, adapted);
        assertSame(with, first.worker);
        assertSame(without, world.admit(10, adapted).worker);
        final Waiter plain = world.admit(10);
        final Waiter waiting = world.admit(10, adapted);
        assertTrue(plain.isWaiting() && waiting.isWaiting(), "none has room");
        world.computed(first);
        assertSame(with, plain.worker, "adapters let none pass");
        world.computed(plain);
        assertSame(with, waiting.worker);
    }

    /** With one worker, of which a thousandth of a second a token is known. */
    private void startTimed() {
        world(
                QueueWorld.of(
                        QueueWorld.config()
                                .set(RouterSettings.QUEUE_PREFILL_TOKENS, 1_000_000L)
                                .set(RouterSettings.BUSY_TTFT, Duration.ofSeconds(2))));
        world.worker(1);
        final Waiter computed = world.admit(1_600);
        world.nowNs.addAndGet(1_600 * SECOND / 1_000); // a thousandth of a second a token
        world.computed(computed);
        computed.lease.close();
    }

    /** By busy-ttft-ms a worker is busy for a prompt by what that one has to compute. */
    @Test
    void aPromptThatIsTooLongForTheMomentHoldsUpNoShorterOne() {
        startTimed();
        final Waiter running = world.admit(100);
        final Waiter large = world.admit(50_000);
        final Waiter larger = world.admit(60_000);
        assertTrue(large.isWaiting() && larger.isWaiting());
        final Waiter small = world.admit(10);
        world.queue.step();
        assertNotNull(small.lease, "its first token comes in time");
        world.ended(small);
        assertTrue(large.isWaiting() && larger.isWaiting());
        world.ended(running);
        assertNotNull(large.lease, "no wait would make it faster");
        assertTrue(larger.isWaiting());
        assertTrue(larger.ticket.cancel());
        assertEquals(0, world.queue.status().requests());
    }

    @Test
    void howeverManyAreTooLongAWorkerThatHasRoomCostsSoManyTries() {
        startTimed();
        final Waiter running = world.admit(100);
        final AtomicInteger tries = new AtomicInteger();
        final List<Waiter> large = new ArrayList<>();
        for (int i = 0; i < 200; i++) {
            large.add(world.admit(50_000, _ -> tries.incrementAndGet()));
        }
        world.queue.step();
        tries.set(0);
        world.pass(SECOND / 2); // has all tried again
        assertEquals(65, tries.get());
        for (Waiter one : large.subList(0, 100)) {
            assertTrue(one.ticket.cancel());
        }
        world.ended(running);
        assertNotNull(large.get(100).lease);
        assertEquals(99, world.queue.status().requests());
    }

    @Test
    void whatCanNotBeHadAtAnyTimeIsNotWaitedFor() {
        final Waiter none = world.admit(1);
        assertEquals(
                RouteException.Kind.NO_WORKERS,
                assertInstanceOf(RouteException.class, none.refusal).kind());
        final Worker one = world.worker(1);
        final Worker two = world.worker(2);
        admitTo(one, 1, QueueRank.USUAL);
        final Waiter forOne = admitTo(one, 1, QueueRank.USUAL);
        assertTrue(forOne.isWaiting());
        world.router.removeWorker(one);
        world.queue.step();
        assertEquals(
                RouteException.Kind.PINNED_UNAVAILABLE,
                assertInstanceOf(RouteException.class, forOne.refusal).kind());
        assertSame(two, world.admit(1).worker);
    }

    @Test
    void asManyBookingsAsMayBeAreWaitedForToo() {
        world(
                QueueWorld.of(
                        QueueWorld.config()
                                .maxActiveRequests(1)
                                .set(RouterSettings.QUEUE_PREFILL_TOKENS, 1_000L)));
        world.worker(1);
        final Waiter one = world.admit(1);
        final Waiter two = world.admit(1);
        assertTrue(two.isWaiting());
        one.lease.close();
        Eventually.holds(
                "its entry is free again",
                () -> {
                    world.pass(SECOND / 10);
                    return two.lease != null;
                });
    }

    @Test
    void aPromptThatCanNotBeReadIsRefusedWithWhatWasThrown() {
        world.worker(1);
        final IllegalStateException thrown = new IllegalStateException("no tokens");
        final CompletableFuture<Lease> lease =
                world.queue.admit(
                        _ -> {
                            throw thrown;
                        },
                        QueueRank.USUAL);
        assertSame(thrown, assertThrows(CompletionException.class, lease::join).getCause());
    }

    @Test
    void whatIsNullIsNamed() {
        world.worker(1);
        final Consumer<RouteRequest> fill = request -> request.tokens(new int[1], 1);
        final Consumer<RouteRequest> none = null;
        final QueuedRequest noRequest = null;
        final RouterQueue queue = world.queue;
        final Map<String, Executable> calls =
                Map.of(
                        "fill", () -> queue.admit(none, QueueRank.USUAL).join(),
                        "request", () -> queue.admit(noRequest, QueueRank.USUAL),
                        "rank", () -> queue.admit(fill, null).join());
        calls.forEach(
                (name, call) ->
                        assertEquals(
                                name, assertThrows(NullPointerException.class, call).getMessage()));
        assertEquals(0, queue.status().requests());
        assertEquals(0, world.router.activeLeases());
    }

    @Test
    void aFutureTakesTheLeaseAndGivesTheRequestUp() {
        final Worker worker = world.worker(1);
        final int[] tokens = world.prompt(10);
        final CompletableFuture<Lease> one =
                world.queue.admit(request -> request.tokens(tokens, 10), QueueRank.USUAL);
        final CompletableFuture<Lease> two =
                world.queue.admit(request -> request.tokens(tokens, 10), QueueRank.USUAL);
        assertSame(worker, one.join().worker());
        assertEquals(1, world.queue.status().requests());
        assertTrue(two.cancel(false));
        assertEquals(0, world.queue.status().requests());
        one.join().close();
        Eventually.holds("the booking has ended", () -> worker.activeRequests() == 0);
    }

    @Test
    void aClosedQueueRefusesWhatWaitsAndWhatComes() {
        world.worker(1);
        world.admit(1);
        final Waiter two = world.admit(1);
        world.queue.close();
        assertEquals(Kind.CLOSED, two.kind());
        assertEquals(Kind.CLOSED, world.admit(1).kind());
        world.queue.close();
        world.queue.step();
        assertEquals(1, two.outcomes.get());
        assertEquals(0, world.queue.status().requests());
    }

    @Test
    void aRouterThatIsClosedUnderItsQueueRefusesAll() {
        world.worker(1);
        world.admit(1);
        final Waiter two = world.admit(1);
        world.router.close();
        world.pass(SECOND);
        assertInstanceOf(ClosedException.class, two.refusal);
        assertInstanceOf(ClosedException.class, world.admit(1).refusal);
    }

    /** A request whose callbacks throw what is given. */
    @SuppressWarnings("ArrayRecordComponent") // never compared
    private record Broken(int[] tokens, Runnable thrower) implements QueuedRequest {
        @Override
        public void fill(RouteRequest request) {
            request.tokens(tokens, tokens.length);
        }

        @Override
        public void admitted(Lease lease, Decision decision, long waitedNs) {
            thrower.run();
        }

        @Override
        public void refused(Exception why) {
            thrower.run();
        }
    }

    private static List<Runnable> defects() {
        return List.of(
                () -> {
                    throw new IllegalStateException("a defect of the caller");
                },
                () -> {
                    throw new AssertionError("a defect of the caller");
                },
                () -> {
                    throw Undeclared.thrown(new IOException("a defect of the caller"));
                });
    }

    @ParameterizedTest
    @MethodSource("defects")
    void anErrorOfOneRequestIsNotTheNextOnes(Runnable defect) {
        world.worker(1);
        final Waiter one = world.admit(1);
        world.queue.admit(new Broken(one.tokens, defect), QueueRank.USUAL);
        final Waiter three = world.admit(1);
        world.computed(one);
        Eventually.holds(
                "the booking of the broken one is given back",
                () -> {
                    world.pass(SECOND / 100);
                    return three.lease != null;
                });
    }

    @ParameterizedTest
    @MethodSource("defects")
    void anErrorOfOneThatIsRefusedIsNotTheNextOnes(Runnable defect) {
        world.worker(1);
        world.admit(1);
        final QueueRank rank = deadline(world.nowNs.get() + SECOND);
        world.queue.admit(new Broken(world.prompt(1), defect), rank);
        final Waiter next = world.admit(1, rank);
        world.pass(SECOND);
        assertEquals(Kind.DEADLINE, next.kind());
    }

    private static List<Consumer<RouteRequest>> errors() {
        final StackOverflowError error = new StackOverflowError("a defect of the caller");
        return List.of(
                _ -> {
                    throw error;
                },
                request ->
                        request.addCost(
                                _ -> {
                                    throw error;
                                }));
    }

    @ParameterizedTest
    @MethodSource("errors")
    void aRequestThatThrowsAnErrorFailsWithItAndTheOthersGoOn(Consumer<RouteRequest> throwing) {
        world.worker(1);
        final Waiter one = world.admit(1);
        final AtomicBoolean fails = new AtomicBoolean();
        final Consumer<RouteRequest> later =
                request -> {
                    if (fails.get()) {
                        throwing.accept(request);
                    }
                };
        final Waiter broken = world.admit(1, later);
        final Waiter next = world.admit(1);
        fails.set(true);
        world.computed(one);
        assertInstanceOf(StackOverflowError.class, broken.refusal.getCause());
        assertNotNull(next.lease);
        final Waiter atOnce = world.admit(1, later);
        assertInstanceOf(StackOverflowError.class, atOnce.refusal.getCause());
        world.change(RouterSettings.QUEUE_POLICY, QueuePolicy.WSPT);
        final Waiter sized = world.admit(1, later);
        world.computed(next);
        assertInstanceOf(StackOverflowError.class, sized.refusal.getCause());
        assertEquals(
                List.of(1, 1, 1),
                Stream.of(broken, atOnce, sized).map(waiter -> waiter.outcomes.get()).toList());
    }

    private static List<Throwable> undeclared() {
        return List.of(new IOException("no tokens"), new Throwable("no tokens"));
    }

    @ParameterizedTest
    @MethodSource("undeclared")
    void anUndeclaredExceptionOfOneRequestIsItsRefusalAndTheOthersGoOn(Throwable thrown) {
        world.worker(1);
        final Waiter one = world.admit(1);
        final AtomicBoolean fails = new AtomicBoolean();
        final Consumer<RouteRequest> later =
                _ -> {
                    if (fails.get()) {
                        throw Undeclared.thrown(thrown);
                    }
                };
        final Waiter broken = world.admit(1, later);
        final Waiter next = world.admit(1);
        fails.set(true);
        world.computed(one);
        assertSame(thrown, exceptionOrCause(broken.refusal));
        assertNotNull(next.lease);
        final Waiter atOnce = world.admit(1, later);
        assertSame(thrown, exceptionOrCause(atOnce.refusal));
    }

    private static Throwable exceptionOrCause(Exception refusal) {
        return refusal instanceof IllegalStateException ? refusal.getCause() : refusal;
    }

    @Test
    void whatIsOutOfRangeIsRefusedWithItsRange() {
        final IllegalArgumentException tooHigh =
                assertThrows(IllegalArgumentException.class, () -> priority(1_001));
        assertTrue(tooHigh.getMessage().contains("-1000..1000"), tooHigh.getMessage());
        assertThrows(IllegalArgumentException.class, () -> headStart(-1));
        assertThrows(IllegalArgumentException.class, () -> headStart(TimeUnit.HOURS.toNanos(2)));
    }

    @ParameterizedTest
    @CsvSource({
        "queue-threshold, 1, track-prefill-tokens, false",
        "queue-prefill-tokens, 0, track-prefill-tokens, false",
        "single-flight, wait, prefix-index, off",
        "single-flight, draw, overlap-weight, 0"
    })
    void whatCouldNotWorkIsRefusedByName(String one, String value, String two, String other) {
        final IllegalArgumentException refused =
                assertThrows(
                        IllegalArgumentException.class,
                        () -> QueueWorld.config().set(one, value).set(two, other).build());
        assertTrue(refused.getMessage().contains(one), refused.getMessage());
        assertTrue(refused.getMessage().contains(two), refused.getMessage());
    }

    @Test
    void aLimitThatIsLowerThanWhatWaitsKeepsItAndRefusesNewOnes() {
        world.worker(1);
        final Waiter one = world.admit(10);
        final List<Waiter> waiting = new ArrayList<>();
        for (int i = 0; i < 4; i++) {
            waiting.add(world.admit(10));
        }
        world.change(RouterSettings.QUEUE_MAX_REQUESTS, 2);
        assertTrue(waiting.stream().allMatch(Waiter::isWaiting));
        final QueueException full = (QueueException) world.admit(10).refusal;
        assertEquals(Kind.QUEUE_FULL, full.kind());
        assertEquals(4, full.observed());
        assertEquals(2, full.limit());
        final Waiter high = world.admit(10, priority(1));
        assertTrue(high.isWaiting());
        assertEquals(Kind.DISPLACED, waiting.getLast().kind(), "one for one");
        assertEquals(4, world.queue.status().requests());
        assertTrue(waiting.subList(0, 3).stream().allMatch(Waiter::isWaiting));
        world.computed(one);
        world.computed(high);
        world.computed(waiting.get(0));
        assertNotNull(waiting.get(1).lease);
        assertEquals(1, world.queue.status().requests());
        assertTrue(world.admit(10).isWaiting(), "there is room within the new limit");
        assertEquals(Kind.QUEUE_FULL, world.admit(10).kind());
        world.change(RouterSettings.QUEUE_MAX_REQUESTS, 3);
        assertTrue(world.admit(10).isWaiting());
    }

    @Test
    void fewerTokensThanWaitKeepThemToo() {
        world.worker(1);
        world.admit(1);
        final Waiter first = world.admit(60);
        final Waiter last = world.admit(60);
        world.change(RouterSettings.QUEUE_MAX_TOKENS, 50L);
        assertTrue(first.isWaiting() && last.isWaiting());
        final QueueException full = (QueueException) world.admit(1).refusal;
        assertEquals(Kind.QUEUE_TOKENS_FULL, full.kind());
        assertEquals(121, full.observed());
        assertEquals(50, full.limit());
        assertTrue(world.admit(40, priority(1)).isWaiting());
        assertEquals(Kind.DISPLACED, last.kind());
        assertTrue(first.isWaiting());
    }

    @Test
    void anotherPolicyOrdersWhatWaits() {
        world.worker(1);
        world.admit(1);
        final Waiter large = world.admit(30);
        final Waiter small = world.admit(10);
        final Waiter middle = world.admit(20);
        world.change(RouterSettings.QUEUE_POLICY, QueuePolicy.WSPT);
        final Waiter least = world.admit(5);
        assertEquals(List.of(least, small, middle, large), order());
    }

    @Test
    void anotherWindowOrdersWhatWaits() {
        world.worker(1);
        world.admit(1);
        final Waiter low = world.admit(1);
        world.pass(25 * SECOND); // two windows and more
        final Waiter high = world.admit(1, priority(1));
        world.change(RouterSettings.QUEUE_AGING, Duration.ZERO);
        assertEquals(List.of(high, low), order());
    }

    @Test
    void aChangedWaitIsThatOfWhatComesAfterIt() {
        world.worker(1);
        world.admit(1);
        final Waiter before = world.admit(1);
        world.change(RouterSettings.QUEUE_MAX_WAIT, Duration.ofSeconds(2));
        final Waiter after = world.admit(1);
        world.pass(2 * SECOND);
        assertEquals(Kind.WAITED_TOO_LONG, after.kind());
        assertEquals(2_000, ((QueueException) after.refusal).limit());
        assertTrue(before.isWaiting());
        world.change(RouterSettings.QUEUE_MAX_WAIT, Duration.ofSeconds(1));
        world.pass(28 * SECOND);
        assertEquals(Kind.WAITED_TOO_LONG, before.kind());
        assertEquals(30_000, ((QueueException) before.refusal).limit(), "as it was admitted");
    }

    @Test
    void aThresholdThatIsHigherOrNoneLetsWhatWaitsGo() {
        world.worker(1);
        world.admit(100);
        final Waiter two = world.admit(100);
        final Waiter three = world.admit(100);
        assertTrue(two.isWaiting() && three.isWaiting());
        world.change(RouterSettings.QUEUE_PREFILL_TOKENS, 100L);
        assertNotNull(two.lease);
        assertTrue(three.isWaiting());
        world.change(RouterSettings.QUEUE_PREFILL_TOKENS, RouterSettings.NO_QUEUE_TOKENS);
        assertNotNull(three.lease);
        assertNotNull(world.admit(100).lease);
        world.change(RouterSettings.QUEUE_PREFILL_TOKENS, 0L);
        assertTrue(world.admit(100).isWaiting());
        final IllegalArgumentException refused =
                assertThrows(
                        IllegalArgumentException.class,
                        () -> world.change(RouterSettings.TRACK_PREFILL_TOKENS, false));
        assertTrue(refused.getMessage().contains("queue-prefill-tokens"), refused.getMessage());
    }

    @Test
    void anOrderThatChangesWithAThreadOnItLosesNobody() throws Exception {
        world(
                QueueWorld.of(
                        QueueWorld.config()
                                .set(RouterSettings.QUEUE_PREFILL_TOKENS, 0L)
                                .set(RouterSettings.MAX_ACTIVE_REQUESTS, 1_024)));
        world.worker(1);
        final AtomicBoolean ends = new AtomicBoolean();
        try (RouterQueue queue = RouterQueue.start(world.router)) {
            final Thread changes =
                    Thread.ofPlatform()
                            .start(
                                    () -> {
                                        final QueuePolicy[] all = QueuePolicy.values();
                                        for (int i = 0; !ends.get(); i++) {
                                            world.router.change(
                                                    world.router
                                                            .settings()
                                                            .with(
                                                                    RouterSettings.QUEUE_POLICY,
                                                                    all[i % all.length]));
                                            LockSupport.parkNanos(1_000);
                                        }
                                    });
            final List<CompletableFuture<Void>> all = new ArrayList<>();
            for (int i = 0; i < 500; i++) {
                final int[] tokens = world.prompt(1 + i % 50);
                all.add(
                        queue.admit(
                                        request -> request.tokens(tokens, tokens.length),
                                        new QueueRank(i % 3, 0, QueueRank.NO_DEADLINE))
                                .thenAccept(Lease::close));
            }
            CompletableFuture.allOf(all.toArray(CompletableFuture[]::new)).get(1, TimeUnit.MINUTES);
            ends.set(true);
            changes.join();
            assertEquals(0, queue.status().requests());
            assertEquals(0, queue.status().tokens());
        }
    }

    @Test
    void withoutALimitNothingNeedsAQueue() {
        assertFalse(RouterQueue.isNeeded(QueueWorld.config().settings()));
        assertTrue(
                RouterQueue.isNeeded(
                        QueueWorld.config().set("router-queue-threshold", "0").settings()));
    }
}
