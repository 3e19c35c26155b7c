package io.kvasir.core.load;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;

/** The load board is kept to what is booked while callers add to it. */
class LoadLedgerTest {
    private static final int SLOTS = 2;
    private static final int ENTRIES = 128;
    private static final long[] PROMPT = {1, 2, 3};
    private static final int CALLS = 200; // of a caller, at least
    private static final int COMPARED = 100; // beside them, at least
    private static final long LOST_NS = LoadLedger.LOST_AFTER_NS;
    private final AtomicInteger compared = new AtomicInteger();

    private final LoadBoard board = new LoadBoard(SLOTS);
    private final ActiveRequests table =
            new ActiveRequests(new ActiveRequestsConfig(SLOTS, ENTRIES, 400, 20), board);

    @AfterEach
    void close() {
        table.close();
        board.close();
    }

    private void book(long number) {
        book(number, 0, 3);
    }

    private int book(long number, int slot, int count) {
        return table.book(
                number, slot, PROMPT, count, 0, 16L * count, count, ActiveRequests.NO_DEADLINE);
    }

    private void assertLoad(long prefillTokens, long blocks, long requests) {
        assertEquals(prefillTokens, board.prefillTokens(0));
        assertEquals(blocks, board.activeBlocks(0));
        assertEquals(requests, board.activeRequests(0));
    }

    @Test
    void whatIsWrongIsCorrectedAndCounted() {
        board.addProvisional(0, 48, 3);
        book(1);
        board.addActiveBlocks(0, 7);
        board.addPrefillTokens(0, -3);
        board.add(0, 0, 0, 1);
        assertEquals(1, table.reconcile(0, SLOTS));
        assertLoad(48, 3, 1);
        assertEquals(1, table.corrections());
        assertEquals(1, table.reconcile(0, SLOTS));
        assertEquals(1, table.corrections());
        table.free(1);
        assertLoad(0, 0, 0);
    }

    @Test
    void aLoadThatIsTakenOffTwiceIsCorrected() {
        board.addProvisional(0, 48, 3);
        book(1);
        board.add(0, -48, -3, -1);
        table.free(1);
        assertLoad(-48, -3, -1);
        table.reconcile(0, SLOTS);
        assertLoad(0, 0, 0);
    }

    @Test
    void aProvisionalLoadUnderWayIsNotTouched() {
        board.addProvisional(0, 48, 3);
        book(1);
        board.addActiveBlocks(0, 7);
        board.addProvisional(0, 16, 1);
        assertEquals(0, table.reconcile(0, SLOTS));
        assertLoad(64, 11, 2);
        board.takeBackProvisional(0, 16, 1);
        assertEquals(1, table.reconcile(0, SLOTS));
        assertLoad(48, 3, 1);
    }

    @Test
    void aRefusedBookingSettlesItsProvisionalLoad() {
        board.addProvisional(0, 48, 3);
        book(1);
        board.addProvisional(0, 48, 3);
        assertEquals(ActiveRequests.TAKEN, book(1, 0, 3));
        assertEquals(1, table.reconcile(0, SLOTS));
        assertLoad(48, 3, 1);
        assertEquals(0, table.corrections());
    }

    @Test
    void callersThatDoNotCountAreLeftAlone() {
        board.addPrefillTokens(0, 48);
        board.addActiveBlocks(0, 3);
        board.add(0, 0, 0, 1);
        assertEquals(0, table.reconcile(LOST_NS, SLOTS));
        book(1);
        assertEquals(0, table.reconcile(5 * LOST_NS, SLOTS));
        assertLoad(48, 3, 1);
    }

    @Test
    void aProvisionalLoadThatNeverComesIsGivenUp() {
        board.addProvisional(0, 48, 3); // its caller dies
        board.addProvisional(0, 16, 1); // its caller lives
        assertEquals(0, table.reconcile(0, SLOTS));
        book(1, 0, 1);
        assertEquals(0, table.reconcile(LOST_NS - 1, SLOTS));
        assertLoad(64, 4, 2);
        assertEquals(0, table.reconcile(LOST_NS, SLOTS)); // from here on one is lost
        assertEquals(1, table.reconcile(LOST_NS + 1, SLOTS));
        assertLoad(16, 1, 1);
        assertEquals(1, table.corrections());
    }

    @Test
    void oneGivenUpThatComesAfterAllIsPutRight() {
        board.addProvisional(0, 48, 3);
        table.reconcile(0, SLOTS);
        table.reconcile(LOST_NS, SLOTS);
        table.reconcile(LOST_NS, SLOTS);
        assertLoad(0, 0, 0);
        book(1); // shows nothing yet: its provisional load was taken off
        assertLoad(0, 0, 0);
        assertEquals(0, table.reconcile(LOST_NS, SLOTS));
        assertEquals(1, table.reconcile(LOST_NS, SLOTS));
        assertLoad(48, 3, 1);
        board.addProvisional(0, 48, 3); // and nothing is left of it
        assertEquals(0, table.reconcile(LOST_NS, SLOTS));
        assertLoad(96, 6, 2);
    }

    /** A booking on its way from a caller to the writer. */
    private record Booking(long id, int slot, int count) {}

    @Test
    void callersAndTheWriterAndComparisonsAtTheSameTimeEndExact() throws Exception {
        final long seed = Seeds.next("LoadLedgerTest");
        final BlockingQueue<Booking> ring = new ArrayBlockingQueue<>(2); // so it is empty at times
        try (ExecutorService threads = Executors.newFixedThreadPool(3)) {
            final List<Future<?>> callers = new ArrayList<>();
            for (int t = 0; t < 2; t++) {
                final Random random = new Random(seed + t);
                final int firstIndex = t * ENTRIES / 2;
                callers.add(threads.submit(() -> call(random, firstIndex, ring)));
            }
            final Future<?> writer =
                    threads.submit(() -> write(new Random(seed + 9), ring, callers));
            writer.get();
        }
        // had a comparison eaten something that was under way, a later one would have found it
        assertEquals(0, table.corrections());
        for (int slot = 0; slot < SLOTS; slot++) {
            table.workerGone(slot);
            assertEquals(0, board.activeBlocks(slot));
            assertEquals(0, board.prefillTokens(slot));
            assertEquals(0, board.activeRequests(slot));
        }
    }

    private void call(Random random, int firstIndex, BlockingQueue<Booking> ring) {
        long calls = 0;
        while (calls < CALLS || compared.get() < COMPARED) {
            final int slot = random.nextInt(SLOTS);
            final int count = 1 + random.nextInt(3);
            board.addProvisional(slot, 16L * count, count);
            final long generation = calls / (ENTRIES / 2) + 1;
            final long index = firstIndex + calls % (ENTRIES / 2);
            if (!ring.offer(new Booking(generation << Integer.SIZE | index, slot, count))) {
                board.takeBackProvisional(slot, 16L * count, count);
            } else {
                calls++;
            }
            LockSupport.parkNanos(random.nextInt(400_000)); // so that slots are quiet at times
        }
    }

    private void write(Random random, BlockingQueue<Booking> ring, List<Future<?>> callers) {
        final long[] running = new long[32];
        int next = 0;
        while (true) {
            final boolean over = callers.stream().allMatch(Future::isDone);
            final Booking booking = ring.poll();
            if (booking != null) {
                table.free(running[next]);
                book(booking.id, booking.slot, booking.count);
                running[next] = booking.id;
                next = (next + 1) % running.length;
                if (random.nextBoolean()) {
                    table.prefillComplete(booking.id);
                }
            } else if (over) {
                table.reconcile(0, SLOTS);
                return;
            }
            compared.addAndGet(table.reconcile(0, 1));
        }
    }
}
