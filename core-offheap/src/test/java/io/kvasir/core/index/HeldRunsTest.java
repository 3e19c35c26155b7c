package io.kvasir.core.index;

import static io.kvasir.core.index.HeldRuns.NO_HELD_RUN;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.memory.ArenaBlocks;
import io.kvasir.core.memory.BuddyArena;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

import java.util.ArrayList;
import java.util.List;

/** Held runs at the end of the memory, and what memory they give back. */
class HeldRunsTest {
    private final BuddyArena arena = new BuddyArena(64 << 10);
    private final HeldRuns held = new HeldRuns(arena);
    private final List<Integer> taken = new ArrayList<>();

    @AfterEach
    void close() {
        arena.close();
    }

    private void takeAllMemory() {
        taken.addAll(ArenaBlocks.takeAll(arena, 0));
    }

    private void hold(int heldRun, int from, int count) {
        assertTrue(held.prepareBits(heldRun, from));
        assertTrue(held.putNames(heldRun, from, new long[count], 0, count));
        held.hold(heldRun, from, count);
    }

    private int heldRun(int count) {
        final int heldRun = held.allocate(0, NO_HELD_RUN);
        hold(heldRun, 0, count);
        return heldRun;
    }

    @Test
    void theFirstThatFindsNoMemoryLeavesNone() {
        takeAllMemory();
        for (int lines = 0; lines < 3; lines++) { // it needs three
            final long before = arena.usedLines();
            assertEquals(NO_HELD_RUN, held.allocate(0, NO_HELD_RUN));
            assertEquals(before, arena.usedLines(), "with " + lines + " lines");
            arena.free(taken.removeLast());
        }
        held.free(held.allocate(0, NO_HELD_RUN));
        assertEquals(taken.size(), arena.usedLines());
    }

    @Test
    void whatIsAtAnEndIsLetGoOfWithoutMemoryAndWhatIsBetweenIsNot() {
        final int heldRun = heldRun(10);
        takeAllMemory();
        assertFalse(held.drop(heldRun, 5));
        assertEquals(10, held.held(heldRun));
        assertTrue(held.drop(heldRun, 0));
        assertTrue(held.drop(heldRun, 9));
        assertEquals(1, held.low(heldRun));
        assertEquals(9, held.high(heldRun));
        assertEquals(8, held.held(heldRun));
        assertTrue(held.isSolid(heldRun));
    }

    @Test
    void anEmptyOneBeginsAnywhereWithoutBits() {
        final int heldRun = held.allocate(0, NO_HELD_RUN);
        takeAllMemory();
        assertTrue(held.prepareBits(heldRun, 70));
        assertTrue(held.isSolid(heldRun));
    }

    @Test
    void namesAtTheEndGiveTheirMemoryBackWithTheirBlocks() {
        final int heldRun = heldRun(64);
        final long before = arena.usedLines();
        held.dropLast(heldRun, 56); // 8 names are one line
        assertEquals(before - 7, arena.usedLines());
    }

    @Test
    void soDoThoseOfAHeldRunWithGaps() {
        final int heldRun = heldRun(64);
        final long before = arena.usedLines();
        assertTrue(held.drop(heldRun, 3));
        assertEquals(before + 1, arena.usedLines(), "bits");
        for (int block = 63; block >= 8; block--) {
            assertTrue(held.drop(heldRun, block));
        }
        assertEquals(before + 1 - 7, arena.usedLines());
        assertTrue(held.drop(heldRun, 0));
        assertTrue(held.drop(heldRun, 1));
        assertTrue(held.drop(heldRun, 2)); // the gap is at the beginning now: no bits any more
        assertTrue(held.isSolid(heldRun));
        assertEquals(before - 7, arena.usedLines());
    }

    @Test
    void aGapThatBeginsWithTheLastBitOfAWordIsOne() {
        final int heldRun = heldRun(63);
        assertTrue(held.drop(heldRun, 10));
        hold(heldRun, 70, 1);
        assertFalse(held.holds(heldRun, 63));
        assertEquals(70, held.next(heldRun, 63, 71, true));
        assertEquals(63, held.held(heldRun));
    }
}
