package io.kvasir.core.slots;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.index.OverlapScores;
import io.kvasir.testsupport.Allocations;
import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.Test;

import java.util.Random;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/** Bookings on one thread, matches and provisional loads on another. */
class SlotTableSoakTest {
    private static final int SLOTS = 4;
    private static final int PROMPTS = 40;
    private static final int DEPTH = 20;
    private static final long SOAK_NS = 800_000_000;

    private final LoadBoard board = new LoadBoard(SLOTS);
    private final SlotTable table =
            new SlotTable(new SlotTableConfig(SLOTS, 64, 400, DEPTH), board);

    @Test
    void loadEndsAtZeroAndNoSlotIsCreditedWithBlocksItNeverUsed() throws Exception {
        final Random random = new Random(Seeds.next("SlotTableSoakTest"));
        try (board;
                table;
                ExecutorService threads = Executors.newFixedThreadPool(2)) {
            final long deadline = System.nanoTime() + SOAK_NS;
            final Future<?> writing = threads.submit(() -> write(random, deadline));
            final Future<Long> reading = threads.submit(() -> read(deadline));
            writing.get();
            assertTrue(reading.get() > 1_000);
            for (int slot = 0; slot < SLOTS; slot++) {
                table.workerGone(slot);
                assertEquals(0, board.activeBlocks(slot));
                assertEquals(0, board.prefillTokens(slot));
                assertEquals(0, board.activeRequests(slot));
            }
            assertEquals(0, table.activeBlocks());
        }
    }

    private void write(Random random, long deadline) {
        final long[] prompt = new long[DEPTH];
        long id = 0;
        while (System.nanoTime() < deadline) {
            final int number = random.nextInt(PROMPTS);
            final int slot = number % SLOTS;
            fill(prompt, number);
            board.addPrefillTokens(slot, 10);
            board.addActiveBlocks(slot, 7);
            board.addActiveRequests(slot, 1);
            table.add(++id, slot, prompt, 1 + random.nextInt(limit(number)), 10, 7);
            table.prefillComplete(id - random.nextInt(10));
            table.outputBlock(id - random.nextInt(10));
            table.free(id - random.nextInt(40));
        }
    }

    private long read(long deadline) {
        final long[] prompt = new long[DEPTH];
        final OverlapScores scores = new OverlapScores(SLOTS);
        long matches = 0;
        while (System.nanoTime() < deadline) {
            final int number = (int) (matches++ % PROMPTS);
            fill(prompt, number);
            table.matchActive(prompt, DEPTH, scores);
            for (int slot = 0; slot < SLOTS; slot++) {
                final int limit = slot == number % SLOTS ? limit(number) : 0;
                assertTrue(scores.depth(slot) <= limit, () -> number + ": " + scores);
            }
            board.addActiveBlocks(number % SLOTS, 5);
            board.addActiveBlocks(number % SLOTS, -5);
        }
        return matches;
    }

    @Test
    void bookingsAndQuestionsAllocateNothing() {
        final long[] prompt = new long[DEPTH];
        fill(prompt, 1);
        final OverlapScores scores = new OverlapScores(SLOTS);
        final PotentialLoads loads = new PotentialLoads(SLOTS);
        try (board;
                table) {
            assertEquals(
                    0,
                    Allocations.bytesPerRound(
                            5_000,
                            () -> {
                                board.addActiveBlocks(1, DEPTH);
                                board.addActiveRequests(1, 1);
                                table.add(1, 1, prompt, DEPTH, 0, DEPTH);
                                table.prefillComplete(1);
                                table.outputBlock(1);
                                table.potentialLoads(prompt, DEPTH, 1, scores, loads);
                                table.free(1);
                            }));
            assertEquals(0, board.activeBlocks(1));
        }
    }

    private static void fill(long[] prompt, int number) {
        for (int i = 0; i < DEPTH; i++) {
            prompt[i] = number * 100L + i;
        }
    }

    private static int limit(int number) {
        return 1 + number % DEPTH;
    }
}
