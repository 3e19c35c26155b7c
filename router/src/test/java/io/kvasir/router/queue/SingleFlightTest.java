package io.kvasir.router.queue;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.router.RouterConfig;
import io.kvasir.router.queue.QueueException.Kind;
import io.kvasir.router.queue.QueueWorld.Waiter;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.router.settings.SingleFlight;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/** Requests that begin with the same uncached blocks; on a clock that stands still. */
class SingleFlightTest {
    private static final int PREFIX = 640; // tokens: five strides
    private static final long WAIT_NS = TimeUnit.MILLISECONDS.toNanos(500);

    private final int[] prefix = new Random(1337).ints(PREFIX, 1, 50_000).toArray();
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
        world = QueueWorld.of(config);
        IntStream.range(0, 4).forEach(world::worker);
    }

    /** A prompt with so many tokens of the prefix, and some of its own. */
    private Waiter admit(int shared) {
        final int[] tokens = Arrays.copyOf(prefix, shared + 32);
        tokens[shared] = 60_000 + tails++;
        return world.admit(world.new Waiter(tokens, null), QueueRank.USUAL);
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
            QueueWorld.await(
                    () -> world.isSettled() && first.worker.activeRequests() == 0, "its end");
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

    @Test
    void whereItsWorkerIsRemovedTheOthersGoOn() {
        start(config(SingleFlight.WAIT));
        final Waiter first = admit(PREFIX);
        final Waiter other = admit(PREFIX);
        world.router.removeWorker(first.worker);
        QueueWorld.await(() -> !first.lease.isOpen(), "its booking ends with it");
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
    void aShortCommonPrefixIsNotFollowed() {
        start(config(SingleFlight.WAIT));
        admit(PREFIX);
        assertNotNull(admit(127).lease, "less than a stride in common");
        assertTrue(admit(128).isWaiting());
    }

    @Test
    void aPrefixThatIsHeldSomewhereIsNotWaitedFor() {
        start(config(SingleFlight.WAIT).set(RouterSettings.APPROXIMATE, true));
        final Waiter first = admit(PREFIX);
        QueueWorld.await(
                () -> world.router.routedPrefixes().blocks() >= PREFIX / 16,
                "its worker is taken to hold it");
        assertNotNull(admit(PREFIX).lease);
        assertTrue(first.lease.isOpen());
        assertEquals(0, world.queue.status().followed());
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
}
