package io.kvasir.core.load;

import static io.kvasir.core.load.ActiveRequests.NO_DEADLINE;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.radix.OverlapScores;
import io.kvasir.testsupport.Allocations;
import io.kvasir.testsupport.Seeds;
import io.kvasir.testsupport.Shares;
import io.kvasir.testsupport.Trials;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

import java.util.Random;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.function.LongConsumer;

/** Bookings on one thread, matches and provisional loads on another. */
class ActiveRequestsSoakTest {
    private static final int SLOTS = 4;
    private static final int PROMPTS = 40;
    private static final int DEPTH = 40;
    private static final int COMMON = 8;
    private static final long TICK_NS = 1 << 20;
    private static final long BOOKINGS = Trials.of(10_000, 40_000); // at least
    private static final long MATCHES = Trials.of(10_000, 40_000);

    private final LoadBoard board = new LoadBoard(SLOTS);
    private final ActiveRequests table =
            new ActiveRequests(new ActiveRequestsConfig(SLOTS, 64, 800, DEPTH), board);

    @Tag("trials")
    @Test
    void loadEndsAtZeroAndNoSlotIsCreditedWithBlocksItNeverUsed() throws Exception {
        final Random random = new Random(Seeds.next("ActiveRequestsSoakTest"));
        try (board;
                table;
                ExecutorService threads = Executors.newFixedThreadPool(2)) {
            final Shares shares = new Shares(2);
            final Future<?> writing = threads.submit(() -> write(random, shares.of(BOOKINGS)));
            final Future<?> reading = threads.submit(() -> read(shares.of(MATCHES)));
            writing.get();
            reading.get();
            assertEquals(0, table.corrections());
            for (int slot = 0; slot < SLOTS; slot++) {
                table.workerGone(slot);
                assertEquals(0, board.activeBlocks(slot));
                assertEquals(0, board.prefillTokens(slot));
                assertEquals(0, board.activeRequests(slot));
            }
            assertEquals(0, table.activeBlocks());
        }
    }

    private void write(Random random, Shares.Share share) {
        try (share) {
            final long[] prompt = new long[DEPTH];
            long id = 0;
            while (share.goesOn()) {
                final int number = random.nextInt(PROMPTS);
                final int slot = number % SLOTS;
                fill(prompt, number);
                board.addProvisional(slot, 10, 7);
                final int count = 1 + random.nextInt(limit(number));
                table.book(number(++id), slot, prompt, count, 0, 10, 7, id * TICK_NS);
                table.prefillComplete(number(id - random.nextInt(10)));
                table.outputBlocks(number(id - random.nextInt(10)), 1);
                table.free(number(id - random.nextInt(40)));
                table.expire((id - 50) * TICK_NS, ended -> {});
                table.reconcile(0, 1);
            }
        }
    }

    /** One of 64 entries, in turn. */
    private static long number(long id) {
        return (id / 64 + 1) << Integer.SIZE | id % 64;
    }

    private void read(Shares.Share share) {
        try (share) {
            final long[] prompt = new long[DEPTH];
            final OverlapScores scores = new OverlapScores(SLOTS);
            long matches = 0;
            while (share.goesOn()) {
                final int number = (int) (matches++ % PROMPTS);
                fill(prompt, number);
                table.matchActive(prompt, DEPTH, scores);
                for (int slot = 0; slot < SLOTS; slot++) {
                    final int own = slot == number % SLOTS ? limit(number) : 0;
                    assertTrue(
                            scores.depth(slot) <= Math.max(own, COMMON),
                            () -> number + ": " + scores);
                }
                board.addProvisional(number % SLOTS, 9, 5);
                board.takeBackProvisional(number % SLOTS, 9, 5);
            }
        }
    }

    @Test
    void bookingsAndQuestionsAllocateNothing() {
        final long[] prompt = new long[DEPTH];
        final long[] other = new long[DEPTH];
        fill(prompt, 1);
        fill(other, 2);
        final OverlapScores scores = new OverlapScores(SLOTS);
        final PotentialLoads loads = new PotentialLoads(SLOTS);
        final LongConsumer ended = number -> {};
        final long[] now = {0};
        try (board;
                table) {
            assertEquals(
                    0,
                    Allocations.bytesPerRound(
                            5_000,
                            () -> {
                                now[0] += 3 * TICK_NS;
                                board.addProvisional(1, 0, DEPTH);
                                table.book(1, 1, prompt, DEPTH, 0, 0, DEPTH, NO_DEADLINE);
                                board.addProvisional(1, 0, DEPTH);
                                table.book(2, 1, other, DEPTH, 0, 0, DEPTH, now[0] + TICK_NS);
                                table.prefillComplete(1);
                                table.outputBlocks(1, 1);
                                table.potentialLoads(prompt, DEPTH, 1, scores, loads);
                                table.expire(now[0], ended);
                                table.reconcile(now[0], SLOTS);
                                table.free(1);
                            }));
            table.workerGone(1);
            assertEquals(0, board.activeBlocks(1));
            assertTrue(table.expiredLeases() > 4_000); // every second one, of two rounds at least
        }
    }

    /** The first blocks are common to all prompts, the others the prompt's own. */
    private static void fill(long[] prompt, int number) {
        for (int i = 0; i < DEPTH; i++) {
            prompt[i] = i < COMMON ? i : number * 100L + i;
        }
    }

    private static int limit(int number) {
        return 1 + number % DEPTH;
    }
}
