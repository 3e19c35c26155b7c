package io.kvasir.pipeline.booking;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.load.ActiveRequests;
import io.kvasir.core.load.ActiveRequestsConfig;
import io.kvasir.core.load.LoadBoard;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/**
 * A booking's number names it in every table: what an old number does, when the entry that it names
 * has another booking, or is about to get one.
 */
class BookingNumbersTest {
    private static final int REQUESTS = 128;
    private static final int ENTRIES = BookingPipelineConfig.of(REQUESTS).entries();
    private static final int SLOTS = 8;
    private static final long[] PROMPT = {1, 2, 3};

    private final LoadBoard board = new LoadBoard(SLOTS);
    private final ActiveRequests table =
            new ActiveRequests(new ActiveRequestsConfig(SLOTS, ENTRIES, 1 << 16, 4_096), board);
    private final BookingPipeline pipeline =
            new BookingPipeline(BookingPipelineConfig.of(REQUESTS), table);

    @AfterEach
    void close() {
        assertEquals(0, pipeline.failures());
        assertEquals(0, table.refusals());
        assertEquals(0, table.corrections());
        pipeline.close();
        table.close();
        board.close();
    }

    private void settle() {
        HeldWriter.awaitApplied(pipeline);
    }

    private long book(int slot) {
        final long number = pipeline.book(slot, PROMPT, 3, 48, 3);
        assertNotEquals(BookingPipeline.NONE, number);
        return number;
    }

    private void assertEnded(long number) {
        assertFalse(pipeline.isOpen(number));
        assertFalse(pipeline.prefillComplete(number));
        assertFalse(pipeline.outputBlocks(number, 1));
        assertFalse(pipeline.free(number));
    }

    private void assertLoad(int slot, long tokens, long blocks, long requests) {
        assertEquals(tokens, board.prefillTokens(slot));
        assertEquals(blocks, board.activeBlocks(slot));
        assertEquals(requests, board.activeRequests(slot));
    }

    @Test
    void anOldNumberDoesNothingToTheNextBookingOfItsEntry() {
        final long first = book(1);
        settle();
        assertTrue(pipeline.free(first));
        settle();
        final long second = book(1);
        settle();
        assertEquals((int) first, (int) second, "the entry given back last is taken first");
        assertNotEquals(first, second);
        assertEnded(first);
        settle();
        assertTrue(pipeline.isOpen(second));
        assertLoad(1, 48, 3, 1);
        assertEquals(1, table.activeRequests());
    }

    @Test
    void anEntryIsNotReusedWhileItsEndIsInTheRing() {
        final List<Long> booked = new ArrayList<>();
        for (int i = 0; i < REQUESTS; i++) {
            booked.add(book(1));
        }
        settle();
        final HeldWriter writer = HeldWriter.of(pipeline, SLOTS - 1);
        final Set<Integer> ended = new HashSet<>();
        for (long number : booked) {
            assertTrue(pipeline.free(number));
            ended.add((int) number);
        }
        for (int i = REQUESTS; i < ENTRIES; i++) { // all that are left
            final long number = book(2);
            assertFalse(ended.contains((int) number), "its end is still in the ring");
        }
        assertEquals(BookingPipeline.NONE, pipeline.book(2, PROMPT, 3, 48, 3));
        booked.forEach(this::assertEnded);
        writer.release();
        settle();
        assertLoad(1, 0, 0, 0);
        assertLoad(2, 48L * (ENTRIES - REQUESTS), 3, ENTRIES - REQUESTS);
        assertEquals(ENTRIES - REQUESTS, table.activeRequests());
    }

    @Test
    void aTableWithAllEntriesBookedTakesThemAll() {
        final List<Long> booked = new ArrayList<>();
        for (int i = 0; i < REQUESTS; i++) {
            booked.add(book(1));
        }
        settle();
        final HeldWriter writer = HeldWriter.of(pipeline, SLOTS - 1);
        for (int i = REQUESTS; i < ENTRIES; i++) { // a new one comes before the end of an old one
            final long old = booked.get(i - REQUESTS);
            assertTrue(pipeline.prefillComplete(old)); // its record, in front of the new one's
            assertTrue(pipeline.free(old));
            booked.add(book(2));
        }
        writer.release();
        settle();
        final int kept = 2 * REQUESTS - ENTRIES;
        assertLoad(1, 48L * kept, 3, kept);
        assertLoad(2, 48L * (ENTRIES - REQUESTS), 3, ENTRIES - REQUESTS);
    }

    @Test
    void anEntryWhoseBookingEndedUnseenIsReusedWithItsRecordInTheRing() {
        final HeldWriter writer = HeldWriter.of(pipeline, SLOTS - 1);
        final long first = book(1);
        assertTrue(pipeline.prefillComplete(first));
        assertTrue(pipeline.free(first));
        final long second = book(2);
        assertEquals((int) first, (int) second);
        assertEnded(first);
        assertTrue(pipeline.outputBlocks(second, 2));
        writer.release();
        settle();
        assertLoad(1, 0, 0, 0);
        assertLoad(2, 48, 5, 1);
        assertTrue(pipeline.free(second));
        settle();
        assertLoad(2, 0, 0, 0);
    }

    @Test
    void stepsThatComeAfterTheEndDoNothing() {
        final long number = book(1);
        settle();
        final HeldWriter writer = HeldWriter.of(pipeline, SLOTS - 1);
        assertTrue(pipeline.free(number));
        assertEnded(number);
        writer.release();
        settle();
        assertEnded(number);
        assertLoad(1, 0, 0, 0);
    }

    @Test
    void aWorkerThatIsRemovedTakesBookingsWithStepsInTheRingAlong() {
        final long stepped = book(1);
        final long freed = book(1);
        settle();
        final HeldWriter writer = HeldWriter.of(pipeline, SLOTS - 1);
        assertTrue(pipeline.prefillComplete(stepped)); // before the end of the worker
        assertTrue(pipeline.workerGone(1, () -> {}));
        assertTrue(pipeline.outputBlocks(stepped, 2)); // with the record of the step before
        assertTrue(pipeline.free(freed)); // after it
        final long late = book(1); // of the tenant before
        writer.release();
        settle();
        assertEnded(stepped);
        assertEnded(freed);
        assertEnded(late);
        assertLoad(1, 0, 0, 0);
        assertEquals(0, table.activeRequests());

        final Set<Integer> entries = new HashSet<>(); // each is there once
        for (int i = 0; i < REQUESTS; i++) {
            final long next =
                    pipeline.book(1, 1, PROMPT, 3, 48, 3, ActiveRequests.NO_DEADLINE, false);
            assertTrue(entries.add((int) next));
        }
        settle();
        assertEquals(REQUESTS, table.activeRequests());
        assertEnded(stepped);
    }

    @Test
    void aBookingThatExpiresWithItsEndInTheRingLeavesItsEntryOnce() {
        final long number = pipeline.book(1, 0, PROMPT, 3, 48, 3, 1, false);
        settle();
        final HeldWriter writer = HeldWriter.of(pipeline, SLOTS - 1);
        assertTrue(pipeline.tick(1_000_000_000)); // in front of the end
        assertTrue(pipeline.free(number));
        writer.release();
        settle();
        assertEnded(number);
        assertLoad(1, 0, 0, 0);
        final Set<Integer> entries = new HashSet<>();
        for (int i = 0; i < REQUESTS; i++) {
            assertTrue(entries.add((int) book(2)));
        }
        settle();
        assertEquals(REQUESTS, table.activeRequests());
    }
}
