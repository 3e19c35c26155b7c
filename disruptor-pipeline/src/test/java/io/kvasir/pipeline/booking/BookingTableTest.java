package io.kvasir.pipeline.booking;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.pipeline.booking.BookingTable.Outcome;
import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.Test;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicIntegerArray;

class BookingTableTest {
    private final BookingTable table = new BookingTable(3, 4);

    private long open() {
        return open(table);
    }

    private static long open(BookingTable table) {
        final int index = table.take();
        if (index < 0) {
            return BookingPipeline.NONE;
        }
        final long number = table.nextNumber(index);
        table.open(number, false);
        return number;
    }

    /** What the writer does with a record of an open booking. */
    private void book(long number) {
        book(table, number);
    }

    private static void book(BookingTable table, long number) {
        final Booking booking = table.at((int) number);
        final long word = booking.wordAcquire();
        assertTrue(booking.changeWord(word, (word | Booking.BOOKED) & ~Booking.QUEUED));
    }

    private static void withdraw(BookingTable table, long number) {
        assertEquals(Outcome.WITHDRAWN, table.end(number));
        table.recycle((int) number);
    }

    @Test
    void noMoreBookingsAreOpenThanMayBe() {
        final long first = open();
        final long second = open();
        final long third = open();
        assertTrue(table.isFull());
        assertEquals(-1, table.take());
        assertEquals(3, table.openCount());
        for (long number : new long[] {first, second, third}) {
            withdraw(table, number);
        }
        assertEquals(0, table.openCount());
        assertFalse(table.isFull());
    }

    @Test
    void lateAndRepeatedStepsOfAnEndedBookingDoNothing() {
        final long old = open();
        assertTrue(table.isOpen(old));
        assertEquals(Outcome.RECORDED, table.startDecode(old));
        assertEquals(Outcome.LATE, table.startDecode(old));
        withdraw(table, old);
        assertEquals(Outcome.LATE, table.end(old));
        final long next = open();
        assertEquals((int) old, (int) next, "the same entry");
        assertNotEquals(old, next);
        assertFalse(table.isOpen(old));
        assertEquals(Outcome.LATE, table.startDecode(old));
        assertEquals(Outcome.LATE, table.addOutput(old, 1));
        assertEquals(Outcome.LATE, table.end(old));
        table.endBooked(old);
        assertTrue(table.isOpen(next));
        assertEquals(Outcome.RECORDED, table.startDecode(next));
    }

    @Test
    void anEntryIsPublishedOnceUntilTheWriterHasLooked() {
        final int index = table.take();
        final long first = table.nextNumber(index);
        assertEquals(Outcome.PUBLISH, table.open(first, false));
        withdraw(table, first);
        final long second = table.nextNumber(table.take());
        assertEquals((int) first, (int) second);
        assertEquals(
                Outcome.RECORDED, table.open(second, false), "the first one's record is under way");
        assertEquals(Outcome.RECORDED, table.addOutput(second, 2));
        assertEquals(Outcome.RECORDED, table.addOutput(second, 3));
        assertEquals(5, Booking.outputBlocks(table.at((int) second).wordAcquire()));
        book(second);
        assertEquals(Outcome.PUBLISH, table.startDecode(second));
        assertEquals(Outcome.RECORDED, table.end(second));
    }

    @Test
    void outputBlocksBeyondTheCounterStayAtItsEnd() {
        final long number = open();
        table.addOutput(number, Booking.MAX_OUTPUT);
        table.addOutput(number, Integer.MAX_VALUE);
        assertEquals(
                Booking.MAX_OUTPUT, Booking.outputBlocks(table.at((int) number).wordAcquire()));
        assertTrue(table.isOpen(number));
    }

    @Test
    void aBookedEntryIsKeptUntilTheWriterHasEndedIt() {
        final long number = open();
        book(number);
        open();
        open();
        assertEquals(Outcome.PUBLISH, table.end(number));
        assertEquals(2, table.openCount());
        final long other = open();
        assertNotEquals((int) number, (int) other, "the fourth entry");
        withdraw(table, other);
        table.endBooked(number);
        table.endBooked(number);
        assertEquals(2, table.openCount());
        assertEquals((int) number, (int) open(), "given back last");
    }

    @Test
    void allEntriesMayWaitForTheWriter() {
        for (int i = 0; i < 4; i++) {
            final long number = open();
            book(number);
            table.end(number);
        }
        assertEquals(0, table.openCount());
        assertTrue(table.isFull());
        assertEquals(-1, table.take());
        assertEquals(0, table.openCount());
    }

    /** So that no entry is in the ring twice, though its booking has changed meanwhile. */
    @Test
    void anEntryWhoseRecordIsOnItsWayIsNotPublishedAgainByItsNextBooking() {
        final BookingTable one = new BookingTable(1, 1);
        final long first = open(one);
        book(one, first);
        assertEquals(Outcome.PUBLISH, one.startDecode(first)); // and expires, its record not seen
        one.endBooked(first);
        final long second = one.nextNumber(one.take());
        assertEquals(Outcome.RECORDED, one.open(second, false));
        book(one, second);
        assertEquals(Outcome.PUBLISH, one.end(second)); // and expires, its record not seen
        one.endBooked(second);
        assertEquals(Outcome.RECORDED, one.open(one.nextNumber(one.take()), false));
    }

    @Test
    void aPredictedBookingThatEndsUnseenKeepsTheRecordThatItHas() {
        final int index = table.take();
        final long number = table.nextNumber(index);
        assertEquals(Outcome.PUBLISH, table.open(number, true));
        assertEquals(Outcome.RECORDED, table.end(number));
        assertEquals(Outcome.LATE, table.end(number));
        assertEquals(0, table.openCount());
    }

    @Test
    void anEndThatComesTwiceGivesTheEntryBackOnce() {
        final long number = open();
        book(number);
        table.endBooked(number);
        table.endBooked(number);
        assertEquals(0, table.openCount());
        final List<Integer> taken = new ArrayList<>();
        for (int index = table.take(); index >= 0; index = table.take()) {
            assertFalse(taken.contains(index), "twice: " + index);
            taken.add(index);
        }
        assertEquals(3, taken.size());
    }

    @Test
    void theLastGenerationIsFollowedByTheFirstAndNoNumberIsNone() {
        final int index = table.take();
        final Booking booking = table.at(index);
        assertTrue(booking.changeWord(booking.wordAcquire(), Booking.GENERATION_MASK));
        assertEquals(1L << Integer.SIZE | index, table.nextNumber(index));
    }

    /** Each entry carries a mark while it is taken: two holders of one entry would meet on it. */
    @Test
    void threadsNeverHoldOneEntryTogether() throws Exception {
        final BookingTable shared = new BookingTable(5, 5);
        final AtomicIntegerArray holders = new AtomicIntegerArray(5);
        final long seed = Seeds.next("threadsNeverHoldOneEntryTogether");
        final List<Future<?>> threads = new ArrayList<>();
        try (ExecutorService pool = Executors.newFixedThreadPool(4)) {
            for (int t = 0; t < 4; t++) {
                final Random random = new Random(seed + t);
                threads.add(pool.submit(() -> takeAndGive(shared, holders, random)));
            }
            for (Future<?> thread : threads) {
                thread.get();
            }
        }
        assertEquals(0, shared.openCount());
        for (int i = 0; i < 5; i++) {
            assertNotEquals(BookingPipeline.NONE, open(shared));
        }
        assertEquals(BookingPipeline.NONE, open(shared));
    }

    private static void takeAndGive(
            BookingTable shared, AtomicIntegerArray holders, Random random) {
        final List<Long> held = new ArrayList<>();
        for (int i = 0; i < 100_000; i++) {
            if (held.size() < 3 && random.nextBoolean()) {
                final long number = open(shared);
                if (number != BookingPipeline.NONE) {
                    assertEquals(1, holders.incrementAndGet((int) number));
                    held.add(number);
                }
            } else if (!held.isEmpty()) {
                give(shared, holders, held.remove(random.nextInt(held.size())));
            }
        }
        held.forEach(number -> give(shared, holders, number));
    }

    private static void give(BookingTable shared, AtomicIntegerArray holders, long number) {
        assertEquals(0, holders.decrementAndGet((int) number));
        withdraw(shared, number);
        assertEquals(Outcome.LATE, shared.end(number));
    }
}
