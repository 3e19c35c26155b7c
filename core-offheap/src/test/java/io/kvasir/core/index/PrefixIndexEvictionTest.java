package io.kvasir.core.index;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.radix.OverlapScores;
import io.kvasir.testsupport.NaivePrefixIndex;
import io.kvasir.testsupport.NaivePrefixIndex.Held;
import io.kvasir.testsupport.Seeds;
import io.kvasir.testsupport.Trials;

import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.TreeMap;
import java.util.stream.LongStream;

/** What an index does at its limits of blocks, held blocks and bytes. */
class PrefixIndexEvictionTest {
    private static final int OPERATIONS = Trials.of(100, 2_000);
    private static final long NO_LIMIT = 1 << 20;
    private static final int SELDOM = 60;
    private static final int OFTEN = 3;

    private final SplittableRandom fresh = new SplittableRandom(5);

    @Tag("trials")
    @ParameterizedTest(name = "{0} {1} slots, {2} blocks, {3} held blocks, {4} KiB")
    @CsvSource({
        "EVICT, 3, 60, 1048576, 4096",
        "EVICT, 3, 1048576, 90, 4096",
        "EVICT, 1, 1048576, 40, 4096",
        "EVICT, 70, 300, 900, 4096",
        "EVICT, 3, 1048576, 1048576, 64",
        "EVICT, 20, 1048576, 1048576, 128",
        "EVICT, 2, 4, 5, 4096",
        "REFUSE, 3, 60, 1048576, 4096",
        "REFUSE, 3, 1048576, 90, 4096",
        "REFUSE, 3, 1048576, 1048576, 64"
    })
    void holdsWhatTheModelSaysButWhatItWasEvicted(
            CapacityRule rule, int slots, long blocks, long held, long kib) {
        tell(OPERATIONS, rule, slots, blocks, held, kib, SELDOM);
    }

    /** Releases for want of memory what is behind a block, and stores go on from there. */
    @Tag("integration") // takes seconds
    @Test
    void storesMayNameAnewWhatIsHeldWhereMemoryIsShort() {
        for (int trial = 0; trial < Trials.of(8, 30); trial++) {
            tell(1_500, CapacityRule.REFUSE, 3, NO_LIMIT, NO_LIMIT, 64, OFTEN);
            tell(1_500, CapacityRule.EVICT, 3, NO_LIMIT, NO_LIMIT, 64, OFTEN);
        }
    }

    private static void tell(
            int operations,
            CapacityRule rule,
            int slots,
            long blocks,
            long held,
            long kib,
            int renames) {
        final long seed = Seeds.next("PrefixIndexEvictionTest " + rule + "/" + slots + "/" + kib);
        final PrefixIndexConfig config =
                new PrefixIndexConfig(slots, blocks, held, kib << 10, rule);
        try (PrefixIndex index = new PrefixIndex(config)) {
            final Story story = new Story(new Random(seed), index, renames);
            for (int i = 0; i < operations || (story.beyond == 0 && i < 5_000); i++) {
                story.step();
                if (i % 5 == 0) {
                    IndexInvariants.check(index);
                    story.compare();
                }
            }
            IndexInvariants.check(index);
            story.compare();
            assertTrue(story.beyond > 0, "no store was beyond the limit");
        }
    }

    /**
     * A store behind a parent that names a block before that parent anew: without memory for the
     * hole that the old name leaves, everything after it is given up, the parent too.
     */
    @Test
    void aStoreWhoseParentIsGivenUpForItsOwnNamesIsRefused() {
        int orphaned = 0;
        for (int renamed = 0; renamed < 49; renamed++) {
            orphaned += isOrphaned(renamed) ? 1 : 0;
        }
        assertTrue(orphaned > 0, "there was memory for every hole");
    }

    /** Whether the store lost its parent: what was held from the renamed block on is given up. */
    private boolean isOrphaned(int renamed) {
        final PrefixIndexConfig config =
                new PrefixIndexConfig(3, NO_LIMIT, NO_LIMIT, 64 << 10, CapacityRule.REFUSE);
        try (PrefixIndex index = new PrefixIndex(config)) {
            final long[] chain = fresh.longs(60).toArray();
            index.store(1, true, 0, names(1, 60), chain, 60, true);
            index.store(0, true, 0, names(100, 50), chain, 50, true);
            fill(index, 2);
            final long[] next = {chain[50]};
            final StoreResult result =
                    index.store(0, false, 149, names(100 + renamed, 1), next, 1, true);
            IndexInvariants.check(index);
            final long held = index.heldBlocks(0);
            assertEquals(result == StoreResult.STORED, held == 50, result + " with " + held);
            assertTrue(held == 50 || held == 49 || held == renamed, result + " with " + held);
            assertEquals(50 - held, index.missingBlocks(0));
            return held == renamed;
        }
    }

    private static long[] names(long first, int count) {
        return LongStream.range(first, first + count).toArray();
    }

    /** Stores chains of other blocks until not one of a single block fits. */
    private void fill(PrefixIndex index, int slot) {
        long name = 1_000;
        for (int length = 64; length > 0; length /= 2) {
            StoreResult result = StoreResult.STORED;
            while (result == StoreResult.STORED) {
                result =
                        index.store(
                                slot,
                                true,
                                0,
                                names(name, length),
                                fresh.longs(length).toArray(),
                                length,
                                true);
                name += length;
            }
        }
    }

    /** An index and a model that refuses nothing. */
    private static final class Story implements EvictionListener {
        private final Random random;
        private final int renames;
        private final PrefixIndex index;
        private final NaivePrefixIndex naive = new NaivePrefixIndex(NO_LIMIT, NO_LIMIT);
        private final int slots;
        private final OverlapScores scores;
        private long nextName = 1;
        private long evicted;
        private long beyond;

        /**
         * @param renames one of so many engine hashes is one that the slot holds
         */
        Story(Random random, PrefixIndex index, int renames) {
            this.renames = renames;
            this.random = random;
            this.index = index;
            this.slots = index.config().maxWorkerSlots();
            this.scores = new OverlapScores(slots);
            index.onEviction(this);
        }

        @Override
        public void evicted(int slot, long[] names, int count) {
            assertEquals(0, naive.remove(slot, Arrays.copyOf(names, count), true), "not held");
            evicted += count;
            beyond += count;
        }

        void step() {
            final int slot = random.nextInt(slots);
            final List<Long> held = naive.names(slot);
            switch (random.nextInt(10)) {
                case 0, 1, 2, 3 -> store(slot, true, 0);
                case 4, 5, 6, 7 -> {
                    if (!held.isEmpty()) {
                        store(slot, false, held.get(random.nextInt(held.size())));
                    }
                }
                case 8 -> remove(slot, held);
                default -> {
                    if (random.nextInt(100) == 0) {
                        naive.clear(slot);
                        index.clear(slot);
                        assertEquals(0, index.missingBlocks(slot));
                    }
                }
            }
        }

        private void store(int slot, boolean root, long parent) {
            final int count = 1 + (random.nextInt(8) == 0 ? random.nextInt(80) : random.nextInt(9));
            final long[] locals = new long[count];
            final long[] names = new long[count];
            final List<Long> held = naive.names(slot);
            for (int i = 0; i < count; i++) {
                locals[i] = random.nextInt(i < 3 ? 2 : 1000);
                names[i] =
                        !held.isEmpty() && random.nextInt(renames) == 0
                                ? held.get(random.nextInt(held.size()))
                                : nextName++;
            }
            final long missing = index.missingBlocks(slot);
            final boolean refresh = random.nextBoolean();
            final StoreResult result =
                    index.store(slot, root, parent, names, locals, count, refresh);
            assertTrue(index.heldBlocks() <= index.config().maxHeldBlocks());
            assertTrue(index.blocks() <= index.config().maxBlocks());
            switch (result) {
                case STORED ->
                        assertEquals(
                                NaivePrefixIndex.Outcome.STORED,
                                naive.store(slot, root, parent, names, locals, refresh));
                case CAPACITY -> {
                    beyond++;
                    releaseConflicting(slot);
                    assertTrue(index.missingBlocks(slot) >= missing);
                }
                case INVALID ->
                        assertTrue(
                                Arrays.stream(names).distinct().count() < count
                                        || Arrays.stream(names).anyMatch(n -> n == parent));
                default -> throw new AssertionError(result);
            }
        }

        /** A refused store may have released names that stood for other blocks. */
        private void releaseConflicting(int slot) {
            final Set<Long> held = new HashSet<>();
            index.forEach((s, name, sequence, copies) -> held.add(s == slot ? name : 0));
            for (long name : naive.names(slot)) {
                if (!held.contains(name)) {
                    naive.remove(slot, new long[] {name}, true);
                }
            }
        }

        private void remove(int slot, List<Long> held) {
            final long[] names = new long[random.nextInt(9)];
            Arrays.setAll(
                    names,
                    i ->
                            held.isEmpty() || random.nextInt(4) == 0
                                    ? 1 + random.nextLong(nextName)
                                    : held.get(random.nextInt(held.size())));
            final long missing = index.missingBlocks(slot);
            final long known = index.missingRemovals(slot);
            final int unknown = index.remove(slot, names, names.length, CopyRule.LAST_COPY);
            final long ofMissing = index.missingRemovals(slot) - known;
            assertEquals(naive.remove(slot, names, true), unknown + ofMissing);
            assertTrue(unknown == 0 || ofMissing >= missing, "unknown though some are missing");
        }

        void compare() {
            final Set<List<Long>> expected = new HashSet<>();
            final Map<Integer, Long> heldBySlot = new TreeMap<>();
            for (Held held : naive.held()) {
                expected.add(List.of((long) held.slot(), held.engineHash(), (long) held.copies()));
                heldBySlot.merge(held.slot(), 1L, Long::sum);
            }
            final Set<List<Long>> found = new HashSet<>();
            index.forEach(
                    (slot, name, sequence, copies) ->
                            found.add(List.of((long) slot, name, (long) copies)));
            assertEquals(expected, found);
            assertEquals(naive.blocks(), index.blocks());
            for (int slot = 0; slot < slots; slot++) {
                assertEquals(heldBySlot.getOrDefault(slot, 0L), index.heldBlocks(slot));
            }
            assertEquals(evicted, index.evictedBlocks());
            for (Held held : naive.held().stream().limit(20).toList()) {
                final long[] path = held.path().stream().mapToLong(l -> l).toArray();
                final Map<Integer, Integer> depths = naive.match(path);
                index.match(path, path.length, scores);
                for (int slot = 0; slot < slots; slot++) {
                    assertEquals(depths.getOrDefault(slot, 0), scores.depth(slot));
                }
            }
        }
    }

    @Test
    void aSlotBelowItsShareStoresWhereAnotherHasFilledTheIndex() {
        try (PrefixIndex index = new PrefixIndex(evicting(4, 1_000, 1_000))) {
            for (int i = 0; i < 100; i++) {
                assertEquals(StoreResult.STORED, store(index, 0, prompt(10)));
            }
            for (int i = 0; i < 50; i++) {
                assertEquals(StoreResult.STORED, store(index, 1, prompt(10)));
            }
            assertEquals(500.0, (double) index.heldBlocks(0), 30);
            assertEquals(500.0, (double) index.heldBlocks(1), 30);
            for (int i = 0; i < 400; i++) {
                store(index, i % 4, prompt(10));
            }
            for (int slot = 0; slot < 4; slot++) {
                assertEquals(250.0, (double) index.heldBlocks(slot), 40, "share of slot " + slot);
            }
        }
    }

    @Test
    void theOldestPromptGoesFromItsEndToItsBeginning() {
        try (PrefixIndex index = new PrefixIndex(evicting(1, 1_000, 1_000))) {
            final long[] oldest = prompt(600);
            final OverlapScores scores = new OverlapScores(1);
            store(index, 0, oldest);
            store(index, 0, prompt(400));
            int before = 600;
            for (int i = 0; i < 30; i++) {
                assertEquals(StoreResult.STORED, store(index, 0, prompt(20)));
                index.match(oldest, oldest.length, scores);
                assertEquals(before - 20, scores.depth(0));
                before = scores.depth(0);
            }
            assertEquals(600, index.evictedBlocks(0));
            assertEquals(600, index.missingBlocks(0));
        }
    }

    /** Else its blocks were new again, and room would be needed for these, too. */
    @ParameterizedTest
    @ValueSource(ints = {50, 5_000})
    void aStoreIsNoReasonToEvictThePrefixThatItGoesOnFrom(int length) {
        try (PrefixIndex index = new PrefixIndex(evicting(2, 2L * length, 20L * length))) {
            final long[] prefix = storedInParts(index, prompt(length)); // the oldest one
            final long[] other = storedInParts(index, prompt(length));
            final long[] longer = Arrays.copyOf(prefix, length + 10);
            System.arraycopy(prompt(10), 0, longer, length, 10);
            assertEquals(StoreResult.STORED, store(index, 1, longer));
            assertEquals(0, index.missingBlocks(1));
            assertEquals(length + 10, depth(index, longer, 1));
            assertEquals(length, depth(index, longer, 0), "it was of use just now");
            assertEquals(length - 10, depth(index, other, 0));
            assertEquals(10, index.evictedBlocks());
        }
    }

    /** By slot 0, as an engine stores it that computes it a part at a time. */
    private static long[] storedInParts(PrefixIndex index, long[] prompt) {
        for (int i = 0; i < prompt.length; i += 50) {
            final long[] part = Arrays.copyOfRange(prompt, i, i + 50);
            final long parent = i == 0 ? 0 : prompt[i - 1];
            assertEquals(StoreResult.STORED, index.store(0, i == 0, parent, part, part, 50, false));
        }
        return prompt;
    }

    private static int depth(PrefixIndex index, long[] prompt, int slot) {
        final OverlapScores scores = new OverlapScores(8);
        index.match(prompt, prompt.length, scores);
        return scores.depth(slot);
    }

    /** Each of its blocks takes as many evictions as slots hold it. */
    @Test
    void aPromptThatManySlotsHoldGivesWay() {
        try (PrefixIndex index = new PrefixIndex(evicting(8, 100, 10_000))) {
            final long[] shared = prompt(100);
            for (int slot = 0; slot < 8; slot++) {
                store(index, slot, shared);
            }
            final long[] other = prompt(90);
            assertEquals(StoreResult.STORED, store(index, 0, other));
            assertEquals(90, depth(index, other));
            assertEquals(100, index.blocks());
            assertEquals(10, depth(index, shared, 7));
        }
    }

    @Test
    void whereThereIsNothingElseTheRestOfItsOwnPrefixIsEvicted() {
        try (PrefixIndex index = new PrefixIndex(evicting(2, 100, 1_000))) {
            final long[] only = prompt(100);
            store(index, 0, only);
            final long[] branch = Arrays.copyOf(only, 60);
            System.arraycopy(prompt(10), 0, branch, 50, 10);
            assertEquals(StoreResult.STORED, store(index, 1, branch));
            assertEquals(60, depth(index, branch, 1));
            assertEquals(90, depth(index, only, 0));
        }
    }

    @Test
    void anotherSlotIsEvictedFromWhereTheOneThatHoldsMostHasNothingToGiveUp() {
        try (PrefixIndex index = new PrefixIndex(evicting(5, 1_000, 100))) {
            final long[] most = prompt(60);
            store(index, 0, most);
            for (int slot = 1; slot < 5; slot++) {
                store(index, slot, prompt(10));
            }
            final long[] next = prompt(1);
            assertEquals(StoreResult.STORED, index.store(0, false, most[59], next, next, 1, false));
            assertEquals(61, index.heldBlocks(0));
            assertEquals(100, index.heldBlocks());
        }
    }

    /** Each copy is removed by itself: what the engine has left of an evicted block is missing. */
    @RepeatedTest(5)
    void anEvictedBlockIsMissingUntilItsLastCopyIsRemoved() {
        final SplittableRandom random =
                new SplittableRandom(Seeds.next("PrefixIndexEvictionTest copies"));
        final List<Long> engine = new ArrayList<>(); // each copy
        final Map<Long, Integer> index = new HashMap<>();
        try (PrefixIndex full = new PrefixIndex(evicting(2, 1_000, 60))) {
            final List<long[]> prompts = new ArrayList<>();
            for (int i = 0; i < 60; i++) {
                final boolean again = i > 0 && i < 59 && random.nextInt(3) > 0;
                final long[] prompt =
                        again ? prompts.get(random.nextInt(prompts.size())) : prompt(6);
                prompts.add(prompt);
                assertEquals(StoreResult.STORED, full.store(0, true, 0, prompt, prompt, 6, false));
                Arrays.stream(prompt).forEach(engine::add);
            }
            assertTrue(full.evictedBlocks(0) > 0, "nothing was evicted");
            while (true) {
                index.clear();
                full.forEach((slot, name, sequence, copies) -> index.put(name, copies));
                final int held = index.values().stream().mapToInt(copies -> copies).sum();
                final int missing = engine.size() - held;
                if (missing + index.size() <= 6) {
                    break; // the blocks of the last store are no part of the turnover
                }
                assertEquals(missing, full.missingBlocks(0), engine.size() + " left");
                final long[] one = {engine.remove(random.nextInt(engine.size()))};
                assertEquals(0, full.remove(0, one, 1, CopyRule.PHYSICAL), "unknown");
            }
        }
    }

    /** A refused store has the engine announce one removal more of what is held, too. */
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void eachCopyThatIsNotStoredIsMissingUntilItIsRemoved(boolean toParent) {
        final SplittableRandom random =
                new SplittableRandom(Seeds.next("PrefixIndexEvictionTest refused"));
        final List<Long> engine = new ArrayList<>(); // each copy
        final PrefixIndexConfig config =
                new PrefixIndexConfig(2, NO_LIMIT, 60, 1 << 20, CapacityRule.REFUSE);
        try (PrefixIndex full = new PrefixIndex(config)) {
            final long[] start = prompt(50);
            assertEquals(StoreResult.STORED, store(full, 0, start));
            Arrays.stream(start).forEach(engine::add);
            for (int i = 0; i < 10; i++) {
                final long[] again = Arrays.copyOf(start, 30);
                System.arraycopy(prompt(20), 0, again, 10, 20); // the first ten are held
                final StoreResult refused =
                        toParent && i > 0
                                ? full.store(0, false, -1, again, again, 30, false)
                                : full.store(0, true, 0, again, again, 30, false);
                assertEquals(
                        toParent && i > 0 ? StoreResult.MISSING_PARENT : StoreResult.CAPACITY,
                        refused);
                Arrays.stream(again).forEach(engine::add);
            }
            assertEquals(10 * 20, full.refusedBlocks(0));
            while (engine.size() > 50) { // those held are no part of the turnover
                assertEquals(engine.size() - full.heldBlocks(0), full.missingBlocks(0));
                final long[] one = {engine.remove(random.nextInt(engine.size()))};
                assertEquals(0, full.remove(0, one, 1, CopyRule.PHYSICAL), "unknown");
            }
        }
    }

    @Test
    void whatIsHeldIsNotMissingWhereNoFurtherCopyOfItIsAnnounced() {
        final PrefixIndexConfig config =
                new PrefixIndexConfig(2, NO_LIMIT, 60, 1 << 20, CapacityRule.REFUSE);
        try (PrefixIndex full = new PrefixIndex(config)) {
            final long[] start = prompt(50);
            store(full, 0, start);
            final long[] again = Arrays.copyOf(start, 30);
            System.arraycopy(prompt(20), 0, again, 10, 20);
            assertEquals(StoreResult.CAPACITY, full.store(0, true, 0, again, again, 30, true));
            assertEquals(20, full.missingBlocks(0), "of a store that says what is held anew");
            removeLast(full, start[49], false);
            assertEquals(StoreResult.CAPACITY, full.store(0, true, 0, again, again, 30, false));
            assertEquals(40, full.missingBlocks(0), "where the last copy alone is announced");
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void anEvictedBlockIsMissingOnceWhereItsLastCopyAloneIsAnnounced(boolean counted) {
        try (PrefixIndex index = new PrefixIndex(evicting(1, 1_000, 20))) {
            final long[] prompt = prompt(20);
            store(index, 0, prompt);
            store(index, 0, prompt);
            removeLast(index, prompt[19], counted);
            store(index, 0, prompt(20));
            assertEquals(19, index.evictedBlocks(0));
            assertEquals(19, index.missingBlocks(0));
            removeLast(index, prompt[18], counted);
            assertEquals(18, index.missingBlocks(0));
        }
    }

    private static void removeLast(PrefixIndex index, long name, boolean counted) {
        if (counted) {
            index.removeTo(0, name, 0);
        } else {
            assertEquals(0, index.remove(0, new long[] {name}, 1, CopyRule.LAST_COPY));
        }
    }

    @Test
    void aStoreEvictsNothingOfThePathThatItGoesOnFrom() {
        final PrefixIndexConfig config =
                new PrefixIndexConfig(1, NO_LIMIT, NO_LIMIT, 64 << 10, CapacityRule.EVICT);
        try (PrefixIndex index = new PrefixIndex(config)) {
            long held = 0;
            long[] parent = {0};
            long[] next = {fresh.nextLong()};
            StoreResult result = index.store(0, true, 0, next, next, 1, true);
            while (result == StoreResult.STORED) {
                held++;
                assertEquals(held, index.heldBlocks(0));
                parent = next;
                next = new long[] {fresh.nextLong()};
                result = index.store(0, false, parent[0], next, next, 1, true);
            }
            assertEquals(StoreResult.CAPACITY, result);
            assertEquals(held, index.heldBlocks(0));
            assertEquals(0, index.evictedBlocks(0));
            IndexInvariants.check(index);
        }
    }

    @Test
    void aPrefixThatOthersGoOnFromStays() {
        try (PrefixIndex index = new PrefixIndex(evicting(1, 2_000, 2_000))) {
            final long[] system = prompt(40);
            final OverlapScores scores = new OverlapScores(1);
            store(index, 0, system);
            for (int i = 0; i < 500; i++) {
                final long[] turn = prompt(20);
                assertEquals(
                        StoreResult.STORED,
                        index.store(0, false, system[39], turn, turn, 20, true));
            }
            index.match(system, system.length, scores);
            assertEquals(40, scores.depth(0));
            assertEquals(0, index.capacityRefusals() + index.missingParents());
        }
    }

    @Test
    void aPromptThatABranchWentOnFromIsNotTheOldest() {
        try (PrefixIndex index = new PrefixIndex(evicting(2, 1_000, 16))) {
            final long[] shared = prompt(3);
            final long[] branch = prompt(1);
            store(index, 1, shared);
            goOn(index, 1, shared[2], prompt(1)); // is appended to the shared run
            goOn(index, 1, shared[2], branch); // gets a run of its own
            final long[] first = prompt(4);
            final long[] other = prompt(3);
            store(index, 0, first);
            store(index, 0, shared);
            store(index, 0, other);
            store(index, 0, prompt(1));
            store(index, 0, prompt(1)); // one too many: all are looked at, and the first goes
            goOn(index, 0, shared[2], branch);
            assertEquals(2, depth(index, first));
            index.remove(0, branch, 1, CopyRule.PHYSICAL);
            index.remove(0, first, 2, CopyRule.PHYSICAL);
            store(index, 0, prompt(4)); // one too many again
            assertEquals(3, depth(index, shared));
            assertEquals(2, depth(index, other));
            IndexInvariants.check(index);
        }
    }

    /**
     * A full index is fragmented: its free lines are between others. What a slot has grows all the
     * same, by small blocks: its tables of names and held runs, and the children of the root.
     */
    @Tag("trials")
    @ParameterizedTest(name = "prompts go on by up to {0} blocks")
    @ValueSource(ints = {9, 40})
    void aWorkerThatComesToAFullIndexGetsItsShare(int most) {
        final SplittableRandom random =
                new SplittableRandom(Seeds.next("PrefixIndexEvictionTest newcomer " + most));
        final PrefixIndexConfig config =
                new PrefixIndexConfig(3, NO_LIMIT, NO_LIMIT, 1 << 20, CapacityRule.EVICT);
        try (PrefixIndex index = new PrefixIndex(config)) {
            final long[][] recent = new long[300][];
            Arrays.setAll(recent, _ -> prompt(1 + random.nextInt(most)));
            int refused = 0;
            final int stores = Trials.of(8_000, 20_000);
            for (int i = 0; i < stores; i++) {
                final int slot = random.nextInt(i < stores / 2 ? 2 : 3);
                final int at = random.nextInt(recent.length);
                final int same = random.nextInt(3) == 0 ? 0 : 1 + random.nextInt(recent[at].length);
                final long[] prompt = Arrays.copyOf(recent[at], same + 1 + random.nextInt(most));
                for (int b = same; b < prompt.length; b++) {
                    prompt[b] = random.nextLong();
                }
                recent[random.nextInt(recent.length)] = prompt;
                refused += store(index, slot, prompt) == StoreResult.STORED ? 0 : 1;
            }
            IndexInvariants.check(index);
            assertTrue(index.evictedBlocks() > index.heldBlocks(), "the index was not full");
            assertTrue(refused <= 2, refused + " of " + stores + " were refused");
            final long share = index.heldBlocks() / 3;
            assertTrue(
                    index.heldBlocks(2) > share * 9 / 10,
                    () -> "the newcomer holds " + index.heldBlocks(2) + " of a share of " + share);
        }
    }

    /**
     * Where memory is fragmented a store evicts first and comes upon an engine hash in use then.
     */
    @Tag("trials")
    @Test
    void aStoreThatNamesABlockAnewIsDoneWhereMemoryIsShort() {
        final long seed = Seeds.next("PrefixIndexEvictionTest names");
        final SplittableRandom random = new SplittableRandom(seed);
        final PrefixIndexConfig config =
                new PrefixIndexConfig(3, NO_LIMIT, NO_LIMIT, 64 << 10, CapacityRule.EVICT);
        try (PrefixIndex index = new PrefixIndex(config)) {
            final long[][] trunks = {prompt(30), prompt(30), prompt(30)};
            final int stores = Trials.of(1_500, 8_000);
            int refused = 0;
            for (int i = 0; i < stores; i++) {
                final int slot = random.nextInt(3);
                final long[] old = prompt(1 + random.nextInt(9));
                assertEquals(StoreResult.STORED, store(index, slot, old));
                final int same = random.nextInt(31);
                final long[] prompt =
                        Arrays.copyOf(trunks[random.nextInt(3)], same + 1 + random.nextInt(40));
                for (int b = same; b < prompt.length; b++) {
                    prompt[b] = fresh.nextLong();
                }
                final long[] names = prompt.clone();
                names[names.length - 1] = old[old.length - 1];
                final StoreResult result =
                        index.store(slot, true, 0, names, prompt, prompt.length, true);
                refused += result == StoreResult.STORED ? 0 : 1;
            }
            IndexInvariants.check(index);
            assertTrue(refused <= 1, refused + " of " + stores + " were refused");
            assertTrue(index.conflictingStores() > stores / 2, "the engine hashes were not in use");
        }
    }

    @Test
    void whatGoesOnFromAMissingBlockAndItsRemovalAreNoUnknownOnes() {
        try (PrefixIndex index = new PrefixIndex(new PrefixIndexConfig(2, 8, 8))) {
            store(index, 0, prompt(8));
            final long[] refused = prompt(5);
            assertEquals(StoreResult.CAPACITY, store(index, 1, refused));
            final long[] child = prompt(2);
            assertEquals(
                    StoreResult.MISSING_PARENT,
                    index.store(1, false, refused[4], child, child, 2, true));
            assertEquals(7, index.missingBlocks(1));
            assertEquals(7, index.refusedBlocks(1));
            assertEquals(0, index.remove(1, refused, 5, CopyRule.PHYSICAL));
            assertEquals(0, index.remove(1, child, 2, CopyRule.PHYSICAL));
            assertEquals(0, index.missingBlocks(1));
            assertEquals(7, index.missingRemovals(1));
            assertEquals(1, index.remove(1, child, 1, CopyRule.PHYSICAL));
            assertEquals(0, index.unknownParents());
            assertEquals(1, index.unknownRemovals());
        }
    }

    private static PrefixIndexConfig evicting(int slots, long blocks, long held) {
        return new PrefixIndexConfig(slots, blocks, held).with(CapacityRule.EVICT);
    }

    /** Local hashes that nothing else has, and, as engines may, engine hashes that are the same. */
    private long[] prompt(int blocks) {
        final long[] hashes = new long[blocks];
        Arrays.setAll(hashes, i -> fresh.nextLong());
        return hashes;
    }

    /** Blocks of a prompt that slot 0 holds. */
    private static int depth(PrefixIndex index, long[] prompt) {
        return depth(index, prompt, 0);
    }

    private static void goOn(PrefixIndex index, int slot, long parent, long[] blocks) {
        assertEquals(
                StoreResult.STORED,
                index.store(slot, false, parent, blocks, blocks, blocks.length, true));
    }

    private static StoreResult store(PrefixIndex index, int slot, long[] prompt) {
        return index.store(slot, true, 0, prompt, prompt, prompt.length, true);
    }
}
