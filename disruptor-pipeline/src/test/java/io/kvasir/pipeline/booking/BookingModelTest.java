package io.kvasir.pipeline.booking;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.load.ActiveRequests;
import io.kvasir.core.load.ActiveRequestsConfig;
import io.kvasir.core.load.LoadBoard;
import io.kvasir.core.load.PredictedPrefixes;
import io.kvasir.core.load.PredictedPrefixesConfig;
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

/**
 * A booking pipeline whose writer is held back now and then, so that steps of bookings, ticks and
 * ends of workers find each other in any order. When it has caught up, the load, and what other
 * routers are sent, is that of the bookings that should be open.
 */
class BookingModelTest {
    private static final int TRIALS = Trials.of(12, 200);
    private static final int ROUNDS = 30;
    private static final int SLOTS = 4; // and one to hold the writer by

    @Tag("trials")
    @Test
    void whateverComesFirstTheLoadIsThatOfTheOpenBookings() {
        final long seed = Seeds.next("BookingModelTest");
        for (int trial = 0; trial < TRIALS; trial++) {
            try (Model model = new Model(new Random(seed + trial))) {
                model.run();
            }
        }
    }

    /** A booking that should count. */
    private static final class Open {
        final long number;
        final int slot;
        final int generation;
        final long[] prompt;
        final long deadline; // in ticks of the wheel of deadlines
        final boolean shared;
        final int lone; // blocks that it shares with none
        long prefill;
        boolean prefilling = true;
        int output;

        Open(
                long number,
                int slot,
                int generation,
                long[] prompt,
                long deadline,
                boolean shared,
                int lone,
                long prefill) {
            this.number = number;
            this.slot = slot;
            this.generation = generation;
            this.prompt = prompt;
            this.deadline = deadline;
            this.shared = shared;
            this.lone = lone;
            this.prefill = prefill;
        }
    }

    /** A booking as other routers know it. */
    private static final class Sent {
        int slot;
        long prefill;
        int own;
        int path;
    }

    /** One run. */
    private static final class Model implements AutoCloseable {
        final Random random;
        final boolean counts;
        final int maxRequests;
        final BookingPipelineConfig config;
        final LoadBoard board = new LoadBoard(SLOTS + 1);
        final ActiveRequests table;
        final PredictedPrefixes routed;
        final BookingPipeline pipeline;
        final ReplicaPort port;
        final Map<Long, Open> open = new HashMap<>();
        final List<Long> ever = new ArrayList<>();
        final Map<Long, Open> others = new HashMap<>();
        final Map<Long, Sent> sent = new HashMap<>();
        final int[] generations = new int[SLOTS];
        final int[] gone = new int[SLOTS];
        final int[] otherGenerations = new int[8];
        final ReplicaRecord record = new ReplicaRecord();
        long nowTick;
        HeldWriter held;

        Model(Random random) {
            this.random = random;
            counts = random.nextInt(4) != 0;
            maxRequests = 1 + random.nextInt(random.nextBoolean() ? 4 : 20);
            nowTick = random.nextInt(3) - 1L;
            config =
                    BookingPipelineConfig.of(maxRequests)
                            .withCountsBlocks(counts)
                            .withReplicaRequests(8);
            table =
                    new ActiveRequests(
                            new ActiveRequestsConfig(SLOTS + 1, config.tableEntries(), 1 << 14, 8),
                            board);
            routed =
                    random.nextBoolean()
                            ? new PredictedPrefixes(
                                    new PredictedPrefixesConfig(SLOTS + 1, 1 << 12, 0.8, 100 << 20))
                            : null;
            pipeline =
                    new BookingPipeline(
                            config,
                            table,
                            routed,
                            e -> {
                                throw new AssertionError(e);
                            });
            port = pipeline.replicaPortOrNull();
        }

        @Override
        public void close() {
            if (held != null) {
                held.release();
            }
            pipeline.close();
            table.close();
            board.close();
            if (routed != null) {
                routed.close();
            }
        }

        void run() {
            for (int round = 0; round < ROUNDS; round++) {
                final boolean hold = random.nextInt(3) != 0;
                if (hold) {
                    held = HeldWriter.of(pipeline, SLOTS);
                }
                for (int i = random.nextInt(hold ? 40 : 10); i >= 0; i--) {
                    act();
                    if (!hold) {
                        settle();
                    }
                }
                if (hold) {
                    held.release();
                    held = null;
                }
                settle();
            }
            List.copyOf(open.keySet()).forEach(this::free);
            List.copyOf(others.keySet()).forEach(this::otherFree);
            settle();
            for (int slot = 0; slot <= SLOTS; slot++) {
                assertEquals(0, board.activeRequests(slot));
                assertEquals(0, board.activeBlocks(slot));
                assertEquals(0, board.prefillTokens(slot));
            }
            assertEquals(0, table.activeRequests());
            assertEquals(0, table.activeBlocks());
            held = HeldWriter.of(pipeline, SLOTS);
            for (int i = 0; i < maxRequests; i++) {
                assertNotEquals(
                        BookingPipeline.NONE,
                        pipeline.book(0, generations[0], new long[0], 0, 1, 1, 0, false));
            }
            assertEquals(
                    BookingPipeline.NONE,
                    pipeline.book(0, generations[0], new long[0], 0, 1, 1, 0, false));
        }

        void act() {
            switch (random.nextInt(16)) {
                case 0, 1, 2, 3, 4 -> book();
                case 5, 6 -> {
                    final long number = some();
                    final Open one = open.get(number);
                    final boolean did = pipeline.prefillComplete(number);
                    if (one == null) {
                        assertFalse(did);
                    } else {
                        assertEquals(one.prefilling, did);
                        one.prefilling = false;
                        one.prefill = 0;
                    }
                }
                case 7, 8 -> {
                    final long number = some();
                    final int blocks = random.nextInt(4);
                    final Open one = open.get(number);
                    assertEquals(one != null && counts, pipeline.outputBlocks(number, blocks));
                    if (one != null && counts) {
                        one.output += blocks;
                    }
                }
                case 9, 10, 11 -> free(some());
                case 12 -> {
                    nowTick += random.nextInt(10);
                    pipeline.tick(nowTick << 20);
                }
                case 13 -> {
                    if (random.nextInt(3) == 0) {
                        final int slot = random.nextInt(SLOTS);
                        gone[slot]++;
                        pipeline.workerGone(slot, () -> {});
                    } else {
                        pipeline.forgetPredicted(random.nextInt(SLOTS));
                    }
                }
                case 14 -> {
                    switch (random.nextInt(4)) {
                        case 0 -> port.digest();
                        case 1 -> port.resend(some());
                        default -> otherBook();
                    }
                }
                default -> {
                    if (!others.isEmpty()) {
                        stepOther(List.copyOf(others.values()).get(random.nextInt(others.size())));
                    }
                }
            }
        }

        void stepOther(Open one) {
            switch (random.nextInt(4)) {
                case 0 -> {
                    port.prefillComplete(one.number);
                    one.prefill = 0;
                }
                case 1 -> {
                    port.outputBlocks(one.number, 2);
                    one.output += counts ? 2 : 0;
                }
                default -> otherFree(one.number);
            }
        }

        long some() {
            if (ever.isEmpty() || random.nextInt(20) == 0) {
                return BookingPipeline.NONE;
            }
            return ever.get(Math.max(0, ever.size() - 1 - random.nextInt(maxRequests * 2)));
        }

        long[] prompt() {
            final long[] prompt = new long[random.nextInt(10) == 0 ? 130 : random.nextInt(12)];
            Arrays.setAll(prompt, i -> random.nextInt(4) == 0 ? 1 : 0);
            return prompt;
        }

        void book() {
            final int slot = random.nextInt(SLOTS);
            final int generation = generations[slot] - (random.nextInt(12) == 0 ? 1 : 0);
            final long[] prompt = prompt();
            final long prefill = random.nextInt(50);
            final long deadline = random.nextInt(3) == 0 ? nowTick + random.nextInt(20) - 3 : 0;
            final boolean shared = random.nextInt(5) != 0;
            final boolean predicted = random.nextInt(3) == 0;
            final boolean full = open.size() >= maxRequests;
            final long number =
                    pipeline.book(
                            slot,
                            generation,
                            prompt,
                            prompt.length,
                            prefill,
                            random.nextInt(prompt.length + 1),
                            deadline << 20,
                            predicted,
                            shared);
            if (number == BookingPipeline.NONE) {
                assertTrue(full || held != null, "refused with room");
                return;
            }
            assertTrue(!full, "more than may be");
            assertNull(
                    open.put(
                            number,
                            new Open(
                                    number,
                                    slot,
                                    generation,
                                    prompt,
                                    deadline,
                                    shared,
                                    0,
                                    prefill)));
            assertFalse(ever.contains(number), "a number is given twice");
            ever.add(number);
        }

        void free(long number) {
            assertEquals(open.remove(number) != null, pipeline.free(number));
        }

        void otherBook() {
            final int index = random.nextInt(8);
            if (others.values().stream()
                    .anyMatch(o -> (int) o.number == port.firstIndex() + index)) {
                return;
            }
            final long number =
                    (long) ++otherGenerations[index] << Integer.SIZE | (port.firstIndex() + index);
            final int slot = random.nextInt(SLOTS);
            final long[] prompt = prompt();
            final int lone = random.nextInt(3);
            final long prefill = random.nextInt(50);
            port.book(number, slot, generations[slot], prompt, lone, prefill, random.nextBoolean());
            others.put(
                    number,
                    new Open(number, slot, generations[slot], prompt, 0, true, lone, prefill));
        }

        void otherFree(long number) {
            others.remove(number);
            port.free(number);
        }

        void settle() {
            HeldWriter.awaitApplied(pipeline);
            nowTick++;
            pipeline.tick(nowTick << 20);
            HeldWriter.awaitApplied(pipeline);
            for (int slot = 0; slot < SLOTS; slot++) {
                generations[slot] += gone[slot];
                gone[slot] = 0;
            }
            open.values()
                    .removeIf(
                            o ->
                                    o.generation != generations[o.slot]
                                            || (o.deadline != 0 && o.deadline < nowTick));
            others.values().removeIf(o -> o.generation != generations[o.slot]);
            check();
        }

        void check() {
            assertEquals(0, pipeline.failures());
            assertEquals(0, table.refusals());
            assertEquals(0, table.corrections());
            assertEquals(open.size(), pipeline.openBookings());
            for (long number : ever.subList(Math.max(0, ever.size() - 100), ever.size())) {
                assertEquals(open.containsKey(number), pipeline.isOpen(number));
            }
            final List<Open> all = new ArrayList<>(open.values());
            all.addAll(others.values());
            assertEquals(all.size(), table.activeRequests());
            for (int slot = 0; slot < SLOTS; slot++) {
                long requests = 0;
                long prefill = 0;
                long blocks = 0;
                final Set<List<Long>> paths = new HashSet<>();
                for (Open one : all) {
                    if (one.slot != slot) {
                        continue;
                    }
                    requests++;
                    prefill += one.prefill;
                    blocks += one.output;
                    if (!counts) {
                        continue;
                    }
                    blocks += one.lone;
                    final int followed = one.shared ? Math.min(8, one.prompt.length) : 0;
                    blocks += one.prompt.length - followed;
                    final List<Long> hashes = Arrays.stream(one.prompt).boxed().toList();
                    for (int end = 1; end <= followed; end++) {
                        paths.add(hashes.subList(0, end));
                    }
                }
                assertEquals(requests, board.activeRequests(slot), "requests of " + slot);
                assertEquals(prefill, board.prefillTokens(slot), "tokens of " + slot);
                assertEquals(blocks + paths.size(), board.activeBlocks(slot), "blocks of " + slot);
            }
            read();
        }

        void read() {
            while (port.outbox().poll(record)) {
                final Sent one = sent.get(record.booking());
                switch (record.kind()) {
                    case ADDED -> {
                        final Sent now = one == null ? new Sent() : one;
                        now.slot = record.slot();
                        now.prefill = record.prefillTokens();
                        now.own = record.ownBlocks();
                        now.path = record.pathBlocks();
                        sent.put(record.booking(), now);
                    }
                    case PREFILLED -> {
                        assertNotNull(one);
                        one.prefill = 0;
                    }
                    case OUTPUT -> {
                        assertNotNull(one);
                        one.own = record.ownBlocks();
                    }
                    case FREED -> assertNotNull(sent.remove(record.booking()), "ended twice");
                    case DIGEST -> digest();
                    case LIST -> {}
                }
            }
            assertEquals(0, port.outbox().dropped());
            assertEquals(open.keySet(), sent.keySet());
            sent.forEach(
                    (number, s) -> {
                        final Open o = open.get(number);
                        assertEquals(o.slot, s.slot);
                        assertEquals(o.prefill, s.prefill);
                        if (counts) {
                            assertEquals(o.prompt.length + o.output, s.own + s.path);
                        }
                    });
        }

        void digest() {
            final Map<Integer, long[]> sums = new HashMap<>();
            sent.forEach(
                    (number, s) -> {
                        final long[] sum = sums.computeIfAbsent(s.slot, _ -> new long[4]);
                        sum[0]++;
                        sum[1] += s.prefill;
                        sum[2] += s.own;
                        sum[3] += ReplicaRecord.mix(number);
                    });
            for (int i = 0; i < record.itemCount(); i += 5) {
                final int slot = (int) record.items()[i];
                final long[] sum = sums.getOrDefault(slot, new long[4]);
                for (int j = 0; j < 4; j++) {
                    assertEquals(
                            sum[j], record.items()[i + 1 + j], "digest of " + slot + " part " + j);
                }
                sums.remove(slot);
            }
            assertTrue(sums.isEmpty(), "all are in the digest");
        }
    }
}
