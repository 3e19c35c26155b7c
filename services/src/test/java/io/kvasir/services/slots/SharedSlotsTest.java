package io.kvasir.services.slots;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.kvasir.router.replica.ReplicaConfig;
import io.kvasir.router.replica.ReplicaHub;
import io.kvasir.router.replica.ReplicaOrigin;
import io.kvasir.router.replica.ReplicaStatus;
import io.kvasir.router.replica.ReplicaSync;
import io.kvasir.services.http.GroupKey;
import io.kvasir.services.http.ServiceException;
import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.TimeUnit;

/** Trackers over the same workers, in virtual time: each one's loads are those of all requests. */
class SharedSlotsTest {
    private static final GroupKey MODEL = new GroupKey("m", "default");
    private static final GroupKey OTHER = new GroupKey("m:default", "default");
    private static final int RANKS = 8;
    private static final int REQUESTS = 64;
    private static final long DIGEST_NS = TimeUnit.SECONDS.toNanos(1);
    private static final long LEASE_NS = TimeUnit.SECONDS.toNanos(10);
    private static final long STEP_NS = TimeUnit.MILLISECONDS.toNanos(50);

    private final Random random = new Random(Seeds.next("SharedSlotsTest"));
    private final ReplicaHub hub = new ReplicaHub(random);
    private final List<Node> nodes = new ArrayList<>();
    private long nowNs = 1;

    /** One tracker of several. */
    private final class Node {
        final SlotTracker tracker;
        final ReplicaHub.HubLink link = hub.open();
        final ReplicaSync sync;
        boolean runs = true;

        Node(long id, int others, Duration timeout) {
            tracker =
                    new SlotTracker(
                            SlotsConfig.of("127.0.0.1", 0)
                                    .withSizes(RANKS, REQUESTS, 1 << 16)
                                    .withRequestTimeout(timeout),
                            () -> nowNs,
                            others);
            sync =
                    new ReplicaSync(
                            new ReplicaConfig(
                                    new ReplicaOrigin(id, nowNs), 5, DIGEST_NS, LEASE_NS, () -> 0),
                            link,
                            tracker.replicaPortOrNull(),
                            tracker.fleet());
            nodes.add(this);
        }

        Node(long id) {
            this(id, 1_024, Duration.ZERO);
        }

        Node register() throws ServiceException {
            tracker.register(MODEL, 7, 4, 0, 2);
            tracker.register(MODEL, -1, 4, 0, 1); // 64 unsigned bits
            return this;
        }

        void add(String id, long[] hashes, long tokens) throws ServiceException {
            tracker.add(MODEL, id, 7, 1, hashes, tokens);
        }

        ReplicaStatus status() {
            return sync.status();
        }
    }

    @AfterEach
    void close() {
        nodes.forEach(node -> node.sync.close());
        nodes.forEach(node -> node.tracker.close());
    }

    private void pass(long ns) {
        for (long end = nowNs + ns; nowNs < end; ) {
            nowNs += STEP_NS;
            hub.advance(nowNs);
            for (Node node : nodes) {
                if (node.runs) {
                    node.tracker.expire();
                    node.sync.step(nowNs);
                }
            }
        }
    }

    private void settle() {
        pass(4 * DIGEST_NS);
    }

    /** Load of worker 7's second rank. */
    private static RankLoad load(Node of) {
        return of.tracker.loads().get(1);
    }

    private static RankLoad load(long tokens, long blocks, long requests) {
        return new RankLoad(MODEL, 7, 1, tokens, blocks, requests);
    }

    @Test
    void whatIsReservedAtOneIsLoadAtTheOther() throws ServiceException {
        final Node one = new Node(1).register();
        final Node two = new Node(2).register();
        pass(STEP_NS);
        one.add("a", new long[] {11, 12}, 8);
        pass(2 * STEP_NS);
        assertEquals(load(8, 2, 1), load(two));
        two.add("a", new long[] {11, 13}, 9); // ids are each tracker's own; the first block is one
        pass(2 * STEP_NS);
        assertEquals(load(17, 3, 2), load(one));
        assertEquals(load(17, 3, 2), load(two));
        assertEquals(
                load(22, 4, 2),
                one.tracker.potentialLoads(MODEL, new long[] {11, 13, 14}, 5).get(1));
        one.tracker.prefillComplete(MODEL, "a");
        pass(2 * STEP_NS);
        assertEquals(load(9, 3, 2), load(two));
        one.tracker.free(MODEL, "a");
        pass(2 * STEP_NS);
        assertEquals(load(9, 2, 1), load(two));
        two.tracker.free(MODEL, "a");
        pass(2 * STEP_NS);
        assertEquals(load(0, 0, 0), load(one));
        assertEquals(0, one.status().lost());
        assertEquals(1, one.status().peers());
    }

    @Test
    void onlyWhoReservedFrees() throws ServiceException {
        final Node one = new Node(1).register();
        final Node two = new Node(2).register();
        pass(STEP_NS);
        one.add("a", new long[] {11}, 8);
        pass(2 * STEP_NS);
        two.tracker.free(MODEL, "a"); // of an id that is not there
        assertEquals(
                404,
                assertThrows(ServiceException.class, () -> two.tracker.prefillComplete(MODEL, "a"))
                        .status());
        settle();
        assertEquals(load(8, 1, 1), load(one));
        assertEquals(load(8, 1, 1), load(two));
    }

    @Test
    void aTrackerThatComesLateKnowsTheLoadAndOneWhoseWorkerComesLateToo() throws ServiceException {
        final Node one = new Node(1).register();
        one.add("a", new long[] {11, 12, 13}, 8);
        one.add("b", new long[] {11, 12}, 4);
        one.tracker.prefillComplete(MODEL, "b");
        settle();
        final Node two = new Node(2);
        settle();
        two.register();
        settle();
        assertEquals(load(8, 3, 2), load(two));
    }

    @Test
    void theRequestsOfATrackerThatIsKilledEndAfterTheLease() throws ServiceException {
        final Node one = new Node(1).register();
        final Node two = new Node(2).register();
        pass(STEP_NS);
        one.add("a", new long[] {11}, 8);
        pass(2 * STEP_NS);
        one.runs = false;
        pass(LEASE_NS / 2);
        assertEquals(load(8, 1, 1), load(two));
        pass(LEASE_NS);
        assertEquals(load(0, 0, 0), load(two));
        assertEquals(0, two.status().peers());
        assertEquals(1, two.status().droppedPeers());
    }

    @Test
    void theRequestsOfATrackerThatEndsOrIsStartedAgainEndAtOnce() throws ServiceException {
        final Node one = new Node(1).register();
        final Node two = new Node(2).register();
        pass(STEP_NS);
        one.add("a", new long[] {11}, 8);
        pass(2 * STEP_NS);
        one.sync.close();
        one.runs = false;
        pass(2 * STEP_NS);
        assertEquals(load(0, 0, 0), load(two));
        final Node three = new Node(3).register();
        pass(2 * STEP_NS);
        three.add("b", new long[] {11}, 8);
        pass(2 * STEP_NS);
        assertEquals(load(8, 1, 1), load(two));
        three.runs = false; // killed
        final Node again = new Node(3).register();
        pass(2 * STEP_NS);
        again.add("c", new long[] {12}, 3);
        pass(2 * STEP_NS);
        assertEquals(load(3, 1, 1), load(two));
    }

    @Test
    void aRequestThatIsNeverFreedEndsAtTheOthersToo() throws ServiceException {
        final Node one = new Node(1, 16, Duration.ofSeconds(30)).register();
        final Node two = new Node(2, 16, Duration.ofHours(1)).register();
        pass(STEP_NS);
        one.add("a", new long[] {11}, 8);
        pass(TimeUnit.SECONDS.toNanos(29));
        assertEquals(load(8, 1, 1), load(two));
        pass(TimeUnit.SECONDS.toNanos(2));
        assertEquals(load(0, 0, 0), load(two));
    }

    @Test
    void aWorkerThatIsRemovedAtOneTrackerOrRegisteredAgainHasTheOthersRequestsOnly()
            throws ServiceException {
        final Node one = new Node(1).register();
        final Node two = new Node(2).register();
        pass(STEP_NS);
        one.add("a", new long[] {11}, 8);
        two.add("b", new long[] {12}, 4);
        pass(2 * STEP_NS);
        two.tracker.unregister(MODEL, 7);
        pass(2 * STEP_NS);
        assertEquals(load(8, 1, 1), load(one), "what the other had there has ended");
        two.tracker.register(MODEL, 7, 4, 0, 2);
        settle();
        assertEquals(load(8, 1, 1), load(two));
    }

    @Test
    void modelsAndBlockSizesAreKeptApart() throws ServiceException {
        final Node one = new Node(1).register();
        final Node two = new Node(2);
        two.tracker.register(MODEL, 7, 16, 0, 2);
        final Node three = new Node(3);
        three.tracker.register(OTHER, 7, 4, 0, 2);
        pass(STEP_NS);
        one.add("a", new long[] {11}, 8);
        settle();
        assertEquals(load(0, 0, 0), load(two));
        assertEquals(0, three.tracker.loads().get(1).requests());
    }

    @Test
    void moreRequestsOfOthersThanThereIsRoomForAreCountedAndNotLoad() throws ServiceException {
        final Node one = new Node(1).register();
        final Node two = new Node(2, 3, Duration.ZERO).register();
        pass(STEP_NS);
        for (int i = 0; i < 5; i++) {
            one.add("r" + i, new long[] {i}, 1);
        }
        pass(2 * STEP_NS);
        assertEquals(load(3, 3, 3), load(two));
        assertEquals(2, two.status().refused());
        for (int i = 0; i < 4; i++) {
            one.tracker.free(MODEL, "r" + i);
        }
        settle();
        assertEquals(load(1, 1, 1), load(two), "there is room again");
        for (int i = 0; i < REQUESTS; i++) { // its own room is its own
            two.add("own" + i, new long[] {100 + i}, 1);
        }
        assertEquals(load(1 + REQUESTS, 1 + REQUESTS, 1 + REQUESTS), load(two));
    }

    // -- stories -------------------------------------------------------------------------------

    private record Running(
            Node at, String id, long worker, int rank, List<Long> prompt, long left) {
        Running decoding() {
            return new Running(at, id, worker, rank, prompt, 0);
        }
    }

    private final List<Running> running = new ArrayList<>();

    private void step(int number) throws ServiceException {
        final Node at = nodes.get(random.nextInt(nodes.size()));
        final List<Running> mine = running.stream().filter(r -> r.at() == at).toList();
        switch (random.nextInt(3)) {
            case 0 -> {
                final long worker = random.nextBoolean() ? 7 : -1;
                final int rank = worker == 7 ? random.nextInt(2) : 0;
                final long[] prompt = new long[random.nextInt(6)];
                long hash = 0;
                for (int i = 0; i < prompt.length; i++) {
                    hash = 31 * hash + random.nextInt(2) + 1;
                    prompt[i] = hash;
                }
                if (mine.size() < REQUESTS) {
                    at.tracker.add(MODEL, "r" + number, worker, rank, prompt, number);
                    final List<Long> blocks = new ArrayList<>();
                    for (long block : prompt) {
                        blocks.add(block);
                    }
                    running.add(new Running(at, "r" + number, worker, rank, blocks, number));
                }
            }
            case 1 -> {
                if (!mine.isEmpty()) {
                    final Running one = mine.get(random.nextInt(mine.size()));
                    at.tracker.prefillComplete(MODEL, one.id());
                    running.set(running.indexOf(one), one.decoding());
                }
            }
            default -> {
                if (!mine.isEmpty()) {
                    final Running one = mine.get(random.nextInt(mine.size()));
                    at.tracker.free(MODEL, one.id());
                    running.remove(one);
                }
            }
        }
    }

    private List<RankLoad> expected() {
        final List<RankLoad> loads = new ArrayList<>();
        for (long[] rank : new long[][] {{7, 0}, {7, 1}, {-1, 0}}) {
            final Set<Long> blocks = new HashSet<>();
            long tokens = 0;
            int count = 0;
            for (Running one : running) {
                if (one.worker() == rank[0] && one.rank() == rank[1]) {
                    blocks.addAll(one.prompt());
                    tokens += one.left();
                    count++;
                }
            }
            loads.add(new RankLoad(MODEL, rank[0], rank[1], tokens, blocks.size(), count));
        }
        return loads;
    }

    private void story(double loss, double doubled, long delayNs) throws ServiceException {
        for (int i = 1; i <= 3; i++) {
            new Node(i).register();
        }
        hub.faults(loss, doubled, delayNs);
        for (int number = 0; number < 2_000; number++) {
            step(number);
            if (number % 10 == 0) {
                pass(STEP_NS);
            }
        }
    }

    @Test
    void whateverIsLostDoubledAndLateTheLoadsOfAllAreTheSameWhenItIsQuiet()
            throws ServiceException {
        story(0.2, 0.2, 10 * STEP_NS);
        hub.faults(0, 0, 0);
        settle();
        for (Node node : nodes) {
            assertEquals(expected(), node.tracker.loads());
        }
        nodes.forEach(node -> assertNotEquals(0, node.status().lost()));
    }

    /** The check is checked: before a digest has passed, the loads differ. */
    @Test
    void withoutRepairTheLoadsDiffer() throws ServiceException {
        story(0.4, 0, 0);
        hub.faults(1, 0, 0); // nothing passes any more
        pass(2 * STEP_NS);
        assertNotEquals(expected(), nodes.getFirst().tracker.loads());
    }
}
