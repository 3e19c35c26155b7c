package io.kvasir.core.memory;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Map;
import java.util.NavigableMap;
import java.util.TreeMap;

/**
 * Looks whether an arena agrees with itself. On the arena's writer thread, or while it is quiet.
 */
public final class BuddyArenaInvariants {
    private static final int USED = 0x40;
    private static final int FREE = 0x80;
    private static final int ORDER = 0x3F;

    private BuddyArenaInvariants() {}

    /**
     * Checks that blocks tile the arena, that every free one hangs in its list once, that no two
     * free ones could be one, and that the lines in use are counted.
     *
     * @return order of each block in use, by first line
     */
    public static NavigableMap<Integer, Integer> check(BuddyArena arena) {
        final NavigableMap<Integer, Integer> used = new TreeMap<>();
        final Map<Integer, Integer> free = new TreeMap<>();
        final int lines = arena.capacityLines() + 1;
        long usedLines = 0;
        final Map<Integer, Integer> untouched = new TreeMap<>();
        int line = 1;
        while (line < lines) {
            final int at = line;
            final int never = arena.untouchedOrder(line);
            if (never >= 0) {
                assertEquals(0, arena.state(line), "state of a block never handed out");
                untouched.put(line, never);
                line += 1 << never;
                continue;
            }
            final int state = arena.state(line);
            final int order = state & ORDER;
            final int length = 1 << order;
            assertTrue(
                    (state & ~ORDER) == USED || (state & ~ORDER) == FREE,
                    () -> "no block begins behind a block: line=" + at + ", state=" + state);
            assertEquals(0, line & (length - 1), () -> "alignment of line " + at);
            assertTrue(line + length <= lines, () -> "block beyond the end: line=" + at);
            for (int inside = line + 1; inside < line + length; inside++) {
                final int found = inside;
                assertEquals(0, arena.state(found), () -> "block inside a block: line=" + found);
            }
            if ((state & USED) != 0) {
                used.put(line, order);
                usedLines += length;
            } else {
                free.put(line, order);
            }
            line += length;
        }
        assertEquals(usedLines, arena.usedLines());
        free.forEach(
                (first, order) -> {
                    final int buddy = first ^ (1 << order);
                    assertTrue(
                            order == BuddyArena.MAX_ORDER || !order.equals(free.get(buddy)),
                            () -> "free neighbours are not one block: line=" + first);
                });
        checkLists(arena, free, untouched);
        return used;
    }

    private static void checkLists(
            BuddyArena arena, Map<Integer, Integer> free, Map<Integer, Integer> untouched) {
        int listed = 0;
        for (int order = 0; order <= BuddyArena.MAX_ORDER; order++) {
            int previous = BuddyArena.NO_LINE;
            int block = arena.firstFree(order);
            while (block != BuddyArena.NO_LINE) {
                assertEquals(order, free.get(block), "in the list of free blocks: line=" + block);
                final long at = BuddyArena.offset(block);
                assertEquals(previous, arena.memory().getInt(at + Integer.BYTES));
                listed++;
                previous = block;
                block = arena.memory().getInt(at);
            }
        }
        assertEquals(free.size(), listed, "free blocks in lists");
        for (int blocks : new int[] {1, 3}) {
            int order = BuddyArena.MAX_ORDER;
            while (order >= 0 && available(free, order) + available(untouched, order) < blocks) {
                order--;
            }
            assertEquals(order, arena.largestOrder(blocks));
        }
        for (int order = 0; order <= BuddyArena.MAX_ORDER; order++) {
            assertEquals(order <= arena.largestOrder(1), arena.hasFree(order));
        }
    }

    private static long available(Map<Integer, Integer> free, int order) {
        return free.values().stream()
                .filter(o -> o >= order)
                .mapToLong(o -> 1L << (o - order))
                .sum();
    }
}
