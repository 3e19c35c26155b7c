package io.kvasir.core.index;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.radix.OverlapScores;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.util.Arrays;
import java.util.SplittableRandom;

/**
 * What an event of a run costs does not grow with the workers that hold the run: counted in
 * holders, segments and blocks that were asked one by one.
 */
class HolderCostTest {
    private static final int SLOTS = 300;
    private static final int BLOCKS = 512;

    /** A list of holders has so many at most; a split goes through it twice. */
    private static final int LIST = 128;

    private static final int ALLOWED_PER_EVENT = 16;
    private static final int ALLOWED_PER_BLOCK = 2 * HolderCounts.FEW;

    private final PrefixIndex index =
            new PrefixIndex(
                    new PrefixIndexConfig(SLOTS, 1 << 20, 1 << 20).withBudgetBytes(64 << 20));
    private final SplittableRandom random = new SplittableRandom(5);
    private final long[] prompt = random.longs(BLOCKS).toArray();

    @AfterEach
    void everythingAgreesAfterwards() {
        IndexInvariants.check(index);
        index.close();
    }

    private long[] names(int slot) {
        final long[] names = prompt.clone();
        Arrays.setAll(names, i -> (prompt[i] >>> 1) * 3 + slot);
        return names;
    }

    /** Stores the prompt's blocks {@code from..to - 1}; returns the steps that it took. */
    private long store(int slot, int from, int to) {
        final long before = index.holders().steps();
        final long[] names = names(slot);
        assertEquals(
                StoreResult.STORED,
                index.store(
                        slot,
                        from == 0,
                        from == 0 ? 0 : names[from - 1],
                        Arrays.copyOfRange(names, from, to),
                        Arrays.copyOfRange(prompt, from, to),
                        to - from,
                        true));
        return index.holders().steps() - before;
    }

    private long drop(int slot, int from, int to) {
        final long before = index.holders().steps();
        final long[] gone = Arrays.copyOfRange(names(slot), from, to);
        assertEquals(0, index.remove(slot, gone, gone.length, CopyRule.LAST_COPY));
        return index.holders().steps() - before;
    }

    private long branch(int slot, int at, long name) {
        final long before = index.holders().steps();
        assertEquals(
                StoreResult.STORED,
                index.store(
                        slot,
                        false,
                        names(slot)[at - 1],
                        new long[] {name},
                        new long[] {name},
                        1,
                        true));
        return index.holders().steps() - before;
    }

    private static void assertBounded(long steps, int blocks) {
        assertTrue(
                steps <= ALLOWED_PER_EVENT + (long) ALLOWED_PER_BLOCK * blocks,
                () -> "steps=" + steps + ", blocks=" + blocks);
    }

    @ParameterizedTest(name = "{0} workers")
    @ValueSource(ints = {HolderCounts.FEW, HolderCounts.FEW + 1, 100, SLOTS})
    void eventsOfARunCostTheirOwnBlocksHoweverManyHoldIt(int workers) {
        for (int slot = 0; slot < workers; slot++) {
            assertBounded(store(slot, 0, BLOCKS), BLOCKS);
        }
        for (int slot = 0; slot < workers; slot++) { // the last one frees the end
            assertBounded(drop(slot, BLOCKS - 16, BLOCKS), 16);
        }
        for (int slot = 0; slot < workers; slot += 7) {
            assertBounded(drop(slot, 100, 101), 1);
            assertBounded(drop(slot, BLOCKS - 17, BLOCKS - 16), 1);
            assertBounded(store(slot, 0, BLOCKS - 16), BLOCKS);
        }
        for (int slot = 0; slot < workers; slot++) {
            assertBounded(drop(slot, 0, 8), 8);
        }
        for (int slot = 0; slot < workers; slot++) {
            assertBounded(store(slot, 0, 8), 8);
        }
    }

    @ParameterizedTest(name = "{0} workers")
    @ValueSource(ints = {HolderCounts.FEW, 100, SLOTS})
    void aBranchCostsTheListOfHoldersAtMost(int workers) {
        for (int slot = 0; slot < workers; slot++) {
            store(slot, 0, slot % 3 == 1 && slot < 60 ? 300 : BLOCKS);
        }
        for (int i = 0; i < 200; i++) {
            final int slot = random.nextInt(workers);
            final int at = 1 + random.nextInt(299);
            final long name = random.nextLong();
            assertBounded(branch(slot, at, name) - 2L * Math.min(LIST, workers), 1);
            final long before = index.holders().steps();
            assertEquals(0, index.remove(slot, new long[] {name}, 1, CopyRule.PHYSICAL));
            assertBounded(index.holders().steps() - before, 1);
            assertEquals(1, index.tree().runs());
        }
    }

    @Test
    void aWorkerThatIsNewToARunInManySegmentsLooksAtItsOwnOnly() {
        store(0, 0, BLOCKS);
        for (int at = 1; at < BLOCKS; at++) {
            assertBounded(branch(0, at, random.nextLong()), 1);
        }
        assertEquals(2 * BLOCKS - 1, index.tree().runs());
        for (int slot = 1; slot < 50; slot++) {
            assertBounded(store(slot, 0, 1), 1);
        }
    }

    @Test
    void blocksBehindAHoleAreFoundInLaterSegments() {
        store(0, 0, BLOCKS);
        store(1, 0, BLOCKS);
        branch(0, 100, 5);
        branch(0, 200, 6);
        drop(1, 0, 100);
        final long[] names = names(1);
        assertEquals(BLOCKS - 100, index.heldBlocks(1));
        store(1, 0, 150);
        final OverlapScores found = new OverlapScores(SLOTS);
        index.match(prompt, BLOCKS, found);
        assertEquals(BLOCKS, found.depth(1));
        assertEquals(0, index.remove(1, names, BLOCKS, CopyRule.LAST_COPY));
        assertEquals(0, index.heldBlocks(1));
    }
}
