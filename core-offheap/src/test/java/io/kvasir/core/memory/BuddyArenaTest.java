package io.kvasir.core.memory;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.stream.Stream;

class BuddyArenaTest {
    private static final int OPERATIONS = 20_000;
    private static final int CHECK_EVERY = 500;

    @ParameterizedTest
    @CsvSource({"1, 0", "64, 0", "65, 1", "128, 1", "129, 2", "4096, 6", "4097, 7"})
    void anOrderIsTheSmallestWithRoom(long bytes, int order) {
        assertEquals(order, BuddyArena.orderFor(bytes));
    }

    @ParameterizedTest
    @ValueSource(longs = {-1, 0, 64, 127, (Integer.MAX_VALUE - 1L) * BuddyArena.LINE_LENGTH + 64})
    void sizesBeyondTheLimitsAreRefused(long bytes) {
        assertThrows(IllegalArgumentException.class, () -> new BuddyArena(bytes));
    }

    @ParameterizedTest
    @ValueSource(ints = {2, 3, 4, 5, 7, 8, 100, 1_000, 1_024, 1_025, 4_095})
    void allLinesButTheFirstAreHandedOutOnceAndMergeAgain(int lines) {
        try (BuddyArena arena = new BuddyArena((long) lines * BuddyArena.LINE_LENGTH + 63)) {
            final List<Integer> free = freeBlocks(arena);
            assertEquals(lines - 1, arena.capacityLines());
            final BitSet seen = new BitSet();
            for (int line = arena.allocate(0);
                    line != BuddyArena.NO_LINE;
                    line = arena.allocate(0)) {
                assertTrue(line > 0 && line < lines && !seen.get(line), () -> "lines " + seen);
                seen.set(line);
            }
            assertEquals(lines - 1, seen.cardinality());
            assertEquals(lines - 1, arena.usedLines());
            assertEquals(-1, arena.largestOrder(1));
            final List<Integer> taken = new ArrayList<>(seen.stream().boxed().toList());
            Collections.shuffle(taken, new Random(lines));
            taken.forEach(arena::free);
            assertEquals(free, freeBlocks(arena));
            assertEquals(0, arena.usedLines());
            BuddyArenaInvariants.check(arena);
        }
    }

    @Test
    void aBlockIsAlignedToItsLengthAndLargerOnesThanTheArenaAreRefused() {
        try (BuddyArena arena = new BuddyArena(64 << 10)) {
            for (int order = 0; order < 9; order++) {
                assertEquals(0, arena.allocate(order) & ((1 << order) - 1));
            }
            for (int order = 10; order <= BuddyArena.MAX_ORDER; order++) {
                assertEquals(BuddyArena.NO_LINE, arena.allocate(order));
            }
            BuddyArenaInvariants.check(arena);
        }
    }

    @Test
    void memoryIsWrittenFromItsStartOnOnlyAsBlocksAreHandedOut() {
        final long length = (long) BuddyArena.LINE_LENGTH << BuddyArena.MAX_ORDER;
        try (BuddyArena arena = new BuddyArena(2 * length + (length >> 1) + (length >> 3))) {
            int end = 1;
            for (int order : new int[] {3, 0, 7, 0, 2, 9}) {
                final int line = arena.allocate(order);
                end = Math.max(end, line + (1 << order));
                BuddyArenaInvariants.check(arena);
            }
            assertEquals(1 << 10, end, "the smallest space that holds these blocks");
            for (int line = end; line < arena.capacityLines(); line = 2 * line) {
                assertEquals(0, arena.memory().getLong(BuddyArena.offset(line)), "line " + line);
                assertEquals(0, arena.state(line), "line " + line);
            }
            assertEquals(BuddyArena.MAX_ORDER, arena.largestOrder(1));
            assertEquals(BuddyArena.MAX_ORDER - 1, arena.largestOrder(4));
        }
    }

    @Test
    void noBlockIsLargerThanTheLargestOrder() {
        final long length = (long) BuddyArena.LINE_LENGTH << BuddyArena.MAX_ORDER;
        try (BuddyArena arena = new BuddyArena(4 * length)) {
            final List<Integer> free = freeBlocks(arena);
            assertEquals(BuddyArena.NO_LINE, arena.firstFree(0), "touched");
            assertEquals(BuddyArena.MAX_ORDER, arena.largestOrder(3));
            BuddyArenaInvariants.check(arena);
            final int first = arena.allocate(BuddyArena.MAX_ORDER);
            assertEquals(BuddyArena.MAX_ORDER, arena.largestOrder(2));
            BuddyArenaInvariants.check(arena);
            final int second = arena.allocate(BuddyArena.MAX_ORDER);
            final int third = arena.allocate(BuddyArena.MAX_ORDER);
            assertNotEquals(BuddyArena.NO_LINE, third);
            assertEquals(BuddyArena.NO_LINE, arena.allocate(BuddyArena.MAX_ORDER));
            for (int line : new int[] {second, first, third}) {
                arena.free(line);
                BuddyArenaInvariants.check(arena);
            }
            assertEquals(free, freeBlocks(arena));
        }
    }

    /** A block that nothing fits into any more is followed by one that was never handed out. */
    @Test
    void smallBlocksComeFromLargestOnesWhenThereIsNoOther() {
        final long length = (long) BuddyArena.LINE_LENGTH << BuddyArena.MAX_ORDER;
        try (BuddyArena arena = new BuddyArena(3 * length)) {
            final int order = BuddyArena.MAX_ORDER - 2;
            final List<Integer> taken = new ArrayList<>();
            for (int line = arena.allocate(order); line != 0; line = arena.allocate(order)) {
                taken.add(line);
            }
            assertEquals(4 * 3 - 1, taken.size());
            BuddyArenaInvariants.check(arena);
            taken.forEach(arena::free);
            BuddyArenaInvariants.check(arena);
            assertEquals(BuddyArena.MAX_ORDER, arena.largestOrder(2));
        }
    }

    @Test
    void aFreedBlockIsTheNextOneOfItsOrder() {
        try (BuddyArena arena = new BuddyArena(64 << 10)) {
            final int first = arena.allocate(3);
            final int second = arena.allocate(3);
            arena.free(first);
            assertEquals(first, arena.allocate(3));
            assertNotEquals(first, second);
        }
    }

    /** Random operations beside a map of what is handed out and a bit for each line of it. */
    @ParameterizedTest
    @ValueSource(ints = {2, 50, 777, 5_000})
    void handsOutWhatAMapOfLinesSaysIsFree(int lines) {
        final Random random = new Random(Seeds.next("BuddyArenaTest " + lines));
        try (BuddyArena arena = new BuddyArena((long) lines * BuddyArena.LINE_LENGTH)) {
            final List<Integer> free = freeBlocks(arena);
            final Map<Integer, Integer> held = new TreeMap<>();
            final List<Integer> firsts = new ArrayList<>();
            final BitSet used = new BitSet();
            used.set(0);
            for (int i = 0; i < OPERATIONS; i++) {
                // fill up and empty in turns
                if (firsts.isEmpty() || random.nextInt(100) < (i / 2_000 % 2 == 0 ? 65 : 35)) {
                    allocate(arena, random.nextInt(8), lines, held, firsts, used);
                } else {
                    final int at = random.nextInt(firsts.size());
                    final int line = firsts.get(at);
                    final int order = held.get(line);
                    assertEquals(order, arena.order(line));
                    if (order > 0 && random.nextInt(3) == 0) {
                        final int left = random.nextInt(order + 1);
                        arena.shrink(line, left);
                        held.put(line, left);
                        used.clear(line + (1 << left), line + (1 << order));
                    } else {
                        arena.free(line);
                        held.remove(line);
                        firsts.set(at, firsts.getLast());
                        firsts.removeLast();
                        used.clear(line, line + (1 << order));
                    }
                }
                assertEquals(used.cardinality() - 1, arena.usedLines());
                if (i % CHECK_EVERY == 0) {
                    assertEquals(held, BuddyArenaInvariants.check(arena));
                }
            }
            firsts.forEach(arena::free);
            assertEquals(free, freeBlocks(arena));
        }
    }

    private static void allocate(
            BuddyArena arena,
            int order,
            int lines,
            Map<Integer, Integer> held,
            List<Integer> firsts,
            BitSet used) {
        final int line = arena.allocate(order);
        if (line == BuddyArena.NO_LINE) {
            assertTrue(!hasFree(used, order, lines), "refused though an aligned block is free");
            return;
        }
        final int end = line + (1 << order);
        final int next = used.nextSetBit(line);
        assertTrue(end <= lines && (next < 0 || next >= end), "handed out twice");
        assertEquals(0, line & ((1 << order) - 1));
        used.set(line, end);
        held.put(line, order);
        firsts.add(line);
    }

    private static boolean hasFree(BitSet used, int order, int lines) {
        final int length = 1 << order;
        for (int line = 0; line + length <= lines; line += length) {
            final int next = used.nextSetBit(line);
            if (next < 0 || next >= line + length) {
                return true;
            }
        }
        return false;
    }

    /** First lines of the free blocks with their orders, in order, handed out before or not. */
    private static List<Integer> freeBlocks(BuddyArena arena) {
        final Map<Integer, Integer> free = new TreeMap<>();
        for (int order = 0; order <= BuddyArena.MAX_ORDER; order++) {
            int line = arena.firstFree(order);
            while (line != BuddyArena.NO_LINE) {
                free.put(line, order);
                line = arena.memory().getInt(BuddyArena.offset(line));
            }
        }
        final int lines = arena.capacityLines() + 1;
        for (int line = 1; line < lines; line++) {
            if (arena.untouchedOrder(line) >= 0) {
                free.put(line, arena.untouchedOrder(line));
                line += (1 << arena.untouchedOrder(line)) - 1;
            }
        }
        return free.entrySet().stream().flatMap(e -> Stream.of(e.getKey(), e.getValue())).toList();
    }
}
