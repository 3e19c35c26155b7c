package io.kvasir.router;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.Test;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicIntegerArray;

class LeaseTableTest {
    private final LeaseTable table = new LeaseTable(3);

    private static void end(LeaseTable table, long number) {
        assertTrue(table.close(number));
        table.recycle(number);
    }

    @Test
    void noMoreBookingsAreOpenThanThereArePlaces() {
        final Set<Long> numbers = new HashSet<>();
        for (int i = 0; i < 3; i++) {
            numbers.add(table.open());
        }
        assertEquals(3, numbers.size());
        assertFalse(numbers.contains(LeaseTable.NONE));
        assertEquals(LeaseTable.NONE, table.open());
        assertEquals(3, table.count());
        numbers.forEach(number -> end(table, number));
        assertEquals(0, table.count());
        assertNotEquals(LeaseTable.NONE, table.open());
    }

    @Test
    void lateAndRepeatedStepsOfAnEndedBookingDoNothing() {
        final long old = table.open();
        assertTrue(table.isOpen(old));
        assertTrue(table.startDecode(old));
        assertFalse(table.startDecode(old));
        end(table, old);
        assertFalse(table.close(old));
        final long next = table.open();
        assertEquals((int) old, (int) next, "the same place");
        assertNotEquals(old, next);
        assertFalse(table.isOpen(old));
        assertFalse(table.startDecode(old));
        assertFalse(table.close(old));
        assertTrue(table.isOpen(next));
        assertTrue(table.startDecode(next));
    }

    @Test
    void aClosedBookingKeepsItsPlaceUntilItIsRecycled() {
        final long number = table.open();
        table.open();
        table.open();
        assertTrue(table.close(number));
        assertEquals(LeaseTable.NONE, table.open());
        table.recycle(number);
        assertNotEquals(LeaseTable.NONE, table.open());
    }

    @Test
    void endingTwiceGivesThePlaceBackOnce() {
        final long number = table.open();
        table.end(number);
        table.end(number);
        final long next = table.open();
        assertEquals((int) number, (int) next, "the same place");
        table.end(number);
        assertTrue(table.isOpen(next));
        table.open();
        table.open();
        assertEquals(LeaseTable.NONE, table.open());
    }

    /** Each place carries a mark while it is taken: two holders of one place would meet on it. */
    @Test
    void threadsNeverHoldOnePlaceTogether() throws Exception {
        final LeaseTable shared = new LeaseTable(5);
        final AtomicIntegerArray holders = new AtomicIntegerArray(5);
        final long seed = Seeds.next("threadsNeverHoldOnePlaceTogether");
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
        assertEquals(0, shared.count());
        for (int i = 0; i < 5; i++) {
            assertNotEquals(LeaseTable.NONE, shared.open());
        }
        assertEquals(LeaseTable.NONE, shared.open());
    }

    private static void takeAndGive(LeaseTable shared, AtomicIntegerArray holders, Random random) {
        final List<Long> held = new ArrayList<>();
        for (int i = 0; i < 200_000; i++) {
            if (held.size() < 3 && random.nextBoolean()) {
                final long number = shared.open();
                if (number != LeaseTable.NONE) {
                    assertEquals(1, holders.incrementAndGet((int) number));
                    held.add(number);
                }
            } else if (!held.isEmpty()) {
                give(shared, holders, held.remove(random.nextInt(held.size())));
            }
        }
        held.forEach(number -> give(shared, holders, number));
    }

    private static void give(LeaseTable shared, AtomicIntegerArray holders, long number) {
        assertEquals(0, holders.decrementAndGet((int) number));
        end(shared, number);
        assertFalse(shared.close(number));
    }
}
