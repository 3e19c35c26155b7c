package io.kvasir.pipeline.booking;

import static io.kvasir.pipeline.booking.HeldWriter.awaitApplied;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.load.ActiveRequests;
import io.kvasir.core.load.ActiveRequestsConfig;
import io.kvasir.core.load.LoadBoard;
import io.kvasir.core.load.PredictedPrefixes;
import io.kvasir.core.load.PredictedPrefixesConfig;
import io.kvasir.core.radix.OverlapScores;
import io.kvasir.pipeline.ring.WaitMode;
import io.kvasir.testsupport.Cores;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.Latches;
import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;

class BookingPipelineTest {
    private static final int REQUESTS = 256;
    private static final int ENTRIES = BookingPipelineConfig.of(REQUESTS).entries();
    private static final long[] PROMPT = {1, 2, 3};

    private final LoadBoard board = new LoadBoard(8);
    private final ActiveRequests table =
            new ActiveRequests(new ActiveRequestsConfig(8, ENTRIES, 1 << 16, 4_096), board);

    @AfterEach
    void close() {
        table.close();
        board.close();
    }

    private BookingPipeline pipeline() {
        return new BookingPipeline(BookingPipelineConfig.of(REQUESTS), table);
    }

    private BookingPipeline pipeline(PredictedPrefixes routed) {
        return new BookingPipeline(BookingPipelineConfig.of(REQUESTS), table, routed);
    }

    private void assertLoad(int slot, long tokens, long blocks, long requests) {
        assertEquals(tokens, board.prefillTokens(slot));
        assertEquals(blocks, board.activeBlocks(slot));
        assertEquals(requests, board.activeRequests(slot));
    }

    @ParameterizedTest
    @CsvSource({"1, 256", "64, 256", "128, 512", "8192, 16384"})
    void theRingHoldsOneRecordOfEachEntry(int requests, int ringSize) {
        final BookingPipelineConfig config = BookingPipelineConfig.of(requests);
        assertEquals(ringSize, config.ringSize());
        assertTrue(config.entries() + config.maxForgets() + 2 <= ringSize);
    }

    @Test
    void aRequestIsBookedStepByStepAndFreed() {
        try (BookingPipeline pipeline = pipeline()) {
            final long[] hashes = {1, 2, 3};
            final long first = pipeline.book(2, hashes, 3, 48, 3);
            hashes[0] = 99; // copied before
            final long second = pipeline.book(2, new long[] {1, 2, 4}, 3, 16, 3);
            assertNotEquals(BookingPipeline.NONE, first);
            assertNotEquals(first, second);
            Eventually.holds(() -> table.activeRequests() == 2);
            awaitApplied(pipeline);
            assertLoad(2, 64, 4, 2);

            assertTrue(pipeline.prefillComplete(first));
            assertFalse(pipeline.prefillComplete(first));
            assertTrue(pipeline.outputBlocks(first, 2));
            Eventually.holds(() -> board.prefillTokens(2) == 16 && board.activeBlocks(2) == 6);
            assertTrue(pipeline.free(first));
            assertFalse(pipeline.free(first));
            Eventually.holds(() -> table.activeRequests() == 1);
            awaitApplied(pipeline);
            assertLoad(2, 16, 3, 1);
            assertTrue(pipeline.workerGone(2, () -> {}));
            Eventually.holds(() -> table.activeRequests() == 0);
            assertFalse(pipeline.isOpen(second));
            assertEquals(0, pipeline.failures());
            assertEquals(0, pipeline.refused());
        }
    }

    @Test
    void loadCountsBeforeTheWriterHasSeenIt() {
        try (BookingPipeline pipeline = pipeline()) {
            final HeldWriter writer = HeldWriter.of(pipeline, 7);
            final long kept = pipeline.book(2, PROMPT, 3, 48, 3);
            final long ended = pipeline.book(2, PROMPT, 3, 48, 3);
            assertLoad(2, 96, 6, 2);
            assertTrue(pipeline.prefillComplete(ended));
            assertTrue(pipeline.prefillComplete(kept));
            assertTrue(pipeline.outputBlocks(kept, 4));
            assertTrue(pipeline.free(ended));
            assertLoad(2, 48, 3, 1);
            writer.release();
            awaitApplied(pipeline);
            assertLoad(2, 0, 7, 1);
            assertEquals(1, table.activeRequests());
            assertTrue(pipeline.free(kept));
            awaitApplied(pipeline);
            assertLoad(2, 0, 0, 0);
        }
    }

    @Test
    void bookingsThatEndUnseenAreNeverRefusedHoweverFarTheWriterIsBehind() {
        try (BookingPipeline pipeline = pipeline()) {
            final HeldWriter writer = HeldWriter.of(pipeline, 7);
            for (int i = 0; i < 100_000; i++) {
                final long number = pipeline.book(1, PROMPT, 3, 48, 3);
                assertNotEquals(BookingPipeline.NONE, number);
                assertTrue(pipeline.prefillComplete(number));
                assertTrue(pipeline.free(number));
            }
            assertEquals(0, pipeline.refused());
            assertTrue(pipeline.backlog() <= 2, () -> pipeline.backlog() + " records");
            assertLoad(1, 0, 0, 0);
            writer.release();
            awaitApplied(pipeline);
            assertEquals(0, table.activeRequests());
        }
    }

    @Test
    void stepsFindRoomWhileTheWriterIsInTheMiddleOfManyRecords() {
        try (BookingPipeline pipeline = pipeline()) {
            // no more room than there must be: nothing is rounded up
            assertEquals(ENTRIES + 128, pipeline.ringSize());
            final HeldWriter first = HeldWriter.of(pipeline, 7);
            for (int i = 0; i < 64; i++) {
                assertTrue(pipeline.forgetPredicted(6));
            }
            final List<Long> numbers = new ArrayList<>();
            for (int i = 0; i < REQUESTS; i++) {
                // the last one has less than was foreseen: the writer says so in the middle of it
                numbers.add(pipeline.book(i == REQUESTS - 1 ? 2 : 1, new long[] {i}, 1, 16, 3));
            }
            final CountDownLatch last = new CountDownLatch(1);
            final CountDownLatch stepped = new CountDownLatch(1);
            board.addListener(
                    slot -> {
                        if (slot == 2 && last.getCount() > 0) {
                            last.countDown();
                            Latches.await(stepped);
                        }
                    });
            first.release();
            Latches.await(last);
            final Thread caller =
                    Thread.ofPlatform()
                            .start(
                                    () -> {
                                        numbers.forEach(pipeline::prefillComplete);
                                        stepped.countDown();
                                    });
            Eventually.holds(() -> stepped.getCount() == 0);
            Eventually.holds(() -> !caller.isAlive());
            awaitApplied(pipeline);
            assertEquals(0, board.listenerFailures(), "the writer waited for the steps in vain");
            assertLoad(1, 0, REQUESTS - 1, REQUESTS - 1);
        }
    }

    @Test
    void endsThatWaitForTheWriterLeaveRoomForBookings() {
        try (BookingPipeline pipeline = pipeline()) {
            final List<Long> numbers = new ArrayList<>();
            for (int i = 0; i < REQUESTS; i++) {
                numbers.add(pipeline.book(1, new long[] {i}, 1, 16, 1));
            }
            assertEquals(BookingPipeline.NONE, pipeline.book(1, PROMPT, 3, 48, 3));
            assertTrue(pipeline.isFull());
            Eventually.holds(() -> table.activeRequests() == REQUESTS);
            awaitApplied(pipeline);

            final HeldWriter writer = HeldWriter.of(pipeline, 7);
            for (int i = 0; i < REQUESTS; i++) {
                assertTrue(pipeline.free(numbers.get(i)));
            }
            assertEquals(0, pipeline.openBookings());
            for (int i = 0; i < REQUESTS / 2; i++) { // for half as many there are entries
                numbers.set(i, pipeline.book(2, new long[] {i}, 1, 16, 1));
                assertNotEquals(BookingPipeline.NONE, numbers.get(i));
            }
            assertEquals(BookingPipeline.NONE, pipeline.book(1, PROMPT, 3, 48, 3));
            assertEquals(REQUESTS / 2, pipeline.openBookings());
            assertLoad(2, REQUESTS * 8, REQUESTS / 2, REQUESTS / 2);
            writer.release();
            awaitApplied(pipeline);
            assertEquals(REQUESTS / 2, table.activeRequests());
            assertEquals(0, table.refusals());
            assertLoad(1, 0, 0, 0);
            assertLoad(2, REQUESTS * 8, REQUESTS / 2, REQUESTS / 2);
        }
    }

    @Test
    void aFullTableMakesRoomByEndsThatAreBehindInTheRing() {
        try (BookingPipeline pipeline = pipeline()) {
            final long[] numbers = new long[REQUESTS];
            final HeldWriter first = HeldWriter.of(pipeline, 7);
            final long early = pipeline.book(3, PROMPT, 3, 48, 3); // its record comes first
            assertTrue(pipeline.free(early));
            for (int i = 1; i < REQUESTS; i++) {
                numbers[i] = pipeline.book(1, new long[] {i}, 1, 16, 1);
            }
            first.release();
            Eventually.holds(() -> table.activeRequests() == REQUESTS - 1);
            awaitApplied(pipeline);
            numbers[0] = pipeline.book(1, new long[] {0}, 1, 16, 1);
            Eventually.holds(() -> table.activeRequests() == REQUESTS);
            awaitApplied(pipeline);

            final HeldWriter second = HeldWriter.of(pipeline, 7);
            assertTrue(pipeline.prefillComplete(numbers[5])); // a record in front of the booking's
            assertTrue(pipeline.free(numbers[9]));
            final long late = pipeline.book(2, PROMPT, 3, 48, 3);
            second.release();
            awaitApplied(pipeline);
            assertTrue(pipeline.isOpen(late));
            assertLoad(2, 48, 3, 1);
            assertEquals(REQUESTS, table.activeRequests());
            assertEquals(0, table.refusals());
        }
    }

    @Test
    void aPromptBeyondThePendingHashesIsBookedWithoutAPath() {
        final BookingPipelineConfig config = new BookingPipelineConfig(4, WaitMode.BLOCKING, 128);
        final long[] prompt = new long[129];
        Arrays.setAll(prompt, i -> i);
        try (BookingPipeline pipeline = new BookingPipeline(config, table)) {
            final long number = pipeline.book(1, prompt, 129, 2_064, 129);
            pipeline.book(1, prompt, 128, 2_048, 128);
            Eventually.holds(() -> table.activeRequests() == 2);
            awaitApplied(pipeline);
            assertLoad(1, 4_112, 257, 2);
            assertEquals(128, table.activeBlocks());
            assertEquals(1, table.pathlessBookings());
            assertTrue(pipeline.free(number));
            awaitApplied(pipeline);
            assertLoad(1, 2_048, 128, 1);
        }
    }

    @Test
    void everythingReturnsToZeroAfterManyThreads() throws Exception {
        final long seed = Seeds.next("BookingPipelineTest.threads");
        final AtomicInteger booked = new AtomicInteger();
        final AtomicBoolean over = new AtomicBoolean();
        final BookingPipelineConfig config = new BookingPipelineConfig(6, WaitMode.BLOCKING, 640);
        try (PredictedPrefixes routed =
                        new PredictedPrefixes(
                                new PredictedPrefixesConfig(8, 100, 0.8, 1_000_000L));
                BookingPipeline pipeline = new BookingPipeline(config, table, routed);
                ExecutorService pool = Executors.newFixedThreadPool(5)) {
            final List<Future<?>> threads = new ArrayList<>();
            for (int t = 0; t < 4; t++) {
                final Random random = new Random(seed + t);
                threads.add(pool.submit(() -> lives(pipeline, random, booked)));
            }
            final Future<?> ticks =
                    pool.submit(
                            () -> {
                                // slow time: bookings under way for 10 s count as lost
                                for (long now = 2_000_000; !over.get(); now += 1_000) {
                                    pipeline.tick(now);
                                    pipeline.forgetPredicted((int) (now / 1_000 % 8));
                                    Cores.giveWay();
                                }
                            });
            for (Future<?> thread : threads) {
                thread.get();
            }
            over.set(true);
            ticks.get();
            awaitApplied(pipeline);
            assertEquals(0, table.activeRequests());
            assertEquals(0, pipeline.openBookings());
            for (int slot = 0; slot < 8; slot++) {
                assertLoad(slot, 0, 0, 0);
            }
            assertTrue(booked.get() > 0);
            assertEquals(0, pipeline.failures());
            assertEquals(0, table.refusals() + table.corrections());
            final long[] all = new long[640];
            for (int i = 0; i < 6; i++) {
                assertNotEquals(
                        BookingPipeline.NONE, pipeline.book(0, all, i == 0 ? 640 : 0, 0, 0));
            }
            Eventually.holds(() -> table.activeBlocks() == 640); // no chunk of the pool was lost
        }
    }

    private static void lives(BookingPipeline pipeline, Random random, AtomicInteger booked) {
        for (int i = 0; i < 2_000; i++) {
            final int count = random.nextInt(100);
            final long[] hashes = random.longs(count, 0, 40).toArray();
            final long deadlineNs = random.nextInt(4) == 0 ? 1 : ActiveRequests.NO_DEADLINE;
            final long number =
                    pipeline.book(
                            random.nextInt(8),
                            0,
                            hashes,
                            count,
                            count * 16L,
                            count,
                            deadlineNs,
                            random.nextBoolean());
            if (number == BookingPipeline.NONE) {
                continue;
            }
            booked.incrementAndGet();
            for (int steps = random.nextInt(4); steps > 0; steps--) {
                pipeline.outputBlocks(number, random.nextInt(3));
                Cores.giveWay();
            }
            if (random.nextBoolean()) {
                pipeline.prefillComplete(number);
            }
            pipeline.free(number);
            assertFalse(pipeline.isOpen(number));
        }
    }

    @Test
    void requestsEndAtATickAfterTheirDeadline() {
        try (BookingPipeline pipeline = pipeline()) {
            final long timed = pipeline.book(2, 0, PROMPT, 3, 48, 3, 1_000_000_000, false);
            final long other = pipeline.book(2, new long[] {1}, 1, 16, 1);
            assertTrue(pipeline.tick(1_000_000_000));
            assertTrue(pipeline.tick(1_100_000_000));
            awaitApplied(pipeline);
            assertEquals(1, table.expiredLeases());
            assertFalse(pipeline.isOpen(timed));
            assertTrue(pipeline.isOpen(other));
            assertFalse(pipeline.free(timed)); // late: does nothing
            awaitApplied(pipeline);
            assertLoad(2, 16, 1, 1);
            assertEquals(1, pipeline.openBookings());
        }
    }

    @Test
    void aBookingThatEndsWhileItExpiresEndsOnce() {
        try (BookingPipeline pipeline = pipeline()) {
            final long timed = pipeline.book(2, 0, PROMPT, 3, 48, 3, 1, false);
            awaitApplied(pipeline);
            final HeldWriter writer = HeldWriter.of(pipeline, 7);
            assertTrue(pipeline.tick(1_000_000_000)); // in front of the end
            assertTrue(pipeline.free(timed));
            writer.release();
            awaitApplied(pipeline);
            assertEquals(1, table.expiredLeases());
            assertLoad(2, 0, 0, 0);
            assertEquals(0, pipeline.openBookings());
        }
    }

    @Test
    void requestsEndWithTheirWorker() {
        final AtomicInteger left = new AtomicInteger(-1);
        try (BookingPipeline pipeline = pipeline()) {
            final long ended = pipeline.book(2, new long[] {1}, 1, 16, 1);
            final long kept = pipeline.book(3, new long[] {1}, 1, 16, 1);
            assertTrue(pipeline.workerGone(2, () -> left.set(table.activeRequests())));
            Eventually.holds(() -> left.get() >= 0);
            assertEquals(1, left.get(), "called when they have ended");
            assertFalse(pipeline.isOpen(ended));
            assertTrue(pipeline.isOpen(kept));
        }
    }

    @Test
    void theEndOfAWorkerNeverWaits() {
        final AtomicInteger ended = new AtomicInteger();
        try (BookingPipeline pipeline = pipeline()) {
            final HeldWriter writer = HeldWriter.of(pipeline, 7);
            for (int i = 0; i < 10_000; i++) {
                assertTrue(pipeline.workerGone(i % 7, ended::incrementAndGet));
            }
            assertTrue(pipeline.backlog() <= 2, "one record for all");
            writer.release();
            Eventually.holds(() -> ended.get() == 10_000);
        }
    }

    @Test
    void aRequestWhoseBlocksDoNotFitStaysBooked() {
        try (LoadBoard own = new LoadBoard(1);
                ActiveRequests small =
                        new ActiveRequests(
                                new ActiveRequestsConfig(
                                        1, BookingPipelineConfig.of(4).entries(), 2, 8),
                                own);
                BookingPipeline pipeline =
                        new BookingPipeline(BookingPipelineConfig.of(4), small)) {
            final long number = pipeline.book(0, PROMPT, 3, 48, 3);
            awaitApplied(pipeline);
            assertEquals(1, small.pathlessBookings());
            assertEquals(3, own.activeBlocks(0));
            assertTrue(pipeline.isOpen(number));
            assertTrue(pipeline.free(number));
            awaitApplied(pipeline);
            assertEquals(0, own.activeRequests(0));
            assertEquals(0, own.activeBlocks(0));
        }
    }

    @Test
    void predictedPromptsAreRememberedByTheTimeOfTheTicks() {
        final OverlapScores scores = new OverlapScores(8);
        final long start = -7_000_000_000L; // as a clock without a known origin may say
        try (PredictedPrefixes routed =
                        new PredictedPrefixes(
                                new PredictedPrefixesConfig(8, 100, 0.8, 1_000_000_000L));
                BookingPipeline pipeline = pipeline(routed)) {
            final long number =
                    pipeline.book(2, 0, PROMPT, 3, 48, 3, ActiveRequests.NO_DEADLINE, true);
            pipeline.book(3, 0, PROMPT, 3, 48, 3, ActiveRequests.NO_DEADLINE, false);
            awaitApplied(pipeline);
            routed.match(PROMPT, 3, scores);
            assertEquals("{2=3}", scores.toString());

            assertTrue(pipeline.tick(start)); // what was before counts from now on
            awaitApplied(pipeline);
            assertTrue(pipeline.free(number));
            assertTrue(pipeline.tick(start + 1_000_000_000));
            assertTrue(pipeline.tick(start + 500_000_000)); // late: time does not go back
            awaitApplied(pipeline);
            assertEquals(1, routed.visits());
            assertTrue(pipeline.tick(start + 1_000_000_001));
            awaitApplied(pipeline);
            assertEquals(0, routed.visits());

            pipeline.book(2, 0, PROMPT, 3, 48, 3, ActiveRequests.NO_DEADLINE, true);
            final AtomicInteger blocks = new AtomicInteger(-1);
            assertTrue(pipeline.workerGone(2, () -> blocks.set((int) routed.blocks())));
            Eventually.holds(() -> blocks.get() >= 0);
            assertEquals(0, blocks.get(), "forgotten when it is called");
            assertEquals(0, pipeline.failures());
        }
    }

    @Test
    void aPredictedPromptIsSeenAlsoWhenItsBookingEndsBefore() {
        final OverlapScores scores = new OverlapScores(8);
        try (PredictedPrefixes routed =
                        new PredictedPrefixes(
                                new PredictedPrefixesConfig(8, 100, 0.8, 1_000_000_000L));
                BookingPipeline pipeline = pipeline(routed)) {
            final HeldWriter writer = HeldWriter.of(pipeline, 7);
            final long kept = pipeline.book(1, PROMPT, 3, 48, 3);
            final long ended =
                    pipeline.book(2, 0, PROMPT, 3, 48, 3, ActiveRequests.NO_DEADLINE, true);
            assertTrue(pipeline.free(ended));
            assertFalse(pipeline.free(ended));
            assertEquals(1, pipeline.openBookings());
            writer.release();
            awaitApplied(pipeline);
            routed.match(PROMPT, 3, scores);
            assertEquals("{2=3}", scores.toString());
            assertLoad(2, 0, 0, 0);
            assertLoad(1, 48, 3, 1);
            assertTrue(pipeline.free(kept));
        }
    }

    @Test
    void aBookingAfterTheEndOfItsWorkerMeansNothingForTheNext() {
        try (PredictedPrefixes routed =
                        new PredictedPrefixes(
                                new PredictedPrefixesConfig(8, 100, 0.8, 1_000_000_000L));
                BookingPipeline pipeline = pipeline(routed)) {
            assertTrue(pipeline.workerGone(2, () -> {}));
            awaitApplied(pipeline);
            final long late =
                    pipeline.book(2, 0, PROMPT, 3, 48, 3, ActiveRequests.NO_DEADLINE, true);
            awaitApplied(pipeline);
            assertFalse(pipeline.isOpen(late));
            assertEquals(0, pipeline.openBookings());
            assertEquals(0, routed.blocks());
            assertLoad(2, 0, 0, 0);

            final long next =
                    pipeline.book(2, 1, PROMPT, 3, 48, 3, ActiveRequests.NO_DEADLINE, true);
            awaitApplied(pipeline);
            assertTrue(pipeline.isOpen(next));
            assertEquals(3, routed.blocks());
            assertLoad(2, 48, 3, 1);
            assertEquals(0, pipeline.failures());
        }
    }

    @Test
    void predictionsOfOneSlotAreForgottenAndItsBookingsStay() {
        final OverlapScores scores = new OverlapScores(8);
        try (PredictedPrefixes routed =
                        new PredictedPrefixes(
                                new PredictedPrefixesConfig(8, 100, 0.8, 1_000_000_000L));
                BookingPipeline pipeline = pipeline(routed)) {
            for (int slot = 2; slot < 4; slot++) {
                pipeline.book(slot, 0, PROMPT, 3, 48, 3, ActiveRequests.NO_DEADLINE, true);
            }
            assertTrue(pipeline.forgetPredicted(2));
            awaitApplied(pipeline);
            routed.match(PROMPT, 3, scores);
            assertEquals("{3=3}", scores.toString());
            assertEquals(2, table.activeRequests());
            assertEquals(3, board.activeBlocks(2));
        }
    }

    @Test
    void forgettingIsRefusedWhenTooMuchOfItWaits() {
        try (BookingPipeline pipeline = pipeline()) {
            final HeldWriter writer = HeldWriter.of(pipeline, 7);
            int accepted = 0;
            while (pipeline.forgetPredicted(2)) {
                accepted++;
            }
            assertEquals(BookingPipelineConfig.of(REQUESTS).maxForgets(), accepted);
            assertFalse(pipeline.forgetPredicted(2));
            assertNotEquals(BookingPipeline.NONE, pipeline.book(1, PROMPT, 3, 48, 3));
            writer.release();
            awaitApplied(pipeline);
            assertTrue(pipeline.forgetPredicted(2), "there is room again");
            assertEquals(0, pipeline.failures());
        }
    }

    @Test
    void loadThatAnErrorLeftBehindGoesAtATick() {
        try (BookingPipeline pipeline = pipeline()) {
            pipeline.book(1, new long[] {1}, 1, 16, 1);
            board.addActiveBlocks(1, 5);
            awaitApplied(pipeline);
            assertTrue(pipeline.tick(1));
            awaitApplied(pipeline);
            assertEquals(1, table.corrections());
            assertEquals(1, board.activeBlocks(1));
        }
    }

    @Test
    void closingEndsTheWriterAtTheNextStepAndKeepsItsMemoryUntilThen() {
        final BookingPipeline pipeline = pipeline();
        final HeldWriter writer = HeldWriter.of(pipeline, 7);
        long number = BookingPipeline.NONE;
        for (int i = 0; i < 100; i++) {
            number = pipeline.book(1, new long[] {i}, 1, 16, 1);
        }
        pipeline.close(); // does not wait for the end of the step
        pipeline.close();
        table.close();

        assertFalse(table.gate().isReleased());
        writer.release();
        Eventually.holds(() -> table.gate().isReleased());
        assertEquals(0, table.activeRequests(), "what was in the ring is left");
        assertLoad(1, 1_600, 100, 100);
        assertTrue(pipeline.isOpen(number));
        assertTrue(pipeline.free(number), "ends as before");
        assertFalse(pipeline.isOpen(number));
        assertLoad(1, 1_584, 99, 99);
        assertEquals(BookingPipeline.NONE, pipeline.book(1, PROMPT, 3, 48, 3));
        assertFalse(pipeline.workerGone(1, () -> {}));
        assertFalse(pipeline.forgetPredicted(1));
        assertFalse(pipeline.tick(1));
    }

    @Test
    void anErrorIsCountedAndTheThreadGoesOn() {
        try (BookingPipeline pipeline = pipeline()) {
            assertTrue(
                    pipeline.workerGone(
                            3,
                            () -> {
                                throw new IllegalStateException("on purpose");
                            }));
            final AtomicInteger ended = new AtomicInteger();
            assertTrue(pipeline.workerGone(4, ended::incrementAndGet));
            Eventually.holds(() -> pipeline.failures() == 1);
            Eventually.holds(() -> ended.get() == 1);
            pipeline.book(1, new long[] {1}, 1, 16, 1);
            Eventually.holds(() -> table.activeRequests() == 1);
        }
    }

    @Test
    void valuesOutOfRangeAreRefused() {
        assertThrows(IllegalArgumentException.class, () -> BookingPipelineConfig.of(0));
        assertThrows(
                IllegalArgumentException.class,
                () -> new BookingPipelineConfig(1, WaitMode.BLOCKING, -1));
        assertThrows(
                IllegalArgumentException.class,
                () -> new BookingPipeline(BookingPipelineConfig.of(REQUESTS + 1), table));
        try (BookingPipeline pipeline = pipeline()) {
            assertThrows(IndexOutOfBoundsException.class, () -> pipeline.book(8, PROMPT, 3, 48, 3));
            assertThrows(IndexOutOfBoundsException.class, () -> pipeline.book(1, PROMPT, 4, 48, 3));
            final long number = pipeline.book(1, PROMPT, 3, 48, 3);
            assertThrows(IllegalArgumentException.class, () -> pipeline.outputBlocks(number, -1));
            assertFalse(pipeline.isOpen(BookingPipeline.NONE));
            assertFalse(pipeline.free(BookingPipeline.NONE));
            assertFalse(pipeline.prefillComplete(BookingPipeline.NONE));
            assertFalse(pipeline.outputBlocks(BookingPipeline.NONE, 1));
        }
    }
}
