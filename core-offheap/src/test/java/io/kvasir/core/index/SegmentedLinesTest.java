package io.kvasir.core.index;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.memory.BuddyArena;
import io.kvasir.core.memory.KeptWords;
import io.kvasir.core.memory.OffHeap;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.util.ArrayList;
import java.util.List;

class SegmentedLinesTest {
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
            assertTrue(lines.grow());
            for (; written < lines.lines(); written++) {
                arena.memory().putLong(lines.offset(written), written);
            }
            checkLast(written);
        }
        checkFirst(written);
        for (int needed = written; needed > 0; needed -= 17) {
            lines.shrinkTo(needed);
            assertTrue(lines.lines() >= needed);
            checkLast(lines.lines());
        }
        lines.shrinkTo(1);
        assertEquals(1, lines.lines());
        lines.release();
        assertEquals(0, arena.usedLines());
    }

    private void checkFirst(int count) {
        for (int line = 0; line < count; line++) {
            check(line);
        }
    }

    /** The first line, the last ones, and one of each size that a directory may end at. */
    private void checkLast(int count) {
        for (int back = 1; back <= count; back *= 4) {
            check(count - back);
        }
        check(0);
    }

    private void check(int line) {
        assertEquals(line, arena.memory().getLong(lines.offset(line)));
    }

    @Test
    void fragmentedMemoryHasRoomForAnyNumberOfLines() {
        final List<Integer> others = splitUp();
        int written = 0;
        while (lines.lines() < MANY) {
            assertTrue(lines.grow());
            for (; written < lines.lines(); written++) {
                arena.memory().putLong(lines.offset(written), written);
            }
        }
        checkFirst(MANY);
        others.forEach(arena::free); // what is there stays where it is
        checkFirst(MANY);
        lines.shrinkTo(1_000);
        checkFirst(lines.lines());
        lines.shrinkTo(1);
        assertEquals(1, lines.directory().count());
        lines.release();
        assertEquals(0, arena.usedLines());
    }

    /** Leaves only blocks as large as a segment free; returns those between them. */
    private List<Integer> splitUp() {
        final List<Integer> kept = new ArrayList<>();
        final List<Integer> free = new ArrayList<>();
        for (int line; (line = arena.allocate(2)) != BuddyArena.NO_LINE; ) {
            (line / SegmentedLines.SEGMENT_LINES % 2 == 0 ? free : kept).add(line);
        }
        free.forEach(arena::free);
        assertEquals(2, arena.largestOrder(1));
        return kept;
    }

    @ParameterizedTest(name = "fragmented: {0}")
    @ValueSource(booleans = {false, true})
    void oneThatIsKeptGoesOnWhereItWas(boolean fragmented) {
        final List<Integer> others = fragmented ? splitUp() : List.of();
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
        final List<Integer> others = new ArrayList<>();
        for (int line; (line = arena.allocate(2)) != BuddyArena.NO_LINE; ) {
            others.add(line);
        }
        while (arena.allocate(0) != BuddyArena.NO_LINE) {}
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
