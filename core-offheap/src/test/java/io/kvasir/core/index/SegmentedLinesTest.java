package io.kvasir.core.index;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.memory.ArenaBlocks;
import io.kvasir.core.memory.BuddyArena;
import io.kvasir.core.memory.KeptWords;
import io.kvasir.core.memory.OffHeap;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.util.List;

class SegmentedLinesTest {
    private static final int FEW = 40 * SegmentedLines.SEGMENT_LINES;
    private static final int MANY = 20_000;

    private final BuddyArena arena = new BuddyArena(4 << 20);
    private final SegmentedLines lines = new SegmentedLines(arena);

    @AfterEach
    void close() {
        arena.close();
    }

    @Test
    void linesKeepWhatTheyHaveWhileOthersAreAddedAndTakenAway() {
        int written = 0;
        while (lines.lines() < MANY) {
            written = growAndWrite();
            check(written);
        }
        checkAll(written);
        for (int needed = written; needed > 0; needed -= 17) {
            lines.shrinkTo(needed);
            assertTrue(lines.lines() >= needed);
            check(lines.lines());
        }
        lines.shrinkTo(1);
        assertEquals(1, lines.lines());
        lines.release();
        assertEquals(0, arena.usedLines());
    }

    private int growAndWrite() {
        final int before = lines.lines();
        assertTrue(lines.grow());
        for (int line = before; line < lines.lines(); line++) {
            arena.memory().putLong(lines.offset(line), line);
        }
        return lines.lines();
    }

    private void checkAll(int count) {
        for (int line = 0; line < count; line++) {
            checkLine(line);
        }
    }

    /** All of a few lines; of many the first one, the last ones, and one of each size before. */
    private void check(int count) {
        if (count <= FEW) {
            checkAll(count);
            return;
        }
        for (int back = 1; back <= count; back *= 4) {
            checkLine(count - back);
        }
        checkLine(0);
    }

    private void checkLine(int line) {
        assertEquals(line, arena.memory().getLong(lines.offset(line)));
    }

    @Test
    void fragmentedMemoryHasRoomForAnyNumberOfLines() {
        final List<Integer> others = ArenaBlocks.fragment(arena, 2);
        while (lines.lines() < MANY) {
            growAndWrite();
        }
        checkAll(MANY);
        others.forEach(arena::free); // what is there stays where it is
        checkAll(MANY);
        lines.shrinkTo(1_000);
        checkAll(lines.lines());
        lines.shrinkTo(1);
        assertEquals(1, lines.directory().count());
        lines.release();
        assertEquals(0, arena.usedLines());
    }

    @ParameterizedTest(name = "fragmented: {0}")
    @ValueSource(booleans = {false, true})
    void oneThatIsKeptGoesOnWhereItWas(boolean fragmented) {
        final List<Integer> others = fragmented ? ArenaBlocks.fragment(arena, 2) : List.of();
        while (lines.lines() < 1_000) {
            assertTrue(lines.grow());
        }
        for (int line = 0; line < lines.lines(); line++) {
            arena.memory().putLong(lines.offset(line), line);
        }
        try (OffHeap words = OffHeap.allocate(64)) {
            lines.keep(new KeptWords(words).saveTo(0));
            final SegmentedLines restored = new SegmentedLines(arena);
            restored.keep(new KeptWords(words).restoreFrom(0));
            assertEquals(lines.lines(), restored.lines());
            for (int line = 0; line < lines.lines(); line++) {
                assertEquals(lines.offset(line), restored.offset(line));
            }
            restored.release();
            others.forEach(arena::free);
            assertEquals(0, arena.usedLines());
        }
    }

    @Test
    void aLineAndItsDirectoryAreAllThatTheSmallestTakes() {
        assertEquals(0, arena.usedLines());
        assertTrue(lines.grow());
        assertEquals(1, lines.lines());
        assertEquals(2, arena.usedLines());
    }

    @Test
    void withoutMemoryItStaysAsItIs() {
        while (lines.grow()) {}
        final int most = lines.lines();
        final long used = arena.usedLines();
        assertFalse(lines.grow());
        assertEquals(most, lines.lines());
        assertEquals(used, arena.usedLines());
    }

    @Test
    void withoutMemoryForAllOfAGrowthNothingChanges() {
        while (lines.lines() < 256) {
            assertTrue(lines.grow());
        }
        final List<Integer> others = ArenaBlocks.takeAll(arena, 2);
        ArenaBlocks.takeAll(arena, 0);
        for (int free = 0; free < 2; free++) { // a segment, and a page that leads to it
            final long used = arena.usedLines();
            assertFalse(lines.grow());
            assertEquals(256, lines.lines());
            assertEquals(used, arena.usedLines());
            arena.free(others.removeLast());
        }
        assertTrue(lines.grow());
        assertEquals(260, lines.lines());
        assertEquals(2, lines.directory().count());
    }

    @Test
    void releasingTwiceIsHarmless() {
        assertTrue(lines.grow());
        lines.release();
        lines.release();
        assertEquals(0, arena.usedLines());
    }
}
