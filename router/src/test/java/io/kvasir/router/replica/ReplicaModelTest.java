package io.kvasir.router.replica;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.load.ActiveRequests;
import io.kvasir.core.load.ActiveRequestsConfig;
import io.kvasir.core.load.LoadBoard;
import io.kvasir.pipeline.booking.BookingPipelineConfig;
import io.kvasir.pipeline.booking.LockedReplica;
import io.kvasir.testsupport.Seeds;
import io.kvasir.testsupport.Trials;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.TimeUnit;

/**
 * Tables of several owners that share their requests, each with room for some of the others' only,
 * with workers of its own choice in slots of its own; messages are later than a lease, owners stand
 * still for longer than one. In the end each one's load is that of all; what was lost in a short
 * time is repaired within two digests.
 */
class ReplicaModelTest {
    private static final int TRIALS = Trials.of(15, 200);
    private static final int STEPS = 120;
    private static final int WORKERS = 4;
    private static final int REQUESTS = 12;
    private static final long DIGEST_NS = TimeUnit.MILLISECONDS.toNanos(500);
    private static final long LEASE_NS = TimeUnit.SECONDS.toNanos(3);
    private static final long TICK_NS = TimeUnit.MILLISECONDS.toNanos(100);
    private static final long LATEST_NS = TimeUnit.SECONDS.toNanos(6);

    /** Longer than two digests by the list and the answer. */
    private static final int TWO_DIGESTS = (int) (2 * DIGEST_NS / TICK_NS) + 4;

    @Tag("trials")
    @Test
    void whatIsLostIsRepairedWithinTwoDigests() {
        final long seed = Seeds.next("ReplicaModelTest of digests");
        for (int trial = 0; trial < TRIALS; trial++) {
            try (Model model = new Model(new Random(seed + trial))) {
                model.runWithLosses();
            }
        }
    }

    @Tag("trials")
    @Test
    void inTheEndEachOnesLoadIsThatOfAll() {
        final long seed = Seeds.next("ReplicaModelTest");
        for (int trial = 0; trial < TRIALS; trial++) {
            try (Model model = new Model(new Random(seed + trial))) {
                model.run();
            }
        }
    }

    /** A request of one owner. */
    private record Own(long number, String worker, int slot, List<Long> prompt, long prefill) {}

    /** One run. */
    private static final class Model implements AutoCloseable {
        private final Random random;
        private final ReplicaHub hub;
        private final List<Node> nodes = new ArrayList<>();
        private final List<Node> all = new ArrayList<>();
        private long nowNs = 1_000;
        private long lastId;

        Model(Random random) {
            this.random = random;
            hub = new ReplicaHub(random);
        }

        @Override
        public void close() {
            all.forEach(Node::close);
        }

        void run() {
            start(++lastId, room());
            start(++lastId, room());
            for (int step = 0; step < STEPS; step++) {
                act();
                check();
            }
            hub.heal();
            hub.faults(0, 0, 0);
            nodes.forEach(node -> node.paused = false);
            pass((int) ((LATEST_NS + LEASE_NS + 6 * DIGEST_NS) / TICK_NS));
            nodes.forEach(Node::compare);
            for (Node node : nodes) {
                while (node.own.size() > 2) {
                    node.free(node.own.getFirst());
                }
            }
            pass((int) (20 * DIGEST_NS / TICK_NS));
            nodes.forEach(Node::compare);
        }

        /** Losses last for less than the digests go on that name a worker without bookings. */
        void runWithLosses() {
            for (int i = 0; i < 3; i++) {
                start(++lastId, 3 * REQUESTS);
            }
            pass(TWO_DIGESTS);
            for (int round = 0; round < 20; round++) {
                hub.faults(random.nextDouble(), random.nextDouble(), 1 + random.nextLong(TICK_NS));
                for (int i = 0; i < 12; i++) {
                    ofOne(nodes.get(random.nextInt(nodes.size())), random.nextInt(13));
                    pass(random.nextInt(2));
                }
                hub.faults(0, 0, 0);
                pass(TWO_DIGESTS);
                nodes.forEach(Node::compare);
            }
        }

        private void ofOne(Node node, int what) {
            if (what < 8) {
                node.add();
            } else if (!node.own.isEmpty()) {
                final Own one = node.own.get(random.nextInt(node.own.size()));
                if (what < 10) {
                    node.prefilled(one);
                } else {
                    node.free(one);
                }
            }
        }

        private void act() {
            final Node node = nodes.get(random.nextInt(nodes.size()));
            final int what = random.nextInt(24);
            switch (what) {
                case 13, 14 -> node.change(random.nextInt(WORKERS));
                case 15 -> node.paused = !node.paused;
                case 16 -> {
                    if (nodes.size() < 4) {
                        start(++lastId, room());
                    }
                }
                case 17 -> {
                    if (nodes.size() > 1) {
                        end(node, random.nextBoolean());
                    }
                }
                case 18 -> {
                    end(node, false);
                    start(node.id, room());
                }
                case 19 -> hub.cut(nodes.getFirst().link, node.link, true);
                case 20 -> hub.heal();
                case 21 -> {
                    final double lost = random.nextDouble(0.6);
                    final long delay = 1 + random.nextLong(LATEST_NS);
                    hub.faults(lost, random.nextDouble(0.6), random.nextBoolean() ? 1 : delay);
                }
                case 22, 23 -> pass(1 + random.nextInt(random.nextInt(4) == 0 ? 40 : 4));
                default -> ofOne(node, what);
            }
        }

        private int room() {
            return 1 + random.nextInt(random.nextBoolean() ? 6 : 60);
        }

        private void start(long id, int room) {
            nowNs += 1_000; // another incarnation
            final Node node = new Node(id, room);
            nodes.add(node);
            all.add(node);
            for (int i = 0; i < WORKERS; i++) {
                node.change(i);
            }
        }

        private void end(Node node, boolean says) {
            nodes.remove(node);
            if (!says) {
                node.link.close();
            }
            node.sync.close();
        }

        private void pass(int ticks) {
            for (int i = 0; i < ticks; i++) {
                nowNs += TICK_NS;
                hub.advance(nowNs);
                for (Node node : nodes) {
                    if (!node.paused) {
                        node.sync.step(nowNs);
                        node.sync.step(nowNs);
                    }
                }
            }
        }

        private void check() {
            for (Node node : nodes) {
                node.check();
            }
        }

        /** One owner. */
        private final class Node {
            final long id;
            final int room;
            final ReplicaHub.HubLink link = hub.open();
            final LoadBoard board = new LoadBoard(WORKERS + 2);
            final ActiveRequests table;
            final LockedReplica replica;
            final Fleet fleet = new Fleet();
            final ReplicaSync sync;
            final List<Own> own = new ArrayList<>();
            final List<Integer> freeSlots = new ArrayList<>();
            final List<Integer> freeIndexes = new ArrayList<>();
            private final int[] generations = new int[REQUESTS];
            boolean paused;

            Node(long id, int room) {
                this.id = id;
                this.room = room;
                final BookingPipelineConfig sizes =
                        BookingPipelineConfig.of(REQUESTS).withReplicaRequests(room);
                table =
                        new ActiveRequests(
                                new ActiveRequestsConfig(
                                        WORKERS + 2, sizes.tableEntries(), 1 << 12, 64),
                                board);
                replica = new LockedReplica(table, sizes, this);
                sync =
                        new ReplicaSync(
                                new ReplicaConfig(
                                        new ReplicaOrigin(id, nowNs),
                                        5,
                                        DIGEST_NS,
                                        LEASE_NS,
                                        () -> 0),
                                link,
                                replica.port(),
                                fleet);
                for (int i = 0; i < WORKERS + 2; i++) {
                    freeSlots.add(i);
                }
                for (int i = 0; i < REQUESTS; i++) {
                    freeIndexes.add(i);
                }
            }

            void close() {
                sync.close();
                table.close();
                board.close();
            }

            void add() {
                final String worker = "w" + random.nextInt(WORKERS);
                final ReplicaFleet.Slot slot = fleet.slots.get(worker);
                if (slot == null || own.size() == REQUESTS) {
                    return;
                }
                final int index =
                        freeIndexes.remove(/* index */ random.nextInt(freeIndexes.size()));
                final long number = (long) ++generations[index] << Integer.SIZE | index;
                final long[] prompt = new long[random.nextInt(5)];
                long hash = 0;
                for (int i = 0; i < prompt.length; i++) {
                    hash = 31 * hash + 1 + random.nextInt(2);
                    prompt[i] = hash;
                }
                final long prefill = random.nextInt(50);
                board.add(slot.slot(), prefill, 0, 1);
                table.book(number, slot.slot(), prompt, prompt.length, 0, prefill, 0, 0);
                replica.added(number, slot.slot(), prompt, prefill);
                own.add(
                        new Own(
                                number,
                                worker,
                                slot.slot(),
                                Arrays.stream(prompt).boxed().toList(),
                                prefill));
            }

            void prefilled(Own one) {
                if (table.prefillComplete(one.number)) {
                    replica.prefilled(one.number, one.slot);
                }
                own.set(own.indexOf(one), new Own(one.number, one.worker, one.slot, one.prompt, 0));
            }

            void free(Own one) {
                assertTrue(table.free(one.number));
                ended(one.number);
            }

            void ended(long number) {
                if (!replica.isOwn(number)) {
                    return;
                }
                final Own one =
                        own.stream().filter(o -> o.number == number).findAny().orElseThrow();
                own.remove(one);
                freeIndexes.add((int) number);
                replica.freed(number, one.slot);
            }

            void change(int i) {
                final String name = "w" + i;
                final ReplicaFleet.Slot slot = fleet.slots.get(name);
                if (slot == null) {
                    final int to = freeSlots.remove(/* index */ random.nextInt(freeSlots.size()));
                    fleet.add(new ReplicaWorker(i, name, 0), to, replica.slotGeneration(to));
                } else {
                    table.workerGone(slot.slot(), this::ended);
                    replica.workerGone(slot.slot());
                    fleet.remove(name);
                    freeSlots.add(slot.slot());
                    if (random.nextBoolean()) {
                        change(i);
                    }
                }
            }

            void check() {
                long requests = 0;
                for (int slot = 0; slot < WORKERS + 2; slot++) {
                    assertTrue(board.prefillTokens(slot) >= 0);
                    assertTrue(board.activeBlocks(slot) >= 0);
                    assertTrue(board.activeRequests(slot) >= 0);
                    requests += board.activeRequests(slot);
                }
                assertEquals(0, table.refusals());
                assertEquals(table.activeRequests(), requests);
                assertTrue(requests - own.size() <= room, "more than there is room for");
            }

            /** What others have booked on its workers counts, as far as there is room. */
            void compare() {
                long others = 0;
                for (Node node : nodes) {
                    if (node != this) {
                        for (Own one : node.own) {
                            others += fleet.slots.containsKey(one.worker) ? 1 : 0;
                        }
                    }
                }
                assertEquals(nodes.size() - 1, sync.status().peers(), "of " + id);
                assertEquals(
                        Math.min(room, others), sync.status().peerBookings(), "bookings at " + id);
                if (others > room) {
                    return; // which of them have come first is chance
                }
                final Map<String, String> seen = new HashMap<>();
                final Map<String, String> truth = new HashMap<>();
                fleet.slots.forEach(
                        (name, slot) -> {
                            seen.put(
                                    name,
                                    board.activeRequests(slot.slot())
                                            + " "
                                            + board.prefillTokens(slot.slot())
                                            + " "
                                            + board.activeBlocks(slot.slot()));
                            truth.put(name, truth(name));
                        });
                assertEquals(truth, seen, "at " + id);
            }

            String truth(String worker) {
                long requests = 0;
                long prefill = 0;
                final Set<Long> blocks = new HashSet<>();
                for (Node node : nodes) {
                    for (Own one : node.own) {
                        if (one.worker.equals(worker)) {
                            requests++;
                            prefill += one.prefill;
                            blocks.addAll(one.prompt);
                        }
                    }
                }
                return requests + " " + prefill + " " + blocks.size();
            }
        }
    }

    /** The workers of one owner. */
    private static final class Fleet implements ReplicaFleet {
        final Map<String, Slot> slots = new HashMap<>();
        private final Map<Integer, ReplicaWorker> workers = new HashMap<>();
        private Object version = new Object();

        void add(ReplicaWorker worker, int slot, int generation) {
            slots.put(worker.name(), new Slot(slot, generation, false));
            workers.put(slot, worker);
            version = new Object();
        }

        void remove(String name) {
            workers.remove(slots.remove(name).slot());
            version = new Object();
        }

        @Override
        public Slot find(ReplicaWorker worker) {
            assertTrue(worker.isNamed(), "a booking of another worker that has its number");
            return slots.get(worker.name());
        }

        @Override
        public ReplicaWorker at(int slot, int generation) {
            final ReplicaWorker worker = workers.get(slot);
            return worker != null && slots.get(worker.name()).slotGeneration() == generation
                    ? worker
                    : null;
        }

        @Override
        public Object version() {
            return version;
        }
    }
}
