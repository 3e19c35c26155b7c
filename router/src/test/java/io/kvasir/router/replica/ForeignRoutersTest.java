package io.kvasir.router.replica;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.router.KvRouter;
import io.kvasir.router.Worker;
import io.kvasir.router.WorkerSpec;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.testsupport.Cores;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Messages of routers of other makes, with other hashes, too many, too late, or about no known
 * worker.
 */
class ForeignRoutersTest {
    private static final ReplicaOrigin DYNAMO = new ReplicaOrigin(77, ReplicaOrigin.FOREIGN);
    private static final ReplicaOrigin PEER = new ReplicaOrigin(78, 5);
    private static final ReplicaWorker BY_ID = new ReplicaWorker(100, "", 0);
    private static final ReplicaWorker BY_NAME = new ReplicaWorker(4, "w", 0);
    private static final long[] HASHES = {1, 2, 3};

    private final ReplicaHub hub = new ReplicaHub(new Random(1));
    private final ReplicaHub.HubLink other = hub.open();
    private final AtomicLong clock = new AtomicLong();
    private final KvRouter router =
            KvRouter.builder()
                    .maxWorkers(4)
                    .maxBlocks(1 << 10, 1 << 10)
                    .maxActiveRequests(16)
                    .set(RouterSettings.REPLICA_MAX_BOOKINGS, 4)
                    .set(RouterSettings.REPLICA_LEASE, Duration.ofSeconds(5))
                    .set(RouterSettings.BOOKING_TIMEOUT, Duration.ofSeconds(60))
                    .tickedBy(clock::get)
                    .replicaLink(hub.open())
                    .build();
    private final Worker worker = router.addWorker(WorkerSpec.of(100, "w", "http://w"));

    @AfterEach
    void close() {
        router.close();
    }

    private void pass(long seconds) {
        clock.addAndGet(TimeUnit.SECONDS.toNanos(seconds));
        hub.advance(clock.get());
        router.tick(clock.get());
        while (router.bookingPipeline().backlog() > 0) {
            Cores.giveWay();
        }
    }

    private void say(ReplicaMessage... messages) {
        for (ReplicaMessage message : messages) {
            other.send(message);
        }
        pass(0);
    }

    private static ReplicaMessage added(
            ReplicaOrigin from, long booking, ReplicaWorker where, long[] hashes, long check) {
        return new ReplicaMessage.Added(from, booking, booking, where, 3, hashes, check, 2, 40, -1);
    }

    private void assertLoad(long requests, long tokens, long blocks) {
        assertEquals(requests, worker.activeRequests());
        assertEquals(tokens, worker.prefillTokens());
        assertEquals(blocks, worker.activeBlocks());
    }

    private ReplicaStatus status() {
        return router.status().replicaOrNull();
    }

    @Test
    void aForeignBookingIsFoundByTheWorkersNumberAndWeighsItsBlocksWithoutAPath() {
        say(
                new ReplicaMessage.Added(DYNAMO, 0, 1, BY_ID, 3, new long[0], 0, 0, 40, 100),
                new ReplicaMessage.Added(DYNAMO, 0, 2, BY_ID, 3, new long[0], 0, 0, 0, -1));
        assertLoad(2, 40, 6);
        say(new ReplicaMessage.Prefilled(DYNAMO, 0, 1, BY_ID));
        assertLoad(2, 0, 6);
        say(new ReplicaMessage.Freed(DYNAMO, 0, 1, BY_ID));
        assertLoad(1, 0, 3);
        assertEquals(2, status().otherHashes());
    }

    @Test
    void aForeignBookingEndsByTheBookingTimeoutAsNoDigestRepairsIt() {
        say(new ReplicaMessage.Added(DYNAMO, 0, 1, BY_ID, 3, new long[0], 0, 0, 40, -1));
        pass(30);
        assertLoad(1, 40, 3);
        pass(31);
        assertLoad(0, 0, 0);
        pass(6);
        assertEquals(0, status().peers(), "nothing is left of it");
    }

    @Test
    void aChangeOfTheBookingTimeoutIsForForeignBookingsToo() {
        say(new ReplicaMessage.Added(DYNAMO, 0, 1, BY_ID, 3, new long[0], 0, 0, 40, -1));
        router.change(
                router.settings().with(RouterSettings.BOOKING_TIMEOUT, Duration.ofMinutes(2)));
        pass(90);
        assertLoad(1, 40, 3);
        router.change(router.settings().with(RouterSettings.BOOKING_TIMEOUT, Duration.ZERO));
        pass(90);
        assertLoad(1, 40, 3);
        router.change(
                router.settings().with(RouterSettings.BOOKING_TIMEOUT, Duration.ofSeconds(60)));
        pass(1);
        assertLoad(0, 0, 0);
    }

    @Test
    void hashesOfAnotherSeedShareNothing() {
        say(added(PEER, 1, BY_NAME, HASHES, 12345), added(PEER, 2, BY_NAME, HASHES, 12345));
        assertLoad(2, 80, 10);
        assertEquals(2, status().otherHashes());
    }

    @Test
    void messagesOfAFormerRunAreIgnoredAndANewRunReplacesItsBookings() {
        say(added(PEER, 1, BY_NAME, HASHES, 0));
        say(added(new ReplicaOrigin(78, 4), 2, BY_NAME, HASHES, 0));
        assertLoad(1, 40, 5);
        say(added(new ReplicaOrigin(78, 6), 3, BY_NAME, HASHES, 0));
        assertLoad(1, 40, 5);
        assertEquals(1, status().peers());
    }

    @Test
    void bookingsBeyondTheLimitAreRefusedAndCounted() {
        for (int i = 1; i <= 10; i++) {
            say(added(PEER, i, BY_NAME, HASHES, 0));
        }
        assertLoad(4, 160, 20);
        assertEquals(6, status().refused());
        say(new ReplicaMessage.Freed(PEER, 11, 1, BY_NAME));
        say(added(PEER, 12, BY_NAME, HASHES, 0));
        assertLoad(4, 160, 20);
        say(new ReplicaMessage.Leaving(PEER));
        assertLoad(0, 0, 0);
    }

    @Test
    void whatIsAboutNobodyHereIsCounted() {
        say(
                added(PEER, 1, new ReplicaWorker(100, "unknown", 0), HASHES, 0),
                added(DYNAMO, 2, new ReplicaWorker(101, "", 0), new long[0], 0),
                added(PEER, 3, new ReplicaWorker(100, "w", 1), HASHES, 0));
        assertLoad(0, 0, 0);
        assertEquals(3, status().unknownWorkers());
    }

    @Test
    void doubledEarlyAndLateMessagesOfABookingDoNoHarm() {
        say(
                new ReplicaMessage.Freed(PEER, 2, 9, BY_NAME),
                added(PEER, 9, BY_NAME, HASHES, 0), // after its end
                new ReplicaMessage.Prefilled(PEER, 3, 8, BY_NAME), // before its beginning
                new ReplicaMessage.Output(PEER, 3, new long[] {8, 9}, new int[] {5, 5}));
        assertLoad(0, 0, 0);
        final ReplicaMessage added = added(PEER, 10, BY_NAME, HASHES, 0);
        final ReplicaMessage output =
                new ReplicaMessage.Output(PEER, 10, new long[] {10}, new int[] {4});
        say(added, added, output, output);
        say(new ReplicaMessage.Output(PEER, 9, new long[] {10}, new int[] {3}));
        assertLoad(1, 40, 7);
    }

    @Test
    void anOutputBeyondAllSenseLeavesNoLoadBehind() {
        say(added(PEER, 1, BY_NAME, HASHES, 12345));
        say(new ReplicaMessage.Output(PEER, 1, new long[] {1}, new int[] {Integer.MAX_VALUE}));
        say(new ReplicaMessage.Freed(PEER, 2, 1, BY_NAME));
        assertLoad(0, 0, 0);
    }

    @Test
    void aListThatIsOlderThanABookingDoesNotEndIt() {
        say(added(PEER, 20, BY_NAME, HASHES, 0));
        final ReplicaMessage old =
                new ReplicaMessage.Bookings(
                        PEER, 10, BY_NAME, 0, 1, new long[0], new long[0], new int[0]);
        say(old);
        assertLoad(1, 40, 5);
        say(
                new ReplicaMessage.Bookings(
                        PEER, 30, BY_NAME, 0, 2, new long[0], new long[0], new int[0]));
        assertLoad(1, 40, 5); // its other part may name it
        say(
                new ReplicaMessage.Bookings(
                        PEER, 30, BY_NAME, 1, 2, new long[0], new long[0], new int[0]));
        assertLoad(0, 0, 0);
        assertEquals(1, status().repairedFrees());
    }

    @Test
    void aDigestThatDiffersIsAnsweredByAQuestion() {
        final ReplicaHub.HubLink receiver = hub.open();
        final List<ReplicaMessage> received = new ArrayList<>();
        receiver.start(received::add);
        say(
                new ReplicaMessage.Digest(
                        PEER, 1, List.of(new ReplicaMessage.WorkerSum(BY_NAME, 1, 40, 2, 99))));
        pass(1);
        assertTrue(
                received.stream()
                        .anyMatch(
                                m ->
                                        m instanceof ReplicaMessage.Ask ask
                                                && ask.routerId() == 78
                                                && ask.workers().equals(List.of(BY_NAME))),
                received::toString);
    }
}
