package io.kvasir.pipeline;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.index.OverlapScores;
import io.kvasir.core.slots.LoadBoard;
import io.kvasir.core.slots.RoutedPrefixes;
import io.kvasir.core.slots.RoutedPrefixesConfig;
import io.kvasir.core.slots.SlotTable;
import io.kvasir.core.slots.SlotTableConfig;
import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.Random;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;

class LifePipelineTest {
    private static final int REQUESTS = 256;

    private final LoadBoard board = new LoadBoard(8);
    private final SlotTable table =
            new SlotTable(new SlotTableConfig(8, REQUESTS, 1 << 16, 4_096), board);

    @AfterEach
    void close() {
        table.close();
        board.close();
    }

    private static void await(BooleanSupplier condition) {
        final long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(10);
        while (!condition.getAsBoolean()) {
            assertTrue(System.nanoTime() < deadline, "gave up waiting");
            LockSupport.parkNanos(1_000_000);
        }
    }

    /** Adds what a caller adds to the load cell before it books. */
    private void provisional(int slot, long tokens, int blocks) {
        board.addProvisional(slot, tokens, blocks);
    }

    @ParameterizedTest
    @CsvSource({"1, 256", "64, 256", "65, 512", "1024, 4096", "1025, 8192"})
    void theRingHoldsFourRecordsPerRequest(int requests, int ringSize) {
        assertEquals(ringSize, LifePipelineConfig.of(requests).ringSize());
    }

    @Test
    void aRequestIsBookedStepByStepAndFreed() {
        try (LifePipeline pipeline = new LifePipeline(LifePipelineConfig.of(REQUESTS), table)) {
            final long[] hashes = {1, 2, 3};
            provisional(2, 48, 3);
            assertTrue(pipeline.tryAdd(7, 2, hashes, 3, 48, 3));
            hashes[0] = 99; // copied before
            provisional(2, 16, 3);
            assertTrue(pipeline.tryAdd(8, 2, new long[] {1, 2, 4}, 3, 16, 3));
            await(() -> table.activeRequests() == 2);
            assertEquals(4, board.activeBlocks(2));
            assertEquals(64, board.prefillTokens(2));

            assertTrue(pipeline.prefillComplete(7));
            assertTrue(pipeline.outputBlock(7));
            await(() -> board.prefillTokens(2) == 16 && board.activeBlocks(2) == 5);
            assertTrue(pipeline.free(7));
            await(() -> table.activeRequests() == 1);
            assertEquals(3, board.activeBlocks(2));
            assertTrue(pipeline.workerGone(2, () -> {}));
            await(() -> table.activeRequests() == 0);
            assertEquals(0, pipeline.failures());
            assertEquals(0, pipeline.refused());
        }
    }

    @Test
    void everythingReturnsToZeroAfterManyThreads() throws InterruptedException {
        final long seed = Seeds.next("LifePipelineTest.threads");
        final AtomicInteger booked = new AtomicInteger();
        try (LifePipeline pipeline = new LifePipeline(LifePipelineConfig.of(REQUESTS), table)) {
            final List<Thread> threads = new ArrayList<>();
            for (int t = 0; t < 4; t++) {
                final int thread = t;
                threads.add(
                        Thread.ofPlatform()
                                .start(
                                        () ->
                                                lives(
                                                        pipeline,
                                                        thread,
                                                        new Random(seed + thread),
                                                        booked)));
            }
            for (Thread thread : threads) {
                thread.join();
            }
            await(() -> pipeline.backlog() == 0);
            await(() -> table.activeRequests() == 0);
            for (int slot = 0; slot < 8; slot++) {
                assertEquals(0, board.prefillTokens(slot));
                assertEquals(0, board.activeBlocks(slot));
                assertEquals(0, board.activeRequests(slot));
            }
            assertEquals(2_000, booked.get());
            assertEquals(0, pipeline.failures());
        }
    }

    private void lives(LifePipeline pipeline, int thread, Random random, AtomicInteger booked) {
        for (int i = 0; i < 500; i++) {
            final long id = thread * 1_000L + i;
            final int slot = random.nextInt(8);
            final int count = random.nextInt(100);
            final long[] hashes = random.longs(count, 0, 40).distinct().toArray();
            final int tokens = hashes.length * 16;
            provisional(slot, tokens, hashes.length);
            await(() -> pipeline.tryAdd(id, slot, hashes, hashes.length, tokens, hashes.length));
            booked.incrementAndGet();
            assertTrue(pipeline.prefillComplete(id));
            pipeline.outputBlock(id);
            assertTrue(pipeline.free(id));
        }
    }

    @Test
    void requestsEndAtATickAfterTheirDeadlineAndTheirCallerIsTold() {
        final Queue<Long> expired = new ConcurrentLinkedQueue<>();
        try (LifePipeline pipeline =
                new LifePipeline(LifePipelineConfig.of(REQUESTS), table, null, expired::add)) {
            provisional(2, 48, 3);
            assertTrue(
                    pipeline.tryAdd(7, 2, 0, new long[] {1, 2, 3}, 3, 48, 3, 1_000_000_000, false));
            provisional(2, 16, 1);
            assertTrue(pipeline.tryAdd(8, 2, new long[] {1}, 1, 16, 1));
            assertTrue(pipeline.tick(1_000_000_000));
            assertTrue(pipeline.tick(1_100_000_000));
            await(() -> table.activeRequests() == 1);
            assertTrue(pipeline.free(7)); // late: does nothing
            await(() -> pipeline.backlog() == 0);
            assertEquals(List.of(7L), List.copyOf(expired));
            assertEquals(1, table.expiredLeases());
            assertEquals(16, board.prefillTokens(2));
            assertEquals(1, board.activeBlocks(2));
        }
    }

    @Test
    void theCallerIsToldOfRequestsThatEndWithTheirWorker() {
        final Queue<Long> ended = new ConcurrentLinkedQueue<>();
        final AtomicInteger gone = new AtomicInteger(-1);
        try (LifePipeline pipeline =
                new LifePipeline(LifePipelineConfig.of(REQUESTS), table, null, ended::add)) {
            provisional(2, 16, 1);
            assertTrue(pipeline.tryAdd(7, 2, new long[] {1}, 1, 16, 1));
            provisional(3, 16, 1);
            assertTrue(pipeline.tryAdd(8, 3, new long[] {1}, 1, 16, 1));
            assertTrue(pipeline.workerGone(2, () -> gone.set(table.activeRequests())));
            await(() -> gone.get() >= 0);
            assertEquals(1, gone.get(), "called when they have ended");
            assertEquals(List.of(7L), List.copyOf(ended));
        }
    }

    @Test
    void aRequestWhoseBlocksDoNotFitStaysBooked() {
        final Queue<Long> ended = new ConcurrentLinkedQueue<>();
        try (LoadBoard own = new LoadBoard(1);
                SlotTable small = new SlotTable(new SlotTableConfig(1, 4, 2, 8), own);
                LifePipeline pipeline =
                        new LifePipeline(LifePipelineConfig.of(4), small, null, ended::add)) {
            own.addProvisional(0, 48, 3);
            assertTrue(pipeline.tryAdd(9, 0, new long[] {1, 2, 3}, 3, 48, 3));
            await(() -> small.pathlessBookings() == 1);
            assertEquals(3, own.activeBlocks(0));
            assertTrue(pipeline.free(9));
            await(() -> own.activeRequests(0) == 0);
            assertEquals(0, own.activeBlocks(0));
            assertTrue(ended.isEmpty());
        }
    }

    @Test
    void predictedPromptsAreRememberedByTheTimeOfTheTicks() {
        final long[] prompt = {1, 2, 3};
        final OverlapScores scores = new OverlapScores(8);
        final long start = -7_000_000_000L; // as a clock without a known origin may say
        try (RoutedPrefixes routed =
                        new RoutedPrefixes(new RoutedPrefixesConfig(8, 100, 0.8, 1_000_000_000L));
                LifePipeline pipeline =
                        new LifePipeline(
                                LifePipelineConfig.of(REQUESTS), table, routed, id -> {})) {
            provisional(2, 48, 3);
            assertTrue(pipeline.tryAdd(7, 2, 0, prompt, 3, 48, 3, SlotTable.NO_DEADLINE, true));
            provisional(3, 48, 3);
            assertTrue(pipeline.tryAdd(8, 3, 0, prompt, 3, 48, 3, SlotTable.NO_DEADLINE, false));
            await(() -> pipeline.backlog() == 0);
            routed.match(prompt, 3, scores);
            assertEquals("{2=3}", scores.toString());

            assertTrue(pipeline.tick(start)); // what was before counts from now on
            assertTrue(pipeline.free(7));
            assertTrue(pipeline.tick(start + 1_000_000_000));
            assertTrue(pipeline.tick(start + 500_000_000)); // late: time does not go back
            await(() -> pipeline.backlog() == 0);
            assertEquals(1, routed.visits());
            assertTrue(pipeline.tick(start + 1_000_000_001));
            await(() -> pipeline.backlog() == 0);
            assertEquals(0, routed.visits());

            provisional(2, 48, 3);
            assertTrue(pipeline.tryAdd(9, 2, 0, prompt, 3, 48, 3, SlotTable.NO_DEADLINE, true));
            final AtomicInteger blocks = new AtomicInteger(-1);
            assertTrue(pipeline.workerGone(2, () -> blocks.set((int) routed.blocks())));
            await(() -> blocks.get() >= 0);
            assertEquals(0, blocks.get(), "forgotten when it is called");
            assertEquals(0, pipeline.failures());
        }
    }

    @Test
    void aBookingBehindTheEndOfItsWorkerMeansNothingForTheNext() {
        final long[] prompt = {1, 2, 3};
        final Queue<Long> ended = new ConcurrentLinkedQueue<>();
        try (RoutedPrefixes routed =
                        new RoutedPrefixes(new RoutedPrefixesConfig(8, 100, 0.8, 1_000_000_000L));
                LifePipeline pipeline =
                        new LifePipeline(
                                LifePipelineConfig.of(REQUESTS), table, routed, ended::add)) {
            assertTrue(pipeline.workerGone(2, () -> {}));
            provisional(2, 48, 3);
            assertTrue(pipeline.tryAdd(7, 2, 0, prompt, 3, 48, 3, SlotTable.NO_DEADLINE, true));
            await(() -> pipeline.backlog() == 0);
            assertEquals(List.of(7L), List.copyOf(ended));
            assertEquals(0, routed.blocks());
            assertEquals(0, board.activeRequests(2));
            assertEquals(0, board.activeBlocks(2));
            assertEquals(0, board.prefillTokens(2));

            provisional(2, 48, 3);
            assertTrue(pipeline.tryAdd(8, 2, 1, prompt, 3, 48, 3, SlotTable.NO_DEADLINE, true));
            await(() -> pipeline.backlog() == 0);
            assertEquals(1, ended.size(), "the next one's is booked");
            assertEquals(3, routed.blocks());
            assertEquals(1, board.activeRequests(2));
            assertEquals(0, pipeline.failures());
        }
    }

    @Test
    void predictionsOfOneSlotAreForgottenAndItsBookingsStay() {
        final long[] prompt = {1, 2, 3};
        final OverlapScores scores = new OverlapScores(8);
        try (RoutedPrefixes routed =
                        new RoutedPrefixes(new RoutedPrefixesConfig(8, 100, 0.8, 1_000_000_000L));
                LifePipeline pipeline =
                        new LifePipeline(
                                LifePipelineConfig.of(REQUESTS), table, routed, id -> {})) {
            for (int slot = 2; slot < 4; slot++) {
                provisional(slot, 48, 3);
                assertTrue(
                        pipeline.tryAdd(
                                slot, slot, 0, prompt, 3, 48, 3, SlotTable.NO_DEADLINE, true));
            }
            assertTrue(pipeline.forgetPredicted(2));
            await(() -> pipeline.backlog() == 0);
            routed.match(prompt, 3, scores);
            assertEquals("{3=3}", scores.toString());
            assertEquals(2, table.activeRequests());
            assertEquals(3, board.activeBlocks(2));
        }
    }

    @Test
    void withoutPredictionsThereIsNothingToForget() {
        try (LifePipeline pipeline = new LifePipeline(LifePipelineConfig.of(REQUESTS), table)) {
            assertTrue(pipeline.forgetPredicted(2));
            await(() -> pipeline.backlog() == 0);
            assertEquals(0, pipeline.failures());
        }
    }

    @Test
    void loadThatAnErrorLeftBehindGoesAtATick() {
        try (LifePipeline pipeline = new LifePipeline(LifePipelineConfig.of(REQUESTS), table)) {
            provisional(1, 16, 1);
            assertTrue(pipeline.tryAdd(1, 1, new long[] {1}, 1, 16, 1));
            board.addActiveBlocks(1, 5);
            assertTrue(pipeline.tick(1));
            await(() -> table.corrections() == 1);
            assertEquals(1, board.activeBlocks(1));
        }
    }

    @Test
    void bookingsAreRefusedBeforeStepsOfBookedRequests() {
        final LifePipelineConfig config = new LifePipelineConfig(64, WaitMode.BLOCKING, 1, 1);
        final LifePipeline pipeline = new LifePipeline(config, table);
        // a request that blocks the writer does not exist; a burst larger than the ring does
        int booked = 0;
        final long[] hashes = {1};
        for (int i = 0; i < 100_000; i++) {
            if (!pipeline.tryAdd(i, 1, hashes, 1, 16, 1)) {
                break;
            }
            booked++;
        }
        if (pipeline.refused() > 0) {
            assertTrue(pipeline.free(0), "steps still fit when bookings do not");
        }
        assertTrue(booked >= config.ringSize() / 2);
        pipeline.close();
    }

    @Test
    void closingEndsTheWriterAtTheNextStepAndKeepsItsMemoryUntilThen() throws InterruptedException {
        final CountDownLatch blocked = new CountDownLatch(1);
        final CountDownLatch release = new CountDownLatch(1);
        final LifePipeline pipeline = new LifePipeline(LifePipelineConfig.of(REQUESTS), table);
        assertTrue(
                pipeline.workerGone(
                        2,
                        () -> {
                            blocked.countDown();
                            awaitQuietly(release);
                        }));
        assertTrue(blocked.await(10, TimeUnit.SECONDS));
        for (int i = 0; i < 100; i++) {
            provisional(1, 16, 1);
            assertTrue(pipeline.tryAdd(i, 1, new long[] {i}, 1, 16, 1));
        }
        pipeline.close(); // does not wait for the end of the step
        pipeline.close();
        table.close();

        assertFalse(table.gate().isReleased());
        release.countDown();
        await(() -> table.gate().isReleased());
        assertEquals(0, table.activeRequests(), "what was in the ring is left");
        assertFalse(pipeline.free(1));
        assertFalse(pipeline.workerGone(1, () -> {}));
        assertFalse(pipeline.forgetPredicted(1));
    }

    private static void awaitQuietly(CountDownLatch latch) {
        try {
            assertTrue(latch.await(10, TimeUnit.SECONDS));
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    @Test
    void anErrorInTheTableIsCountedAndTheThreadGoesOn() {
        try (LifePipeline pipeline = new LifePipeline(LifePipelineConfig.of(REQUESTS), table)) {
            assertTrue(pipeline.tryAdd(1, 77, new long[] {1}, 1, 16, 1)); // 8 slots only
            await(() -> pipeline.failures() == 1);
            provisional(1, 16, 1);
            assertTrue(pipeline.tryAdd(2, 1, new long[] {1}, 1, 16, 1));
            await(() -> table.activeRequests() == 1);
        }
    }

    @Test
    void sizesOutOfRangeAreRefused() {
        assertThrows(IllegalArgumentException.class, () -> LifePipelineConfig.of(0));
        assertThrows(
                IllegalArgumentException.class,
                () -> new LifePipelineConfig(1, WaitMode.BLOCKING, 2, 1));
    }
}
