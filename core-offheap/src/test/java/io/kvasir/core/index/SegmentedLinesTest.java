package io.kvasir.core.index;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.memory.BuddyArena;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class SegmentedLinesTest {
    private final BuddyArena arena = new BuddyArena(1 << 20);
    private final SegmentedLines lines = new SegmentedLines(arena);

    @AfterEach
    void close() {
        arena.close();
    }

    @Test
    void linesKeepWhatTheyHaveWhileOthersAreAddedAndTakenAway() {
        int written = 0;
        while (lines.lines() < 40 * SegmentedLines.SEGMENT_LINES) {
            assertTrue(lines.grow());
            for (; written < lines.lines(); written++) {
                arena.memory().putLong(lines.offset(written), written);
            }
            checkFirst(written);
        }
        for (int needed = written; needed > 0; needed -= 17) {
            lines.shrinkTo(needed);
            assertTrue(lines.lines() >= needed);
            checkFirst(lines.lines());
        }
        lines.shrinkTo(1);
        assertEquals(1, lines.lines());
        lines.release();
        assertEquals(0, arena.usedLines());
    }

    private void checkFirst(int count) {
        for (int line = 0; line < count; line++) {
            assertEquals(line, arena.memory().getLong(lines.offset(line)));
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
    void releasingTwiceIsHarmless() {
        assertTrue(lines.grow());
        lines.release();
        lines.release();
        assertEquals(0, arena.usedLines());
    }
}
