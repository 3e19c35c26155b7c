package io.kvasir.core.index;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.kvasir.core.hash.BlockHasher;
import io.kvasir.core.radix.OverlapScores;
import io.kvasir.testsupport.NaivePrefixIndex;
import io.kvasir.testsupport.NaivePrefixIndex.Held;
import io.kvasir.testsupport.Seeds;
import io.kvasir.testsupport.Trials;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;

/** Random operations on the index and on the naive one; both must always say the same. */
class PrefixIndexModelTest {
    private static final int OPERATIONS = Trials.of(500, 10_000);

    @Tag("trials")
    @ParameterizedTest(name = "{0} slots, {1} blocks, {2} held blocks")
    @CsvSource({
        "3, 1000, 3000",
        "3, 40, 60",
        "70, 400, 3000",
        "130, 60, 200",
        "1, 1, 1",
        "2, 8, 3"
    })
    void saysWhatTheNaiveIndexSays(int slots, long maxBlocks, long maxHeldBlocks) {
        tell(slots, maxBlocks, maxHeldBlocks);
    }

    private static void tell(int slots, long maxBlocks, long maxHeldBlocks) {
        final long seed = Seeds.next("PrefixIndexModelTest " + slots + "/" + maxBlocks);
        try (PrefixIndex index =
                new PrefixIndex(new PrefixIndexConfig(slots, maxBlocks, maxHeldBlocks))) {
            final Story story = new Story(new Random(seed), index, slots, maxBlocks, maxHeldBlocks);
            for (int i = 0; i < OPERATIONS; i++) {
                story.step();
                if (i % 7 == 0) {
                    story.compareMatches();
                }
                if (i % 97 == 0) {
                    story.compareContents();
                    IndexInvariants.check(index);
                }
            }
            story.compareContents();
            story.clearAll();
            story.compareContents();
            IndexInvariants.check(index);
        }
    }

    /** The two indexes and what is done to them. */
    private static final class Story {
        private final Random random;
        private final PrefixIndex index;
        private final NaivePrefixIndex naive;
        private final int slots;
        private final long bytes;
        private final OverlapScores scores;
        private final long[][] prompts;
        private long unknownRemovals;

        Story(Random random, PrefixIndex index, int slots, long maxBlocks, long maxHeldBlocks) {
            this.random = random;
            this.index = index;
            this.slots = slots;
            this.bytes = index.bytes();
            this.naive = new NaivePrefixIndex(maxBlocks, maxHeldBlocks);
            this.scores = new OverlapScores(slots);
            // few local hashes, so that prompts share prefixes, meet again and repeat themselves
            this.prompts = new long[24][];
            for (int i = 0; i < prompts.length; i++) {
                final long[] base = i == 0 ? new long[0] : prompts[random.nextInt(i)];
                final int shared = base.length == 0 ? 0 : random.nextInt(base.length);
                prompts[i] = Arrays.copyOf(base, shared + 1 + random.nextInt(12));
                for (int j = shared; j < prompts[i].length; j++) {
                    prompts[i][j] = random.nextInt(3) - 1L;
                }
            }
        }

        void step() {
            final int slot = random.nextInt(slots);
            switch (random.nextInt(20)) {
                case 0, 1, 2, 3, 4, 5 -> storeRoot(slot);
                case 6, 7, 8, 9, 10 -> storeBehind(slot);
                case 11 -> {
                    if (random.nextBoolean()) {
                        storeAnything(slot);
                    } else {
                        storeTurned(slot);
                    }
                }
                case 12, 13, 14, 15, 16 -> remove(slot);
                case 17, 18 -> removeTo(slot);
                default -> {
                    if (random.nextInt(8) == 0) {
                        assertEquals(naive.clear(slot), index.clear(slot));
                    }
                }
            }
        }

        private void storeRoot(int slot) {
            final long[] prompt = prompts[random.nextInt(prompts.length)];
            final long[] locals = Arrays.copyOf(prompt, 1 + random.nextInt(prompt.length));
            store(slot, true, 0, names(slot, List.of(), locals), locals);
        }

        private void storeBehind(int slot) {
            final List<Long> held = naive.names(slot);
            if (held.isEmpty()) {
                return;
            }
            final long parent = held.get(random.nextInt(held.size()));
            final long[] locals = new long[1 + random.nextInt(5)];
            Arrays.setAll(locals, i -> random.nextInt(3) - 1L);
            store(slot, false, parent, names(slot, naive.path(slot, parent), locals), locals);
        }

        /** Names from a tiny pool: unknown parents, repeats, own parents, conflicts. */
        private void storeAnything(int slot) {
            final long[] locals = new long[random.nextInt(6)];
            final long[] names = new long[locals.length];
            Arrays.setAll(locals, i -> random.nextInt(3) - 1L);
            Arrays.setAll(names, i -> random.nextInt(20));
            final List<Long> held = naive.names(slot);
            final long parent =
                    held.isEmpty() || random.nextBoolean()
                            ? random.nextInt(20)
                            : held.get(random.nextInt(held.size()));
            store(slot, random.nextInt(3) == 0, parent, names, locals);
        }

        /** A prompt under names that the slot has given to other blocks, or to other ones of it. */
        private void storeTurned(int slot) {
            final long[] prompt = prompts[random.nextInt(prompts.length)];
            final List<Long> held = new ArrayList<>(naive.names(slot));
            Collections.shuffle(held, random);
            final int count = Math.min(prompt.length, held.size());
            final long[] names = held.stream().limit(count).mapToLong(n -> n).toArray();
            store(slot, true, 0, names, Arrays.copyOf(prompt, count));
        }

        private void store(int slot, boolean root, long parent, long[] names, long[] locals) {
            final boolean refresh = random.nextInt(4) == 0;
            final StoreResult result =
                    index.store(slot, root, parent, names, locals, names.length, refresh);
            assertEquals(
                    naive.store(slot, root, parent, names, locals, refresh).name(),
                    result == StoreResult.MISSING_PARENT ? "UNKNOWN_PARENT" : result.name());
        }

        /** The slot's usual names of the blocks, sometimes other ones. */
        private long[] names(int slot, List<Long> before, long[] locals) {
            final long variant = random.nextInt(10) == 0 ? 1 + random.nextInt(2) : 0;
            final List<Long> path = new ArrayList<>(before);
            final long[] names = new long[locals.length];
            for (int i = 0; i < locals.length; i++) {
                path.add(locals[i]);
                names[i] = 31L * path.hashCode() + 1_000_003L * slot + variant * (1L << 40);
            }
            return names;
        }

        private void remove(int slot) {
            final long[] names = random.nextInt(3) > 0 ? someNames(slot) : pathNames(slot);
            final boolean lastCopy = random.nextBoolean();
            final int unknown = naive.remove(slot, names, lastCopy);
            unknownRemovals += unknown;
            final long known = index.missingRemovals();
            final int found =
                    index.remove(
                            slot,
                            names,
                            names.length,
                            lastCopy ? CopyRule.LAST_COPY : CopyRule.PHYSICAL);
            assertEquals(unknown, found + index.missingRemovals() - known);
            assertEquals(unknownRemovals, index.unknownRemovals() + index.missingRemovals());
        }

        private long[] someNames(int slot) {
            final long[] names = new long[random.nextInt(6)];
            Arrays.setAll(names, i -> someName(slot));
            return names;
        }

        /** Names of blocks behind each other, as engines remove them: from either end. */
        private long[] pathNames(int slot) {
            final long[] prompt = prompts[random.nextInt(prompts.length)];
            final int from = random.nextInt(prompt.length);
            final List<Long> names = new ArrayList<>();
            for (int i = from + 1; i <= prompt.length; i++) {
                final List<Long> path = Arrays.stream(prompt, 0, i).boxed().toList();
                naive.names(slot).stream()
                        .filter(name -> naive.path(slot, name).equals(path))
                        .forEach(names::add);
            }
            if (random.nextBoolean()) {
                Collections.reverse(names);
            }
            return names.stream().mapToLong(Long::longValue).toArray();
        }

        private void removeTo(int slot) {
            final long name = someName(slot);
            final int remaining = random.nextInt(4) - 1;
            unknownRemovals += naive.names(slot).contains(name) || remaining > 0 ? 0 : 1;
            naive.removeTo(slot, name, remaining);
            index.removeTo(slot, name, remaining);
        }

        private long someName(int slot) {
            final List<Long> held = naive.names(slot);
            return held.isEmpty() || random.nextInt(8) == 0
                    ? random.nextInt(40)
                    : held.get(random.nextInt(held.size()));
        }

        void compareMatches() {
            for (long[] prompt : prompts) {
                final Map<Integer, Integer> expected = naive.match(prompt);
                final int deepest = index.match(prompt, prompt.length, scores);
                final Map<Integer, Integer> found = new TreeMap<>();
                for (int i = 0; i < scores.matchedSlots(); i++) {
                    found.put(scores.slotAt(i), scores.depth(scores.slotAt(i)));
                }
                assertEquals(expected, found);
                assertEquals(expected.values().stream().mapToInt(d -> d).max().orElse(0), deepest);
                for (int slot = 0; slot < slots; slot++) {
                    assertEquals(expected.getOrDefault(slot, 0), scores.depth(slot));
                }
            }
        }

        void compareContents() {
            final Set<List<Long>> expected = new HashSet<>();
            final Map<Integer, Long> heldBySlot = new TreeMap<>();
            for (Held held : naive.held()) {
                expected.add(
                        List.of(
                                (long) held.slot(),
                                held.engineHash(),
                                sequenceHash(held.path()),
                                (long) held.copies()));
                heldBySlot.merge(held.slot(), 1L, Long::sum);
            }
            final Set<List<Long>> found = new HashSet<>();
            index.forEach(
                    (slot, engineHash, sequenceHash, copies) ->
                            found.add(
                                    List.of((long) slot, engineHash, sequenceHash, (long) copies)));
            assertEquals(expected, found);
            assertEquals(naive.blocks(), index.blocks());
            assertEquals(naive.heldBlocks(), index.heldBlocks());
            for (int slot = 0; slot < slots; slot++) {
                assertEquals(heldBySlot.getOrDefault(slot, 0L), index.heldBlocks(slot));
            }
            assertEquals(bytes, index.bytes());
            for (int slot = 0; slot < slots; slot++) {
                compareRuns(slot);
            }
        }

        /** One part of what a slot was shown to hold. */
        private record Run(int depth, long parent, List<Long> names, List<Long> locals) {}

        /** The runs of a slot name every held block, and lead to each that no hole is before. */
        private void compareRuns(int slot) {
            final List<Run> runs = runsOf(slot);
            runs.sort(Comparator.comparingInt(Run::depth));
            final Set<Long> names = new HashSet<>();
            final Map<Long, List<Long>> paths = new HashMap<>();
            for (Run run : runs) {
                names.addAll(run.names());
                List<Long> path = run.depth() == 0 ? List.of() : paths.get(run.parent());
                if (run.depth() == HeldRunVisitor.BEHIND_HOLE || path == null) {
                    continue;
                }
                assertEquals(run.depth(), path.size());
                for (int i = 0; i < run.names().size(); i++) {
                    path = new ArrayList<>(path);
                    path.add(run.locals().get(i));
                    paths.put(run.names().get(i), path);
                }
            }
            assertEquals(new HashSet<>(naive.names(slot)), names);
            final Map<Long, List<Long>> reachable = new HashMap<>();
            final Set<List<Long>> held = new HashSet<>();
            naive.names(slot).forEach(name -> held.add(naive.path(slot, name)));
            for (long name : naive.names(slot)) {
                final List<Long> path = naive.path(slot, name);
                boolean whole = true;
                for (int i = 1; i < path.size(); i++) {
                    whole &= held.contains(path.subList(0, i));
                }
                if (whole) {
                    reachable.put(name, path);
                }
            }
            assertEquals(reachable, paths);
        }

        private List<Run> runsOf(int slot) {
            final List<Run> runs = new ArrayList<>();
            final int most = 1 + random.nextInt(5);
            int from = 0;
            while (from != PrefixIndex.NO_MORE_RUNS) {
                from =
                        index.forEachRun(
                                slot,
                                from,
                                most,
                                (depth, parent, engineHashes, localHashes, count) ->
                                        runs.add(
                                                new Run(
                                                        depth,
                                                        parent,
                                                        list(engineHashes, count),
                                                        list(localHashes, count))));
            }
            return runs;
        }

        private static List<Long> list(long[] values, int count) {
            return Arrays.stream(values, 0, count).boxed().toList();
        }

        void clearAll() {
            for (int slot = 0; slot < slots; slot++) {
                assertEquals(naive.clear(slot), index.clear(slot));
            }
            assertEquals(0, index.blocks());
            assertEquals(0, index.heldBlocks());
        }

        private static long sequenceHash(List<Long> path) {
            final long[] hashes = path.stream().mapToLong(l -> l).toArray();
            BlockHasher.sequenceHashes(hashes, hashes.length, hashes);
            return hashes[hashes.length - 1];
        }
    }
}
