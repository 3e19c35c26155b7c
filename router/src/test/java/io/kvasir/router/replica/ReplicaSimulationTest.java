package io.kvasir.router.replica;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.router.RouteException;
import io.kvasir.router.Worker;
import io.kvasir.testsupport.Trials;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;

/** Replicas over a hub that loses, doubles and delays, in virtual time; one seed is one story. */
class ReplicaSimulationTest {
    private static final int SEEDS = Integer.getInteger("replica.seeds", Trials.of(10, 220));
    private static final int EVENTS = 150;
    private static final Duration NEVER = Duration.ofDays(20);

    private static void disturbed(ReplicaStory story, boolean fates) throws RouteException {
        story.join();
        story.join();
        story.hub.faults(
                story.random.nextDouble(0.4),
                story.random.nextDouble(0.3),
                TimeUnit.MILLISECONDS.toNanos(1 + story.random.nextInt(700)));
        for (int i = 0; i < EVENTS; i++) {
            story.act();
            if (story.random.nextInt(3) == 0) {
                story.pass(1 + story.random.nextInt(4));
            }
            if (fates && story.random.nextInt(25) == 0) {
                fate(story);
            }
        }
    }

    private static void fate(ReplicaStory story) {
        final ReplicaStory.Replica one =
                story.replicas.get(story.random.nextInt(story.replicas.size()));
        switch (story.random.nextInt(6)) {
            case 0 -> story.hub.cut(story.replicas.get(0).link, one.link, true);
            case 1 -> story.hub.heal();
            case 2 -> story.restart(one);
            case 3 -> story.replaceWorker(one);
            case 4 -> {
                if (story.replicas.size() < 4) {
                    story.join();
                }
            }
            default -> {
                if (story.replicas.size() > 2) {
                    story.kill(one);
                }
            }
        }
    }

    /** Empty where all see the truth. */
    private static Map<Long, String> errors(ReplicaStory story) {
        final Map<String, String> truth = story.truth();
        final Map<Long, String> wrong = new TreeMap<>();
        for (ReplicaStory.Replica replica : story.replicas) {
            final Map<String, String> seen = ReplicaStory.seen(replica.router);
            if (!seen.equals(truth)) {
                wrong.put(replica.id, seen + " instead of " + truth);
            }
        }
        return wrong;
    }

    @Tag("trials")
    @Test
    void allReplicasComeToTheTrueLoadWhateverWasLostReorderedDoubledOrCutOff()
            throws RouteException {
        long lost = 0;
        long adds = 0;
        long frees = 0;
        long dropped = 0;
        for (long seed = 0; seed < SEEDS; seed++) {
            try (ReplicaStory story =
                    new ReplicaStory(seed, ReplicaStory.DIGEST, ReplicaStory.LEASE)) {
                disturbed(story, true);
                story.quiesce();
                assertEquals(Map.of(), errors(story), "seed=" + seed);
                for (ReplicaStory.Replica replica : story.replicas) {
                    final ReplicaStatus status = replica.router.status().replicaOrNull();
                    assertEquals(story.replicas.size() - 1, status.peers(), "seed=" + seed);
                    lost += status.lost();
                    adds += status.repairedAdds();
                    frees += status.repairedFrees();
                    dropped += status.droppedPeers();
                }
            }
        }
        System.out.println(
                SEEDS
                        + " seeds: lost "
                        + lost
                        + ", repaired adds "
                        + adds
                        + ", repaired frees "
                        + frees
                        + ", silent routers dropped "
                        + dropped);
        assertTrue(lost > 0 && adds > 0 && frees > 0 && dropped > 0, "all of it was put to use");
    }

    @Test
    void withoutDigestsTheyDoNot() throws RouteException {
        int wrong = 0;
        for (long seed = 0; seed < 10; seed++) {
            try (ReplicaStory story = new ReplicaStory(seed, NEVER, NEVER)) {
                disturbed(story, false);
                story.quiesce();
                wrong += errors(story).isEmpty() ? 0 : 1;
            }
        }
        assertTrue(wrong >= 7, "a lost message must be seen: wrong in " + wrong + " of 10");
    }

    @Test
    void withoutLeasesTheBookingsOfAKilledRouterStay() throws RouteException {
        try (ReplicaStory story = new ReplicaStory(1, ReplicaStory.DIGEST, NEVER)) {
            final ReplicaStory.Replica killed = story.join();
            story.join();
            killed.reserve(story.prompt());
            story.pass(20);
            story.kill(killed);
            story.quiesce();
            assertEquals(1, errors(story).size());
        }
    }

    @Test
    void aRouterThatJoinsSeesTheLoadWithinTwoDigests() throws RouteException {
        try (ReplicaStory story = new ReplicaStory(2, ReplicaStory.DIGEST, ReplicaStory.LEASE)) {
            final ReplicaStory.Replica first = story.join();
            for (int i = 0; i < 50; i++) {
                first.reserve(story.prompt());
            }
            story.pass(20);
            final ReplicaStory.Replica joined = story.join();
            story.pass(10);
            assertEquals(Map.of(), errors(story));
            assertEquals(50, joined.router.status().replicaOrNull().repairedAdds());
        }
    }

    @Test
    void aRestartedRoutersFormerBookingsEndAtItsFirstWord() throws RouteException {
        try (ReplicaStory story = new ReplicaStory(3, ReplicaStory.DIGEST, NEVER)) {
            final ReplicaStory.Replica first = story.join();
            story.join();
            first.reserve(story.prompt());
            first.reserve(story.prompt());
            story.pass(10);
            assertEquals(Map.of(), errors(story));
            story.restart(first);
            story.pass(5);
            assertEquals(Map.of(), errors(story));
        }
    }

    @Test
    void aLostEndIsRepairedWithinTwoDigestsThoughNoneHasNamedTheBooking() throws RouteException {
        try (ReplicaStory story = new ReplicaStory(8, ReplicaStory.DIGEST, NEVER)) {
            final ReplicaStory.Replica first = story.join();
            final ReplicaStory.Replica other = story.join();
            story.pass(11); // the last digest is of now
            first.reserve(story.prompt());
            story.pass(2);
            assertEquals(1, requests(other));
            story.hub.faults(1, 0, 0);
            first.open.removeFirst().lease.close();
            story.pass(1); // its end is lost
            story.hub.faults(0, 0, 0);
            story.pass(11);
            assertEquals(Map.of(), errors(story));
            assertEquals(1, other.router.status().replicaOrNull().repairedFrees());
        }
    }

    @Test
    void bookingsOfAWorkerThatTheirRouterHasRemovedEndThoughNobodyHearsOfIt()
            throws RouteException {
        try (ReplicaStory story = new ReplicaStory(6, ReplicaStory.DIGEST, ReplicaStory.LEASE)) {
            final ReplicaStory.Replica first = story.join();
            story.join();
            for (int i = 0; i < 30; i++) {
                first.reserve(story.prompt());
            }
            story.pass(10);
            assertEquals(Map.of(), errors(story));
            story.hub.faults(1, 0, 0);
            story.removeWorker(first, 1);
            story.pass(3); // the ends are lost
            story.hub.faults(0, 0, 0);
            story.pass(40); // digests for longer than a lease
            final ReplicaStory.Replica other = story.replicas.get(1);
            assertEquals(0, other.worker(1).activeRequests());
            assertEquals(0, other.worker(1).activeBlocks());
            assertEquals(
                    first.worker(0).activeRequests(),
                    other.worker(0).activeRequests(),
                    "what is stated stays");
            assertTrue(other.worker(0).activeRequests() > 0);
        }
    }

    @Test
    void bookingsThatWereDroppedAsTheirRoutersDigestsWereLostComeBack() throws RouteException {
        try (ReplicaStory story = new ReplicaStory(7, ReplicaStory.DIGEST, ReplicaStory.LEASE)) {
            final ReplicaStory.Replica first = story.join();
            final ReplicaStory.Replica other = story.join();
            final List<ReplicaMessage> received = new ArrayList<>();
            final ReplicaHub.HubLink spy = story.hub.open();
            spy.start(received::add);
            first.reserve(story.prompt());
            story.pass(10);
            assertEquals(Map.of(), errors(story));
            final ReplicaOrigin from =
                    received.stream()
                            .map(ReplicaMessage::origin)
                            .filter(origin -> origin.routerId() == first.id)
                            .findAny()
                            .orElseThrow();

            story.hub.faults(1, 0, 0);
            story.pass(25);
            sendAlone(story, spy, new ReplicaMessage.Ask(from, 99, List.of(), new long[0]));
            story.pass(10); // longer than a lease since the last digest, but the router lives
            assertEquals(Map.of(), errors(story));
            sendAlone(story, spy, new ReplicaMessage.Digest(from, 1, List.of()));
            story.pass(1);
            assertEquals(0, requests(other), "as if a digest of several parts had lost one");

            story.hub.faults(0, 0, 0);
            story.pass(15);
            assertEquals(Map.of(), errors(story));
        }
    }

    /** Sends over a hub that loses everything else. */
    private static void sendAlone(
            ReplicaStory story, ReplicaHub.HubLink link, ReplicaMessage message) {
        story.hub.faults(0, 0, 0);
        link.send(message);
        story.hub.faults(1, 0, 0);
    }

    private static long requests(ReplicaStory.Replica replica) {
        return replica.router.workers().stream().mapToLong(Worker::activeRequests).sum();
    }

    @Test
    void aRouterThatClosesTakesItsBookingsAlongAtOnce() throws RouteException {
        try (ReplicaStory story = new ReplicaStory(4, ReplicaStory.DIGEST, NEVER)) {
            final ReplicaStory.Replica first = story.join();
            story.join();
            first.reserve(story.prompt());
            story.pass(10);
            first.router.close();
            story.replicas.remove(first);
            story.pass(2);
            assertEquals(Map.of(), errors(story));
        }
    }

    @Test
    void anUndisturbedStoryNeedsNoRepair() throws RouteException {
        try (ReplicaStory story = new ReplicaStory(5, ReplicaStory.DIGEST, ReplicaStory.LEASE)) {
            story.join();
            story.join();
            story.pass(3);
            for (int i = 0; i < 500; i++) {
                story.act();
                story.pass(1);
            }
            story.quiesce();
            assertEquals(Map.of(), errors(story));
            for (ReplicaStory.Replica replica : story.replicas) {
                final ReplicaStatus status = replica.router.status().replicaOrNull();
                assertEquals(0, status.lost());
                assertEquals(0, status.repairedAdds());
                assertEquals(0, status.repairedFrees());
                assertEquals(0, status.queueDropped());
                assertTrue(status.ownIgnored() > 0, "the hub sends a router's own back");
            }
        }
    }
}
