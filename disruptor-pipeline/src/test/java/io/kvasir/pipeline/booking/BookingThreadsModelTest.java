package io.kvasir.pipeline.booking;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.load.ActiveRequests;
import io.kvasir.core.load.ActiveRequestsConfig;
import io.kvasir.core.load.LoadBoard;
import io.kvasir.core.load.PredictedPrefixes;
import io.kvasir.core.load.PredictedPrefixesConfig;
import io.kvasir.pipeline.ring.WaitMode;
import io.kvasir.testsupport.Cores;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.Seeds;
import io.kvasir.testsupport.Trials;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicLongArray;

/**
 * Several threads book, step and end each other's bookings on a pipeline with room for few, while
 * workers end and time goes on: what is refused has no effect, each booking ends once, and once all
 * have ended nothing is left of them.
 */
class BookingThreadsModelTest {
    private static final int TRIALS = Trials.of(2, 20);
    private static final int STEPS = 400;
    private static final int THREADS = 4;
    private static final int SLOTS = 4;
    private static final int PENDING_HASHES = 256;

    @Tag("trials")
    @Test
    void eachBookingEndsOnceAndNothingIsLeftOfIt() throws Exception {
        final long seed = Seeds.next("BookingThreadsModelTest");
        try (ExecutorService pool = Executors.newFixedThreadPool(THREADS + 1)) {
            for (int trial = 0; trial < TRIALS; trial++) {
                try (Model model = new Model(seed + trial)) {
                    model.run(pool);
                } catch (Exception | AssertionError e) {
                    throw new AssertionError("trial " + trial + " of " + seed, e);
                }
            }
        }
    }

    private static final class Model implements AutoCloseable {
        final long seed;
        final int maxRequests;
        final LoadBoard board = new LoadBoard(SLOTS);
        final ActiveRequests table;
        final PredictedPrefixes routed =
                new PredictedPrefixes(new PredictedPrefixesConfig(SLOTS, 100, 0.8, 1_000_000L));
        final BookingPipeline pipeline;
        final AtomicIntegerArray generations = new AtomicIntegerArray(SLOTS);
        final AtomicLongArray recent = new AtomicLongArray(8);
        final Map<Long, AtomicInteger> ends = new ConcurrentHashMap<>(); // by booking, by callers
        final Map<Long, AtomicInteger> prefills = new ConcurrentHashMap<>();
        final AtomicInteger refused = new AtomicInteger();
        final AtomicInteger gone = new AtomicInteger();
        final AtomicInteger swept = new AtomicInteger();
        final AtomicLong nowNs = new AtomicLong(2_000_000);

        Model(long seed) {
            this.seed = seed;
            final Random random = new Random(seed);
            maxRequests = 1 + random.nextInt(random.nextBoolean() ? 3 : 100);
            final BookingPipelineConfig config =
                    new BookingPipelineConfig(maxRequests, WaitMode.BLOCKING, PENDING_HASHES);
            table =
                    new ActiveRequests(
                            new ActiveRequestsConfig(SLOTS, config.tableEntries(), 1 << 14, 256),
                            board);
            pipeline = new BookingPipeline(config, table, routed);
        }

        @Override
        public void close() {
            pipeline.close();
            table.close();
            routed.close();
            board.close();
        }

        void run(ExecutorService pool) throws Exception {
            final List<Future<?>> callers = new ArrayList<>();
            for (int t = 0; t < THREADS; t++) {
                final Random random = new Random(seed ^ (t + 1) * 0x9e3779b97f4a7c15L);
                callers.add(
                        pool.submit(
                                () -> {
                                    for (int i = 0; i < STEPS; i++) {
                                        call(random);
                                    }
                                }));
            }
            final Random random = new Random(~seed);
            final Future<?> world =
                    pool.submit(
                            () -> {
                                while (callers.stream().anyMatch(c -> !c.isDone())) {
                                    change(random);
                                    Cores.giveWay();
                                }
                            });
            for (Future<?> caller : callers) {
                caller.get();
            }
            world.get();
            settle();
        }

        private void call(Random random) {
            final long number = recent.get(random.nextInt(recent.length()));
            switch (random.nextInt(10)) {
                case 0, 1, 2, 3 -> book(random);
                case 4 -> {
                    if (pipeline.prefillComplete(number)) {
                        count(prefills, number);
                    }
                }
                case 5 -> pipeline.outputBlocks(number, random.nextInt(3));
                case 6 -> Cores.giveWay();
                default -> end(number);
            }
        }

        private void book(Random random) {
            final int slot = random.nextInt(SLOTS);
            final long[] prompt = new long[random.nextInt(random.nextInt(8) == 0 ? 200 : 12)];
            Arrays.setAll(prompt, i -> random.nextInt(4) == 0 ? 1 : 0);
            final long number =
                    pipeline.book(
                            slot,
                            generations.get(slot),
                            prompt,
                            prompt.length,
                            random.nextInt(50),
                            random.nextInt(prompt.length + 1),
                            random.nextInt(6) == 0 ? 1 : ActiveRequests.NO_DEADLINE,
                            random.nextInt(3) == 0,
                            random.nextInt(4) != 0);
            if (number == BookingPipeline.NONE) {
                refused.getAndIncrement();
                return;
            }
            assertEquals(null, ends.put(number, new AtomicInteger()), "a number is given twice");
            // what it takes the cell of stays open, until the end or its deadline, unless ended
            final long before = recent.getAndSet(random.nextInt(recent.length()), number);
            if (random.nextInt(8) != 0) {
                end(before);
            }
        }

        private void end(long number) {
            if (pipeline.free(number)) {
                count(ends, number);
                assertFalse(pipeline.isOpen(number));
            }
        }

        private static void count(Map<Long, AtomicInteger> of, long number) {
            of.computeIfAbsent(number, _ -> new AtomicInteger()).getAndIncrement();
        }

        private void change(Random random) {
            final int slot = random.nextInt(SLOTS);
            switch (random.nextInt(12)) {
                case 0 -> {
                    gone.getAndIncrement();
                    assertTrue(
                            pipeline.workerGone(
                                    slot,
                                    () -> {
                                        generations.getAndIncrement(slot);
                                        swept.getAndIncrement();
                                    }));
                }
                case 1, 2, 3 -> pipeline.forgetPredicted(slot);
                // slow time: bookings that are under way for 10 s count as lost
                default -> pipeline.tick(nowNs.addAndGet(1_000));
            }
        }

        private void settle() {
            ends.keySet().forEach(this::end);
            HeldWriter.awaitApplied(pipeline);
            Eventually.holds(() -> swept.get() == gone.get());
            assertEquals(refused.get(), pipeline.refused());
            ends.forEach(
                    (number, times) -> {
                        assertTrue(times.get() <= 1, () -> "ended " + times + " times");
                        assertFalse(pipeline.isOpen(number));
                    });
            prefills.forEach(
                    (number, times) -> {
                        assertTrue(ends.containsKey(number), "none was booked so");
                        assertEquals(1, times.get());
                    });
            assertEquals(0, pipeline.openBookings());
            assertEquals(0, table.activeRequests());
            assertEquals(0, table.activeBlocks());
            for (int slot = 0; slot < SLOTS; slot++) {
                assertEquals(0, board.activeRequests(slot));
                assertEquals(0, board.activeBlocks(slot));
                assertEquals(0, board.prefillTokens(slot));
            }
            assertEquals(0, pipeline.failures());
            assertEquals(0, table.refusals());
            assertEquals(0, table.corrections());
            // all room is there again: of bookings, and of hashes on their way
            final long[] all = new long[PENDING_HASHES];
            for (int i = 0; i < maxRequests; i++) {
                assertNotEquals(
                        BookingPipeline.NONE,
                        pipeline.book(
                                0,
                                generations.get(0),
                                all,
                                i == 0 ? all.length : 0,
                                0,
                                0,
                                0,
                                false));
            }
            assertTrue(pipeline.isFull());
            Eventually.holds(() -> table.activeBlocks() == PENDING_HASHES);
        }
    }
}
