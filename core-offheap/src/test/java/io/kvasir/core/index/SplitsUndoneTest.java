package io.kvasir.core.index;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.memory.BuddyArena;
import io.kvasir.core.radix.OverlapScores;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.util.Arrays;

/** Branches of a prompt that stays come and go; what they have split is as it was before. */
class SplitsUndoneTest {
    private static final int SLOTS = 100;
    private static final int BLOCKS = 1280;

    private final PrefixIndex index =
            new PrefixIndex(new PrefixIndexConfig(SLOTS, 1 << 16, 1 << 20));
    private final long[] prompt = new long[BLOCKS];

    SplitsUndoneTest() {
        Arrays.setAll(prompt, i -> (i + 1) * 0x9E37_79B9_7F4A_7C15L);
    }

    @AfterEach
    void everythingAgreesAfterwards() {
        IndexInvariants.check(index);
        index.close();
    }

    private void store(int slot, int blocks) {
        final long[] names = names(slot);
        assertEquals(StoreResult.STORED, index.store(slot, true, 0, names, prompt, blocks, true));
    }

    /** Stores one block that is not the prompt's behind its first blocks. */
    private void branch(int slot, int blocks) {
        final long name = -names(slot)[blocks - 1];
        assertEquals(
                StoreResult.STORED,
                index.store(
                        slot,
                        false,
                        names(slot)[blocks - 1],
                        new long[] {name},
                        new long[] {-prompt[blocks]},
                        1,
                        true));
    }

    private void removeBranch(int slot, int blocks) {
        final long[] name = {-names(slot)[blocks - 1]};
        assertEquals(0, index.remove(slot, name, 1, CopyRule.LAST_COPY));
    }

    private void drop(int slot, int from, int to) {
        final long[] names = names(slot);
        final long[] gone = new long[to - from];
        Arrays.setAll(gone, i -> names[to - 1 - i]);
        assertEquals(0, index.remove(slot, gone, gone.length, CopyRule.LAST_COPY));
    }

    private long[] names(int slot) {
        final long[] names = prompt.clone();
        Arrays.setAll(names, i -> (prompt[i] >>> 1) * 3 + slot);
        return names;
    }

    @ParameterizedTest(name = "a branch every {0} blocks, {1} workers hold the prompt")
    @CsvSource({"64, 1", "16, 1", "4, 1", "1, 1", "16, 5", "16, 12", "4, 90"})
    void runsAndMemoryAreWhatTheyWereWhenTheBranchesHaveGone(int distance, int holders) {
        for (int slot = 0; slot < holders; slot++) {
            store(slot, BLOCKS);
        }
        final long runs = index.tree().runs();
        long used = 0;
        for (int round = 0; round < 3; round++) {
            for (int at = distance; at < BLOCKS; at += distance) {
                branch(at % holders, at);
            }
            assertTrue(index.tree().runs() >= runs + (BLOCKS - 1) / distance);
            for (int at = distance; at < BLOCKS; at += distance) {
                removeBranch(at % holders, at);
            }
            assertEquals(runs, index.tree().runs(), "runs");
            if (round == 0) {
                used = index.usedBytes(); // with the headers of runs, which stay headers
            }
            assertEquals(used, index.usedBytes(), "bytes");
            final OverlapScores found = new OverlapScores(SLOTS);
            assertEquals(BLOCKS, index.match(prompt, BLOCKS, found));
            assertEquals(holders, found.matchedSlots());
        }
    }

    @Test
    void aHolderOfTheUpperPartAndOneOfTheLowerPartAreInTheJoinedRun() {
        final int run = 512;
        for (int slot = 0; slot < 20; slot++) {
            store(slot, run);
        }
        store(30, 200);
        store(31, 300);
        drop(31, 0, 100);
        store(32, 200);
        branch(32, 200);
        assertEquals(3, index.tree().runs());
        removeBranch(32, 200);
        assertEquals(1, index.tree().runs());
        IndexInvariants.check(index);
        final OverlapScores found = new OverlapScores(SLOTS);
        index.match(prompt, run, found);
        assertEquals(run, found.depth(0));
        assertEquals(200, found.depth(30));
        assertEquals(0, found.depth(31));
        assertEquals(200, found.depth(32));
        store(31, 100);
        index.match(prompt, run, found);
        assertEquals(300, found.depth(31));
    }

    @Test
    void aListThatBecomesAMapInTheJoinKeepsWhatEachHolds() {
        for (int slot = 0; slot < 15; slot++) {
            store(slot, slot == 3 ? 300 : 512);
        }
        store(30, 400);
        drop(30, 0, 200);
        branch(0, 200);
        store(31, 200);
        branch(31, 200);
        removeBranch(31, 200);
        removeBranch(0, 200);
        assertEquals(1, index.tree().runs());
        assertTrue(index.tree().hasHolderMap(index.tree().child(index.tree().root(), prompt[0])));
        final OverlapScores found = new OverlapScores(SLOTS);
        index.match(prompt, 512, found);
        assertEquals(300, found.depth(3));
        assertEquals(512, found.depth(4));
        assertEquals(200, found.depth(31));
        assertEquals(0, found.depth(30));
    }

    @Test
    void anArrayThatFewHoldAgainHasNoCounts() {
        for (int slot = 0; slot < 12; slot++) {
            store(slot, 512);
        }
        final int run = index.tree().child(index.tree().root(), prompt[0]);
        assertNotEquals(BuddyArena.NO_LINE, index.tree().holderLine(run));
        for (int slot = 1; slot < 12; slot++) {
            drop(slot, 0, 512);
        }
        assertEquals(BuddyArena.NO_LINE, index.tree().holderLine(run));
    }

    @Test
    void anArrayThatBecomesOneRunAgainHasNoCountsWhereFewAreLeft() {
        for (int slot = 0; slot < 12; slot++) {
            store(slot, 512);
        }
        branch(0, 200);
        for (int slot = 1; slot < 12; slot++) {
            drop(slot, 0, 512);
        }
        final int run = index.tree().child(index.tree().root(), prompt[0]);
        assertNotEquals(BuddyArena.NO_LINE, index.tree().holderLine(run), "two runs");
        removeBranch(0, 200);
        assertEquals(1, index.tree().runs());
        assertEquals(BuddyArena.NO_LINE, index.tree().holderLine(run));
    }

    /** Not joined while too many hold the two parts, and then by what happens to the lower one. */
    @Test
    void aPartIsJoinedWithTheOneAboveWhenItsHoldersHaveBecomeFew() {
        for (int slot = 10; slot < 14; slot++) {
            store(slot, 512);
        }
        store(0, 200);
        branch(0, 200);
        for (int slot = 10; slot < 14; slot++) {
            drop(slot, 0, 200);
        }
        for (int slot = 1; slot < 6; slot++) {
            store(slot, 200);
        }
        removeBranch(0, 200);
        assertEquals(2, index.tree().runs());
        for (int slot = 10; slot < 13; slot++) {
            drop(slot, 200, 512);
        }
        assertEquals(2, index.tree().runs(), "until blocks of the lower part go");
        drop(13, 511, 512);
        assertEquals(1, index.tree().runs());
    }

    @Test
    void aRefusedStoreLeavesNoSplit() {
        try (PrefixIndex small =
                new PrefixIndex(
                        new PrefixIndexConfig(4, 1 << 10, 1 << 10).withBudgetBytes(64 << 10))) {
            small.store(0, true, 0, names(0), prompt, 64, true);
            final long[] other = prompt.clone();
            other[32] = 7;
            final long runs = small.tree().runs();
            final int lines = takeAllBut(small, 2);
            assertEquals(StoreResult.CAPACITY, small.store(1, true, 0, names(1), other, 500, true));
            assertEquals(runs, small.tree().runs());
            assertTrue(lines > 0);
        }
    }

    private static int takeAllBut(PrefixIndex small, int lines) {
        final int[] kept = new int[lines];
        Arrays.setAll(kept, i -> small.arena().allocate(0));
        int taken = 0;
        while (small.arena().allocate(0) != 0) {
            taken++;
        }
        Arrays.stream(kept).forEach(small.arena()::free);
        return taken;
    }
}
