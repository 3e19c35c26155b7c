package io.kvasir.core.radix;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.kvasir.core.memory.ArenaBlocks;
import io.kvasir.core.memory.BuddyArena;
import io.kvasir.core.memory.BuddyArenaInvariants;
import io.kvasir.core.memory.StoreCounter;
import io.kvasir.testsupport.Seeds;
import io.kvasir.testsupport.Trials;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;

/** Children of one run, few and many, with hashes of all kinds. */
class RunChildrenTest {
    private static final long SECRET = 0x9E37_79B9_7F4A_7C15L;

    /** Entries that one change may move: a table of 48, and those of a node that is one again. */
    private static final int ALLOWED_MOVES = 128;

    /** The same where hashes are aimed at one link of each of 16 nodes, with the secret known. */
    private static final int ALLOWED_AIMED_MOVES = 16 * 64;

    /** Stores of one change: 64 entries each made, moved and shown, and 32 headers. */
    private static final int ALLOWED_STORES = 800;

    /** Links and entries that a search may read, many of a table's 64 among them. */
    private static final int ALLOWED_READS = 40;

    private final BuddyArena arena = new BuddyArena(64L << 20);
    private final RadixTree tree = new RadixTree(arena, 2, SECRET);
    private final RunChildren children = tree.runChildren();
    private int allowedMoves = ALLOWED_MOVES;

    @AfterEach
    void close() {
        BuddyArenaInvariants.check(arena);
        arena.close();
    }

    private int add(long hash) {
        final long before = children.moved();
        final int child = tree.addChild(tree.root(), new long[] {hash}, 0, 1);
        assertTrue(children.moved() - before <= allowedMoves);
        return child;
    }

    private void remove(int child) {
        final long before = children.moved();
        tree.remove(child);
        assertTrue(children.moved() - before <= allowedMoves);
    }

    /** A hash whose key begins with the bits given: an attacker who knows the secret makes them. */
    private static long aimed(long key) {
        long inverse = SECRET;
        for (int i = 0; i < 6; i++) {
            inverse *= 2 - SECRET * inverse;
        }
        final long mixed = key * inverse;
        return mixed ^ mixed >>> 32;
    }

    @ParameterizedTest(name = "up to {0} children, {1} bits of a key free")
    @CsvSource({"3, 64", "60, 64", "60, 6", "300, 64", "300, 20", "5000, 64", "5000, 16"})
    void childrenAreThoseOfAMap(int most, int bits) {
        final SplittableRandom random =
                new SplittableRandom(Seeds.next("RunChildrenTest " + most + "/" + bits));
        allowedMoves = bits == Long.SIZE ? ALLOWED_MOVES : ALLOWED_AIMED_MOVES;
        final Map<Long, Integer> model = new HashMap<>();
        final List<Long> hashes = new ArrayList<>();
        final long used = arena.usedLines();
        for (int i = 0; i < 8 * most + 200; i++) {
            final int wanted = (i / (2 * most) & 1) == 0 ? most : most / 8;
            if (model.size() < wanted) {
                final long hash = aimed(random.nextLong() >>> (64 - bits));
                if (!model.containsKey(hash)) {
                    model.put(hash, add(hash));
                    hashes.add(hash);
                }
            } else if (!hashes.isEmpty()) {
                final int at = random.nextInt(hashes.size());
                final long hash = hashes.get(at);
                hashes.set(at, hashes.getLast());
                hashes.removeLast();
                remove(model.remove(hash));
                assertEquals(RadixTree.NO_RUN, tree.child(tree.root(), hash));
            }
            if (i % Math.max(1, most / 16) == 0) {
                check(model, random);
            }
        }
        for (long hash : hashes) {
            remove(model.remove(hash));
        }
        check(model, random);
        assertTrue(arena.usedLines() - used <= 2L * (most + 64), "headers are all that is left");
    }

    private void check(Map<Long, Integer> model, SplittableRandom random) {
        assertEquals(model.size(), tree.childCount(tree.root()));
        model.forEach((hash, child) -> assertEquals(child, tree.child(tree.root(), hash)));
        assertEquals(RadixTree.NO_RUN, tree.child(tree.root(), random.nextLong() | 1L << 63));
        assertArrayEquals(
                model.values().stream().mapToInt(c -> c).sorted().toArray(),
                Arrays.stream(tree.children(tree.root())).sorted().toArray());
    }

    /** Fragmented memory has no block for a larger table: a node and small tables replace it. */
    @Test
    void manyChildrenNeedOnlySmallBlocks() {
        final SplittableRandom random =
                new SplittableRandom(Seeds.next("RunChildrenTest small blocks"));
        final List<Integer> others = leaveOnlyPairsOfLines();
        final Map<Long, Integer> model = new HashMap<>();
        for (int i = 0; i < 3_000; i++) {
            final long hash = random.nextLong();
            final int child = add(hash);
            assertNotEquals(RadixTree.NO_RUN, child);
            model.put(hash, child);
        }
        check(model, random);
        model.values().forEach(this::remove);
        model.clear();
        check(model, random);
        others.forEach(arena::free);
    }

    private List<Integer> leaveOnlyPairsOfLines() {
        for (int i = 0; i < 4_000; i++) {
            add(i); // headers and first blocks of the children, whose slabs are larger
        }
        for (int child : tree.children(tree.root())) {
            remove(child);
        }
        return ArenaBlocks.fragment(arena, 1);
    }

    @Tag("trials")
    @Test
    void noChangeStoresMoreThanAFewTablesHoweverManyChildrenThereAre() {
        assumeTrue(StoreCounter.isPossible(), "stores can not be seen");
        final SplittableRandom random = new SplittableRandom(3);
        final List<Integer> all = new ArrayList<>();
        try (StoreCounter counter = new StoreCounter(arena.memory())) {
            for (int i = 0; i < Trials.of(20_000, 200_000); i++) {
                all.add(add(random.nextLong()));
                final long stores = counter.takeStores();
                assertTrue(stores <= ALLOWED_STORES, () -> "stores: " + stores);
            }
            for (int child : all) {
                remove(child);
                final long stores = counter.takeStores();
                assertTrue(stores <= ALLOWED_STORES, () -> "stores: " + stores);
            }
        }
        assertEquals(0, tree.childCount(tree.root()));
    }

    @ParameterizedTest(name = "secret {0}")
    @ValueSource(longs = {1, 0x1234_5678_9ABC_DEFL, -77})
    void hashesMadeForOneLinkOfAnotherSecretAreHashesAsAnyOther(long secret) {
        try (BuddyArena other = new BuddyArena(32L << 20)) {
            final RadixTree aimedAt = new RadixTree(other, 2, secret * 0xD6E8_FEB8_6659_FD93L);
            final SplittableRandom random = new SplittableRandom(5);
            for (int i = 0; i < 30_000; i++) {
                final long hash = aimed(random.nextLong() >>> 17);
                assertNotEquals(
                        RadixTree.NO_RUN,
                        aimedAt.addChild(aimedAt.root(), new long[] {hash}, 0, 1));
            }
            int most = 0;
            for (int i = 0; i < 30_000; i++) {
                final long hash = i % 2 == 0 ? random.nextLong() : aimed(random.nextLong() >>> 17);
                most = Math.max(most, aimedAt.runChildren().reads(aimedAt.root(), hash));
            }
            assertTrue(most <= ALLOWED_READS, "reads of the longest search: " + most);
        }
    }

    @Test
    void hashesMadeForTheSecretItselfCostItsBitsAtMost() {
        allowedMoves = ALLOWED_AIMED_MOVES;
        for (int i = 0; i < 4_000; i++) {
            add(aimed(i));
        }
        int most = 0;
        for (int i = 0; i < 8_000; i++) {
            most = Math.max(most, children.reads(tree.root(), aimed(i)));
        }
        assertTrue(most <= 16 + 64, "reads of the longest search: " + most);
    }

    @Test
    void aReaderFindsAllOfManyChildren() {
        final SplittableRandom random = new SplittableRandom(9);
        final long[] hashes = random.longs(20_000).toArray();
        for (long hash : hashes) {
            tree.addHolder(add(hash), 1, 1, 0);
        }
        final OverlapScores found = new OverlapScores(2);
        for (long hash : hashes) {
            assertEquals(1, tree.match(new long[] {hash}, 1, found));
        }
        assertEquals(0, tree.match(new long[] {1}, 1, found));
    }

    @Test
    void whatDoesNotFitChangesNothing() {
        try (BuddyArena small = new BuddyArena(48 << 10)) {
            final RadixTree tight = new RadixTree(small, 2, SECRET);
            final SplittableRandom random = new SplittableRandom(4);
            final Map<Long, Integer> held = new HashMap<>();
            for (int i = 0; i < 5_000; i++) {
                final long hash = random.nextLong();
                final int child = tight.addChild(tight.root(), new long[] {hash}, 0, 1);
                if (child != RadixTree.NO_RUN) {
                    held.put(hash, child);
                } else if (i % 7 == 0) {
                    final long any = held.keySet().iterator().next();
                    tight.remove(held.remove(any));
                }
                BuddyArenaInvariants.check(small);
                assertEquals(held.size(), tight.childCount(tight.root()));
            }
            held.forEach((hash, child) -> assertEquals(child, tight.child(tight.root(), hash)));
            held.values().forEach(tight::remove);
            assertEquals(0, tight.childCount(tight.root()));
        }
    }
}
