package io.kvasir.core.index;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.memory.ArenaBlocks;
import io.kvasir.core.memory.BuddyArena;
import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;

class PageTreeTest {
    private final BuddyArena arena = new BuddyArena(1 << 20);
    private final PageTree tree = new PageTree(arena);

    @AfterEach
    void close() {
        arena.close();
    }

    private static int number(int block) {
        return 3 * block + 1;
    }

    @ParameterizedTest(name = "{0} blocks")
    @ValueSource(ints = {1, 16, 17, 63, 64, 65, 4_095, 4_096, 4_097, 4_160, 9_000})
    void blocksAreThoseAddedAndNotRemoved(int blocks) {
        for (int i = 0; i < blocks; i++) {
            assertTrue(tree.add(number(i)));
            assertEquals(number(i), tree.get(i));
        }
        check(blocks);
        assertEquals(arena.usedLines(), lines());
        for (int i = blocks - 1; i >= 0; i--) {
            assertEquals(number(i), tree.removeLast());
            if (i % 61 == 0) {
                check(i);
                assertEquals(arena.usedLines(), lines());
            }
        }
        assertEquals(BuddyArena.NO_LINE, tree.root());
        assertEquals(0, arena.usedLines());
    }

    private void check(int blocks) {
        assertEquals(blocks, tree.size());
        for (int i = 0; i < blocks; i++) {
            assertEquals(number(i), tree.get(i));
        }
    }

    private long lines() {
        return tree.pages().mapToLong(page -> 1L << arena.order(page)).sum();
    }

    @Test
    void growsAndShrinksAtRandom() {
        final SplittableRandom random = new SplittableRandom(Seeds.next("PageTreeTest"));
        final List<Integer> model = new ArrayList<>();
        for (int turn = 0; turn < 200; turn++) {
            final int wanted = random.nextInt(1 << random.nextInt(1, 14));
            while (model.size() < wanted) {
                final int number = random.nextInt();
                assertTrue(tree.add(number));
                model.add(number);
            }
            while (model.size() > wanted) {
                assertEquals(model.removeLast(), tree.removeLast());
            }
            for (int i = 0; i < wanted; i++) {
                assertEquals(model.get(i), tree.get(i));
            }
            assertEquals(arena.usedLines(), lines());
        }
    }

    /** The most that one block needs: pages of two levels and a root above them. */
    @Test
    void withoutMemoryForAllOfAGrowthNothingChanges() {
        for (int i = 0; i < 4_096; i++) {
            assertTrue(tree.add(number(i)));
        }
        final List<Integer> others = ArenaBlocks.takeAll(arena, 2);
        ArenaBlocks.takeAll(arena, 0);
        for (int free = 0; free < 3; free++) {
            final long used = arena.usedLines();
            assertFalse(tree.add(1));
            check(4_096);
            assertEquals(used, arena.usedLines());
            arena.free(others.removeLast());
        }
        assertTrue(tree.add(number(4_096)));
        check(4_097);
    }

    @Test
    void aRestoredOneGoesOnWhereItWas() {
        for (int i = 0; i < 5_000; i++) {
            assertTrue(tree.add(number(i)));
        }
        final PageTree restored = new PageTree(arena);
        restored.restore(tree.root(), tree.size());
        for (int i = 4_999; i >= 0; i--) {
            assertEquals(number(i), restored.get(i));
            assertEquals(number(i), restored.removeLast());
        }
        assertEquals(0, arena.usedLines());
    }
}
