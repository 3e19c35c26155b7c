package io.kvasir.router.queue;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.router.Decision;
import io.kvasir.router.EngineMessages;
import io.kvasir.router.Lease;
import io.kvasir.router.RouteException;
import io.kvasir.router.RouteRequest;
import io.kvasir.router.RouterConfig;
import io.kvasir.router.Worker;
import io.kvasir.router.WorkerSpec;
import io.kvasir.router.policy.CostModel;
import io.kvasir.router.queue.QueueException.Kind;
import io.kvasir.router.queue.QueueWorld.Waiter;
import io.kvasir.router.settings.QueuePolicy;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.router.settings.SingleFlight;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/** Requests that begin with the same uncached blocks; on a clock that stands still. */
class SingleFlightTest {
    private static final int PREFIX = 640; // tokens: five strides
    private static final long RECHECK_NS = TimeUnit.MILLISECONDS.toNanos(200);
    private static final long WAIT_NS = TimeUnit.MILLISECONDS.toNanos(500);

    private final int[] prefix = new Random(1337).ints(PREFIX, 1, 50_000).toArray();
    private final List<Lease> booked = new ArrayList<>(); // forgotten ones would be released
    private QueueWorld world;
    private int tails;

    @AfterEach
    void close() {
        world.close();
    }

    private static RouterConfig.Builder config(SingleFlight mode) {
        return QueueWorld.config()
                .degradedCredit(1) // what a worker has without events
                .set(RouterSettings.SINGLE_FLIGHT, mode)
                .set(RouterSettings.SINGLE_FLIGHT_TOKENS, 128)
                .set(RouterSettings.SINGLE_FLIGHT_WAIT, Duration.ofNanos(WAIT_NS));
    }

    private void start(RouterConfig.Builder config) {
        start(config, 4);
    }

    private void start(RouterConfig.Builder config, int workers) {
        world = QueueWorld.of(config);
        IntStream.range(0, workers).forEach(world::worker);
    }

    /** A prompt with so many tokens of the prefix, and some of its own. */
    private Waiter admit(int shared) {
        return admit(shared, _ -> {});
    }

    private Waiter admit(int shared, Consumer<RouteRequest> asks) {
        final int[] tokens = Arrays.copyOf(prefix, shared + 32);
        tokens[shared] = 60_000 + tails++;
        return world.admit(world.new Waiter(tokens, null, asks), QueueRank.USUAL);
    }

    private List<Waiter> admitSome(int count) {
        return Stream.generate(() -> admit(PREFIX)).limit(count).toList();
    }

    @Test
    void theOthersWaitUntilTheFirstIsComputedAndGoToItsWorker() {
        start(config(SingleFlight.WAIT));
        final Waiter first = admit(PREFIX);
        final List<Waiter> others = admitSome(5);
        world.pass(WAIT_NS / 2);
        assertTrue(others.stream().allMatch(Waiter::isWaiting));
        assertEquals(5, world.queue.status().following());
        world.computed(first);
        for (Waiter other : others) {
            assertSame(first.worker, other.worker);
            assertEquals(PREFIX / 16, other.overlapBlocks, "as of a worker that has them");
            assertEquals(WAIT_NS / 2, other.waitedNs);
        }
        assertEquals(1, world.queue.status().led());
        assertEquals(5, world.queue.status().followed());
    }

    /** The booking writer need not have counted what the last one uses. */
    @Test
    void manyThatGoOnTogetherShareTheirPrefixAlsoWhereTheFirstHasEnded() {
        for (int round = 0; round < 20; round++) {
            start(config(SingleFlight.WAIT));
            final Waiter first = admit(PREFIX);
            final List<Waiter> others = admitSome(8);
            first.lease.prefillComplete();
            first.lease.close();
            Eventually.holds(
                    "its end", () -> world.isSettled() && first.worker.activeRequests() == 0);
            world.queue.step();
            for (Waiter other : others) {
                assertSame(first.worker, other.worker);
            }
            world.close();
        }
        start(config(SingleFlight.OFF));
    }

    @Test
    void withoutItTheyAreComputedSideBySide() {
        start(config(SingleFlight.OFF).set(RouterSettings.QUEUE_PREFILL_TOKENS, 0L));
        final Waiter first = admit(PREFIX);
        final List<Waiter> others = admitSome(3);
        assertEquals(
                4,
                Stream.concat(Stream.of(first), others.stream())
                        .map(waiter -> waiter.worker)
                        .distinct()
                        .count());
    }

    @Test
    void drawnTheyGoToItsWorkerAtOnce() {
        start(config(SingleFlight.DRAW));
        final Waiter first = admit(PREFIX);
        for (Waiter other : admitSome(1)) {
            assertSame(first.worker, other.worker);
            assertEquals(0, other.waitedNs);
        }
        assertEquals(1, world.queue.status().followed());
    }

    @Test
    void drawnToAWorkerWhoseLoadIsMoreThanThePrefixIsWorthTheyGoElsewhere() {
        start(config(SingleFlight.DRAW));
        final Waiter first = admit(PREFIX);
        world.admit(world.new Waiter(world.prompt(50 * PREFIX), first.worker), QueueRank.USUAL);
        assertTrue(admit(PREFIX).worker != first.worker);
    }

    @Test
    void whereTheFirstDiesOneOfTheOthersIsTheNextFirst() {
        start(config(SingleFlight.WAIT));
        final Waiter first = admit(PREFIX);
        final List<Waiter> others = admitSome(3);
        world.ended(first);
        world.queue.step();
        assertNotNull(others.get(0).lease);
        assertTrue(others.get(1).isWaiting() && others.get(2).isWaiting());
        assertEquals(2, world.queue.status().led());
        world.computed(others.get(0));
        assertSame(others.get(0).worker, others.get(1).worker);
        assertSame(others.get(0).worker, others.get(2).worker);
    }

    /** Why the worker of a prompt is none for another request. */
    enum Apart {
        PIN,
        EXCLUSION,
        LABEL,
        TAINT,
        COST,
        AVAILABILITY;

        void of(RouteRequest request, Worker first, Worker other) {
            switch (this) {
                case PIN -> request.pin(other);
                case EXCLUSION -> request.exclude(first);
                case LABEL -> request.require("pool=b");
                case TAINT -> request.excludeTainted(2);
                case COST ->
                        request.addCost(
                                candidate ->
                                        candidate.worker() == first ? Double.POSITIVE_INFINITY : 0);
                case AVAILABILITY -> first.available(false);
            }
        }
    }

    @ParameterizedTest
    @EnumSource(Apart.class)
    void aRequestThatMayNotUseItsWorkerIsBookedAtOnce(Apart apart) {
        start(config(SingleFlight.WAIT), 0);
        final Worker one = world.router.addWorker(new WorkerSpec(1, "w1", "http://w1", 0, null, 2));
        final Waiter first = admit(PREFIX);
        assertSame(one, first.worker);
        final Worker two =
                world.router.addWorker(
                        WorkerSpec.of(2, "w2", "http://w2").labelled(Map.of("pool", "b")));
        final Waiter other = admit(PREFIX, request -> apart.of(request, one, two));
        assertSame(two, other.worker);
        assertEquals(0, other.waitedNs);
        assertEquals(0, world.queue.status().followed());
        one.available(true);
        final Waiter next = admit(PREFIX);
        assertTrue(next.isWaiting(), "it may use both");
        world.computed(first);
        assertSame(one, next.worker);
    }

    @Test
    void apartFromOthersThatComputeThePrefixItIsComputedOnceToo() {
        start(config(SingleFlight.WAIT), 0);
        for (String pool : List.of("a", "b", "c")) {
            world.router.addWorker(
                    WorkerSpec.of(pool.charAt(0), pool, "http://" + pool)
                            .labelled(Map.of("pool", pool)));
        }
        final Waiter first = admit(PREFIX, request -> request.require("pool=a"));
        final Waiter shorter = admit(3 * 128, request -> request.require("pool=b"));
        final Waiter third = admit(PREFIX, request -> request.require("pool=c"));
        final Waiter ofB = admit(PREFIX, request -> request.require("pool=b"));
        assertTrue(ofB.isWaiting());
        first.lease.close();
        world.pass(RECHECK_NS); // it is forgotten
        final Waiter ofC = admit(PREFIX, request -> request.require("pool=c"));
        assertTrue(ofC.isWaiting() && ofB.isWaiting());
        world.computed(shorter);
        assertSame(shorter.worker, ofB.worker);
        assertTrue(ofC.isWaiting());
        world.computed(third);
        assertSame(third.worker, ofC.worker);
        assertEquals(2, world.queue.status().followed());
    }

    @Test
    void oneThatIsBusyWithThePromptIsWaitedFor() {
        start(config(SingleFlight.WAIT).set(RouterSettings.BUSY_PREFILL_TOKENS, 100L));
        final Waiter first = admit(PREFIX);
        final Waiter other = admit(PREFIX);
        assertTrue(other.isWaiting());
        world.computed(first);
        assertSame(first.worker, other.worker);
    }

    @Test
    void aShorterOneOfAWorkerThatItMayUseIsFollowed() {
        start(config(SingleFlight.WAIT), 2);
        final Worker one = world.router.workers().get(0);
        final Worker two = world.router.workers().get(1);
        final Waiter shorter = admit(3 * 128, request -> request.pin(two));
        final Waiter longer = admit(PREFIX, request -> request.pin(one));
        assertSame(one, longer.worker);
        final Waiter other = admit(PREFIX, request -> request.pin(two));
        assertTrue(other.isWaiting());
        world.computed(shorter);
        assertSame(two, other.worker);
        assertEquals(3 * 128 / 16, other.overlapBlocks);
        assertTrue(longer.lease.isOpen());
    }

    @Test
    void whereItsWorkerIsRemovedTheOthersGoOn() {
        start(config(SingleFlight.WAIT));
        final Waiter first = admit(PREFIX);
        final Waiter other = admit(PREFIX);
        world.router.removeWorker(first.worker);
        Eventually.holds("its booking ends with it", () -> !first.lease.isOpen());
        world.queue.step();
        assertNotNull(other.lease);
        assertTrue(other.worker != first.worker);
    }

    @Test
    void nobodyWaitsLongerForAPrefixThanIsSet() {
        start(config(SingleFlight.WAIT));
        final Waiter first = admit(PREFIX);
        world.pass(WAIT_NS / 2);
        final Waiter other = admit(PREFIX);
        world.pass(WAIT_NS / 2);
        assertNotNull(other.lease, "the first one took too long");
        assertTrue(first.lease.isOpen());
    }

    @Test
    void twoFlightsInTurnAreWaitedForNoLongerThanOne() {
        start(config(SingleFlight.WAIT));
        final Waiter first = admit(PREFIX);
        final List<Waiter> others = admitSome(3);
        world.pass(WAIT_NS / 2);
        world.ended(first);
        world.queue.step();
        assertTrue(others.get(2).isWaiting());
        world.pass(WAIT_NS / 2);
        assertNotNull(others.get(2).lease);
    }

    @Test
    void aDeadlineEndsThisWaitToo() {
        start(config(SingleFlight.WAIT));
        admit(PREFIX);
        final int[] tokens = Arrays.copyOf(prefix, PREFIX + 32);
        final Waiter other =
                world.admit(
                        world.new Waiter(tokens, null),
                        new QueueRank(0, 0, world.nowNs.get() + WAIT_NS / 4));
        assertTrue(other.isWaiting());
        world.pass(WAIT_NS / 4);
        assertEquals(Kind.DEADLINE, other.kind());
        assertEquals(0, world.queue.status().following());
    }

    @Test
    void aFollowerThatIsGivenUpLeavesNothing() {
        start(config(SingleFlight.WAIT));
        final Waiter first = admit(PREFIX);
        final Waiter other = admit(PREFIX);
        assertTrue(other.ticket.cancel());
        assertEquals(0, world.queue.status().following());
        assertEquals(0, world.queue.status().tokens());
        world.computed(first);
        assertNull(other.lease);
    }

    @Test
    void aFollowerGivesWayToOneOfHigherPriority() {
        start(config(SingleFlight.WAIT).set(RouterSettings.QUEUE_MAX_REQUESTS, 1));
        final Waiter first = admit(PREFIX);
        final Waiter low = admit(PREFIX);
        assertTrue(low.isWaiting());
        final Waiter high =
                world.admit(
                        world.new Waiter(Arrays.copyOf(prefix, PREFIX), null),
                        new QueueRank(1, 0, QueueRank.NO_DEADLINE));
        assertEquals(Kind.DISPLACED, low.kind());
        assertTrue(high.isWaiting());
        assertEquals(1, world.queue.status().following());
        world.computed(first);
        assertSame(first.worker, high.worker);
    }

    @Test
    void aShortCommonPrefixIsNotFollowed() {
        start(config(SingleFlight.WAIT));
        admit(PREFIX);
        assertNotNull(admit(127).lease, "less than a stride in common");
        assertTrue(admit(128).isWaiting());
    }

    /** Without events a booked prompt counts as held at once; it is not computed by that. */
    @Test
    void aPrefixThatItsWorkerIsOnlyTakenToHoldIsWaitedFor() {
        start(config(SingleFlight.WAIT).set(RouterSettings.APPROXIMATE, true));
        final Waiter first = admit(PREFIX);
        awaitPredicted(PREFIX);
        final List<Waiter> others = admitSome(3);
        assertTrue(others.stream().allMatch(Waiter::isWaiting));
        world.pass(WAIT_NS / 2);
        world.computed(first);
        for (Waiter other : others) {
            assertSame(first.worker, other.worker);
            assertEquals(PREFIX / 16, other.overlapBlocks);
            assertEquals(WAIT_NS / 2, other.waitedNs);
        }
        assertEquals(1, world.queue.status().led());
        assertEquals(3, world.queue.status().followed());
        assertNotNull(admit(PREFIX).lease, "it is computed");
    }

    @Test
    void whatAWorkerWasTakenToHoldBeforeIsNotWaitedFor() {
        start(config(SingleFlight.WAIT).set(RouterSettings.APPROXIMATE, true));
        final Waiter before = admit(256);
        awaitPredicted(256);
        world.computed(before);
        final Waiter first = admit(PREFIX);
        assertSame(before.worker, first.worker);
        awaitPredicted(PREFIX);
        assertNotNull(admit(256).lease, "only what was there is in common");
        assertTrue(admit(384).isWaiting());
    }

    private void awaitPredicted(int tokens) {
        Eventually.holds(
                "its worker is taken to hold it",
                () -> world.router.routedPrefixes().blocks() >= tokens / 16);
    }

    /** An engine announces blocks before the first token, until which its load counts them. */
    @Test
    void aPrefixThatIsAnnouncedBeforeTheFirstTokenIsNotWaitedForAndNotComputedElsewhere() {
        for (SingleFlight mode : List.of(SingleFlight.WAIT, SingleFlight.DRAW)) {
            start(config(mode));
            final Waiter first = admit(PREFIX);
            announce(first.worker);
            for (Waiter other : admitSome(3)) {
                assertSame(first.worker, other.worker, mode.toString());
                assertEquals(0, other.waitedNs);
                assertEquals(PREFIX / 16, other.overlapBlocks);
            }
            assertTrue(first.lease.isOpen());
            assertEquals(1, world.queue.status().led());
            world.close();
        }
        start(config(SingleFlight.OFF));
    }

    /**
     * Until the booking writer counts what the last one uses, it seems to use blocks of its own.
     */
    @Test
    void manyThatComeWhenThePrefixIsAnnouncedShareItAlsoWhereTheFirstHasEnded() {
        for (int round = 0; round < 20; round++) {
            start(config(SingleFlight.WAIT));
            final Waiter first = admit(PREFIX);
            announce(first.worker);
            first.lease.prefillComplete();
            first.lease.close();
            Eventually.holds(
                    "its end", () -> world.isSettled() && first.worker.activeRequests() == 0);
            for (Waiter other : admitSome(8)) {
                assertSame(first.worker, other.worker);
            }
            world.close();
        }
        start(config(SingleFlight.OFF));
    }

    @Test
    void aPrefixThatAnotherWorkerHoldsIsTakenThere() {
        start(config(SingleFlight.WAIT));
        final Waiter first = admit(PREFIX);
        final Worker holder =
                world.router.workers().stream()
                        .filter(worker -> worker != first.worker)
                        .findFirst()
                        .orElseThrow();
        announce(holder);
        assertSame(holder, admit(PREFIX).worker);
        assertEquals(0, world.queue.status().followed());
    }

    private void announce(Worker worker) {
        world.router
                .openDirect(worker, EngineMessages.source(worker.name(), 16))
                .onMessage(0, EngineMessages.stored(prefix, PREFIX / 16, 16, 1_000));
        Eventually.holds("its events", worker::ready);
    }

    @Test
    void whatIsFollowedIsBounded() {
        start(config(SingleFlight.WAIT).set(RouterSettings.SINGLE_FLIGHT_PROMPTS, 1));
        final Waiter other = world.admit(PREFIX);
        admit(PREFIX);
        assertNotNull(admit(PREFIX).lease, "there was no room to be followed");
        assertEquals(2, world.queue.status().notLed());
        world.computed(other);
        admit(PREFIX);
        assertTrue(admit(PREFIX).isWaiting(), "there is room again");
    }

    @Test
    void afterTheyHaveFollowedTheyWaitForRoomAsAll() {
        start(config(SingleFlight.WAIT).set(RouterSettings.QUEUE_PREFILL_TOKENS, 0L));
        final Waiter first = admit(PREFIX);
        final List<Waiter> others = admitSome(2);
        for (int i = 0; i < 3; i++) {
            world.admit(8); // the other workers have no room
        }
        world.computed(first);
        assertNotNull(others.get(0).lease);
        assertTrue(others.get(1).isWaiting());
        assertEquals(0, world.queue.status().following());
    }

    /** What is cached, and what the one that it follows has computed by then, is no work. */
    @Test
    void theShortestFirstIsByWhatIsLeftToTheOneThatFollows() {
        start(shortestFirst(), 1);
        announce(world.router.workers().getFirst());
        final Waiter first = admitLonger(256);
        final Waiter other = admitLonger(256 + 32);
        assertEquals(1, world.queue.status().following());
        final Waiter cold = world.admit(200);
        computedAll(first);
        assertNotNull(other.lease);
        assertTrue(cold.isWaiting());
    }

    @Test
    void likewiseWhereItHasWaitedForAWorkerBeforeItFollows() {
        start(shortestFirst(), 1);
        announce(world.router.workers().getFirst());
        final Waiter busy = world.admit(100);
        final Waiter first = admitLonger(256);
        final Waiter other = admitLonger(256 + 32);
        computedAll(busy);
        assertNotNull(first.lease);
        world.pass(RECHECK_NS);
        assertEquals(1, world.queue.status().following());
        final Waiter cold = world.admit(200);
        computedAll(first);
        assertNotNull(other.lease);
        assertTrue(cold.isWaiting());
    }

    private static RouterConfig.Builder shortestFirst() {
        return config(SingleFlight.WAIT)
                .set(RouterSettings.QUEUE_PREFILL_TOKENS, 0L)
                .set(RouterSettings.QUEUE_POLICY, QueuePolicy.WSPT);
    }

    /** A prompt of the prefix and so many tokens that go on from it. */
    private Waiter admitLonger(int more) {
        final int[] tokens = Arrays.copyOf(prefix, PREFIX + more);
        Arrays.fill(tokens, PREFIX, tokens.length, 7);
        return world.admit(world.new Waiter(tokens, null), QueueRank.USUAL);
    }

    /** Has the only prompt that is computed be so, and the queue find out. */
    private void computedAll(Waiter waiter) {
        waiter.lease.prefillComplete();
        Eventually.holds("its end", () -> world.isSettled() && waiter.worker.prefillTokens() == 0);
        world.queue.step();
    }

    @Test
    void switchedOffThoseThatFollowGoOnAtOnceAndNoneIsFollowedAnyMore() {
        start(config(SingleFlight.WAIT));
        final Waiter first = admit(PREFIX);
        final List<Waiter> others = admitSome(5);
        world.change(RouterSettings.SINGLE_FLIGHT, SingleFlight.OFF);
        assertTrue(others.stream().allMatch(waiter -> waiter.outcomes.get() == 1));
        assertEquals(0, world.queue.status().following());
        assertEquals(0, world.queue.status().tokens());
        assertNotNull(admit(PREFIX).lease);
        world.change(RouterSettings.SINGLE_FLIGHT, SingleFlight.WAIT);
        assertNotNull(admit(PREFIX).lease, "the first flight is forgotten; this one is the next");
        assertTrue(admit(PREFIX).isWaiting());
        assertTrue(first.lease.isOpen());
    }

    @Test
    void switchedOffThoseThatFollowWaitForRoomAsAll() {
        start(config(SingleFlight.WAIT).set(RouterSettings.QUEUE_PREFILL_TOKENS, 0L));
        final Waiter first = admit(PREFIX);
        final List<Waiter> others = admitSome(4);
        world.change(RouterSettings.SINGLE_FLIGHT, SingleFlight.OFF);
        assertEquals(3, others.stream().filter(waiter -> waiter.lease != null).count());
        assertTrue(others.getLast().isWaiting());
        world.computed(first);
        assertNotNull(others.getLast().lease);
    }

    @Test
    void insteadOfWaitingTheyAreDrawnWhereThatIsSet() {
        start(config(SingleFlight.WAIT));
        final Waiter first = admit(PREFIX);
        final Waiter other = admit(PREFIX);
        world.change(RouterSettings.SINGLE_FLIGHT, SingleFlight.DRAW);
        assertSame(first.worker, other.worker);
        world.change(RouterSettings.SINGLE_FLIGHT, SingleFlight.WAIT);
        assertTrue(admit(PREFIX).isWaiting(), "the flight is still under way");
    }

    @Test
    void whatWasBookedBeforeItWasSwitchedOnIsNotFollowed() {
        start(config(SingleFlight.OFF));
        admit(PREFIX);
        world.change(RouterSettings.SINGLE_FLIGHT, SingleFlight.WAIT);
        assertNotNull(admit(PREFIX).lease);
        assertTrue(admit(PREFIX).isWaiting());
    }

    /** The change comes after the try has found what to follow, and before it waits for it. */
    @Test
    void aTryThatIsUnderWayWhenItIsSwitchedOffIsNotLost() {
        final AtomicReference<Runnable> inTry = new AtomicReference<>(() -> {});
        final CostModel hooked =
                (candidates, costs) -> {
                    inTry.getAndSet(() -> {}).run();
                    CostModel.LINEAR.price(candidates, costs);
                };
        start(config(SingleFlight.WAIT).costModel(hooked));
        admit(PREFIX);
        for (int round = 0; round < 2; round++) { // one that is new, and one that has followed
            final Waiter other = admit(PREFIX);
            assertTrue(other.isWaiting());
            inTry.set(() -> world.change(RouterSettings.SINGLE_FLIGHT, SingleFlight.OFF));
            final Waiter late = admit(PREFIX);
            assertEquals(0, world.queue.status().following());
            world.queue.step();
            assertEquals(1, late.outcomes.get());
            assertEquals(1, other.outcomes.get());
            assertEquals(0, world.queue.status().requests());
            world.change(RouterSettings.SINGLE_FLIGHT, SingleFlight.WAIT);
            assertNotNull(admit(PREFIX).lease, "the next first");
        }
    }

    @Test
    void flightsBeyondALowerLimitAreFollowedToTheirEnd() {
        start(config(SingleFlight.WAIT));
        final List<Waiter> firsts = Stream.generate(() -> world.admit(PREFIX)).limit(3).toList();
        final List<Waiter> others =
                firsts.stream()
                        .map(first -> world.new Waiter(first.tokens, null))
                        .map(waiter -> world.admit(waiter, QueueRank.USUAL))
                        .toList();
        world.change(RouterSettings.SINGLE_FLIGHT_PROMPTS, 1);
        assertTrue(others.stream().allMatch(Waiter::isWaiting));
        final List<Waiter> further = admitSome(2);
        assertNotNull(further.getLast().lease, "there is no room to be followed");
        further.forEach(world::ended);
        for (int i = 0; i < 3; i++) {
            world.computed(firsts.get(i));
            assertSame(firsts.get(i).worker, others.get(i).worker);
        }
        admit(PREFIX);
        assertTrue(admit(PREFIX).isWaiting(), "there is room again");
    }

    @Test
    void aFlightIsFoundByAnotherStrideWhereTheirBeginningsMeet() {
        start(config(SingleFlight.WAIT));
        final Waiter first = admit(PREFIX);
        world.change(RouterSettings.SINGLE_FLIGHT_TOKENS, 320); // 20 blocks of 40, after 8, 16, …
        final Waiter half = admit(PREFIX - 16); // meets it after 0 strides of 20 blocks
        assertNotNull(half.lease);
        final Waiter whole = admit(PREFIX);
        assertTrue(whole.isWaiting(), "both have a beginning of 40 blocks");
        world.change(RouterSettings.SINGLE_FLIGHT_TOKENS, 32);
        final Waiter few = admit(PREFIX / 2);
        assertTrue(few.isWaiting(), "the first has a beginning of 16 blocks, too");
        world.computed(first);
        assertEquals(PREFIX / 16, whole.overlapBlocks);
        assertSame(first.worker, whole.worker);
    }

    @Test
    void anotherTimeHoldsForThoseThatComeAfterIt() {
        start(config(SingleFlight.WAIT));
        admit(PREFIX);
        final Waiter before = admit(PREFIX);
        world.change(RouterSettings.SINGLE_FLIGHT_WAIT, Duration.ofNanos(WAIT_NS / 2));
        final Waiter after = admit(PREFIX);
        world.pass(WAIT_NS / 2);
        assertTrue(before.isWaiting());
        assertNotNull(after.lease);
        world.pass(WAIT_NS / 2);
        assertNotNull(before.lease);
    }

    @Test
    void whatEndsSoonerIsForgottenBeforeWhatWasLedFirst() {
        start(config(SingleFlight.WAIT));
        final FlightRules rules = FlightRules.of(world.router.settings());
        final PrefixFlights flights = new PrefixFlights(world.router, rules);
        for (long waitNs : new long[] {WAIT_NS, WAIT_NS / 4, WAIT_NS / 2}) {
            flights.change(new FlightRules(rules.mode(), rules.stride(), waitNs, rules.most()));
            lead(flights, rules.stride());
        }
        final long begunNs = world.nowNs.get();
        flights.tidy(begunNs + WAIT_NS / 4);
        assertEquals(2, flights.count());
        flights.tidy(begunNs + WAIT_NS / 2);
        assertEquals(1, flights.count());
        flights.change(new FlightRules(SingleFlight.OFF, 1, WAIT_NS, 1));
        assertEquals(0, flights.count());
        lead(flights, rules.stride());
        assertEquals(0, flights.count(), "switched off meanwhile");
        assertEquals(3, flights.led());
    }

    private void lead(PrefixFlights flights, int stride) {
        final RouteRequest request = world.router.newRequest();
        final int[] tokens = world.prompt(PREFIX);
        final Decision decision = new Decision();
        final PrefixFlights.Look look = new PrefixFlights.Look();
        request.tokens(tokens, tokens.length);
        flights.look(request, decision, stride, world.nowNs.get(), look);
        try {
            final Lease lease = world.router.reserve(request, decision);
            booked.add(lease);
            flights.lead(request, lease, look, world.nowNs.get());
        } catch (RouteException e) {
            throw new AssertionError(e);
        }
    }
}
