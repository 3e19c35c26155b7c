package io.kvasir.core.index;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.memory.EntryChains;
import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.Test;

import java.util.Random;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.LongStream;

/**
 * The reading protocol where it hurts most: a dozen entries in two chains, each becoming another
 * block, in the same chain or the other one, every few hundred nanoseconds.
 */
class BlockTableSoakTest {
    private static final int SLOTS = 64;
    private static final int ENTRIES = 14;
    private static final int PINNED = 4;
    private static final int KEYS = 60;
    private static final long SOAK_NS = 900_000_000;

    private final long[] keys = keysOfTwoBuckets();
    private final int[] entries = new int[KEYS];

    @Test
    void aBlockThatIsLeftAloneIsFoundAndNoneHasAnotherBlocksHolder() throws Exception {
        final Random random = new Random(Seeds.next("BlockTableSoakTest"));
        try (BlockTable table = new BlockTable("maxBlocks", SLOTS, ENTRIES);
                ExecutorService threads = Executors.newFixedThreadPool(2)) {
            // pinned first: they end up at the far end of the chains
            for (int key = 0; key < PINNED; key++) {
                add(table, key);
            }
            final long deadline = System.nanoTime() + SOAK_NS;
            final Future<?> writing = threads.submit(() -> write(table, random, deadline));
            final Future<long[]> reading = threads.submit(() -> read(table, deadline));
            writing.get();
            final long[] seen = reading.get();
            System.out.printf("%d reads of pinned blocks, %d of them hidden%n", seen[0], seen[1]);
            assertTrue(seen[0] > 1_000);
            // none, unless a reader meets a change in each of its tries
            assertTrue(seen[1] * 50_000 <= seen[0], "more than 1 in 50,000 hidden");
        }
    }

    private void write(BlockTable table, Random random, long deadline) {
        while (System.nanoTime() < deadline) {
            for (int i = 0; i < 64; i++) {
                final int key = PINNED + random.nextInt(KEYS - PINNED);
                if (entries[key] != EntryChains.NONE) {
                    table.removeHolder(entries[key], slotOf(key));
                    entries[key] = EntryChains.NONE;
                } else if (table.free() > 0) {
                    add(table, key);
                }
            }
        }
    }

    private void add(BlockTable table, int key) {
        entries[key] = table.insert(keys[key]);
        table.addHolder(entries[key], slotOf(key));
    }

    private long[] read(BlockTable table, long deadline) {
        final OverlapScores scores = new OverlapScores(SLOTS);
        final long[] prompt = new long[1];
        long reads = 0;
        long hidden = 0;
        while (System.nanoTime() < deadline) {
            for (int key = 0; key < KEYS; key++) {
                prompt[0] = keys[key];
                final int depth = table.match(prompt, 1, scores);
                if (scores.matchedSlots() > 0) {
                    assertEquals(1, scores.matchedSlots());
                    assertEquals(slotOf(key), scores.slotAt(0));
                }
                if (key < PINNED) {
                    reads++;
                    hidden += 1 - depth;
                }
            }
        }
        return new long[] {reads, hidden};
    }

    private static int slotOf(int key) {
        return key;
    }

    private static long[] keysOfTwoBuckets() {
        try (EntryChains same = new EntryChains("entries", ENTRIES, Long.BYTES)) {
            return LongStream.iterate(1, k -> k + 1)
                    .filter(k -> same.bucket(k) < 2)
                    .limit(KEYS)
                    .toArray();
        }
    }
}
