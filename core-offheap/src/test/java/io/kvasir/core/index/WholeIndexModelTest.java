package io.kvasir.core.index;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.hash.BlockHasher;
import io.kvasir.core.memory.MemoryGate;
import io.kvasir.core.radix.OverlapScores;
import io.kvasir.testsupport.NaivePrefixIndex;
import io.kvasir.testsupport.NaivePrefixIndex.Held;
import io.kvasir.testsupport.Seeds;
import io.kvasir.testsupport.Trials;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;

/**
 * One index in a file that is too small for its slots: stores, removals and clears in any order,
 * slots that are exported, emptied and imported again, processes that follow each other. What it
 * holds is held by naive slots without limits, all of it where nothing was refused or evicted; in
 * the end all memory is free again.
 */
class WholeIndexModelTest {
    private static final int TRIALS = Trials.of(2, 40);
    private static final int STEPS = 100;
    private static final int SLOTS = 5;
    private static final int WIDE_SLOTS = 70;

    @TempDir Path folder;

    @Tag("trials")
    @ParameterizedTest
    @EnumSource(CapacityRule.class)
    void holdsNothingThatNoEngineHasAndLeaksNothing(CapacityRule rule) throws IOException {
        final long seed = Seeds.next("WholeIndexModelTest " + rule);
        for (int trial = 0; trial < TRIALS; trial++) {
            final Random random = new Random(seed + trial);
            final int slots = random.nextInt(3) == 0 ? WIDE_SLOTS : SLOTS;
            final PrefixIndexConfig config =
                    switch (random.nextInt(3)) {
                        case 0 -> new PrefixIndexConfig(slots, 60, 90).with(rule);
                        case 1 -> new PrefixIndexConfig(slots, 60, 400, 64 << 10, rule);
                        default -> new PrefixIndexConfig(slots, 8_000, 16_000).with(rule);
                    };
            final Model model = new Model(random, config, folder.resolve(rule + "-" + trial));
            try {
                model.run();
            } catch (RuntimeException | AssertionError e) {
                throw new AssertionError(
                        "trial " + trial + " of " + seed + ", " + config + ": " + model.trace, e);
            } finally {
                model.index.close();
            }
        }
    }

    private static final class Model {
        private final List<String> trace = new ArrayList<>();
        private final Random random;
        private final PrefixIndexConfig config;
        private final Path file;
        private final NaivePrefixIndex naive;
        private final boolean[] lacks; // whether something of a slot was refused or evicted
        private final SlotEvents prompts;
        private final OverlapScores scores;
        private final long unusedBytes;
        private PrefixIndex index;

        Model(Random random, PrefixIndexConfig config, Path file) throws IOException {
            this.random = random;
            this.config = config;
            this.file = file;
            naive = new NaivePrefixIndex(Long.MAX_VALUE, Long.MAX_VALUE);
            lacks = new boolean[config.maxWorkerSlots()];
            prompts = new SlotEvents(random, config.maxWorkerSlots());
            scores = new OverlapScores(config.maxWorkerSlots());
            open();
            unusedBytes = index.usedBytes();
        }

        private void open() throws IOException {
            index =
                    new PrefixIndex(
                            config,
                            new MemoryGate("a test"),
                            IndexMemory.open(file, config, 16, 1337L, 0));
        }

        void run() throws IOException {
            for (int step = 0; step < STEPS; step++) {
                final int slot = random.nextInt(config.maxWorkerSlots());
                switch (random.nextInt(24)) {
                    case 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 -> store(slot);
                    case 12, 13, 14, 15, 16, 17 -> remove(slot);
                    case 18, 19 -> removeTo(slot);
                    case 20 -> clear(slot);
                    case 21 -> restore(slot);
                    case 22 -> reopen();
                    default -> IndexInvariants.check(index);
                }
                compare();
            }
            for (int slot = 0; slot < config.maxWorkerSlots(); slot++) {
                clear(slot);
            }
            IndexInvariants.check(index);
            assertEquals(0, index.blocks());
            assertEquals(0, index.heldBlocks());
            assertEquals(unusedBytes, index.usedBytes());
        }

        /** A part of a prompt after what is before it, whether that is held or not. */
        private void store(int slot) {
            final long[] prompt = prompt();
            final int from = random.nextBoolean() ? 0 : random.nextInt(prompt.length);
            final int count = random.nextInt(prompt.length - from + 1);
            final long[] locals = Arrays.copyOfRange(prompt, from, from + count);
            final long[] names = new long[count];
            final boolean alias = random.nextInt(6) == 0;
            Arrays.setAll(names, i -> name(prompt, from + i + 1, alias));
            final long parent = from == 0 ? 0 : name(prompt, from, random.nextInt(6) == 0);
            final boolean refresh = random.nextInt(4) == 0;
            final StoreResult said =
                    index.store(slot, from == 0, parent, names, locals, count, refresh);
            trace.add(slot + " stores " + Arrays.toString(locals) + " at " + from + ": " + said);
            final String truth =
                    naive.store(slot, from == 0, parent, names, locals, refresh).name();
            lacks[slot] |= !truth.equals(said.name());
        }

        private long[] prompt() {
            return prompts.prompts[random.nextInt(prompts.prompts.length)];
        }

        private static long name(long[] prompt, int length, boolean alias) {
            return Arrays.hashCode(Arrays.copyOf(prompt, length)) + (alias ? 1L << 40 : 0);
        }

        private long anyName() {
            final long[] prompt = prompt();
            return name(prompt, 1 + random.nextInt(prompt.length), random.nextInt(6) == 0);
        }

        private void remove(int slot) {
            final long[] names = new long[1 + random.nextInt(4)];
            Arrays.setAll(names, i -> anyName());
            final boolean lastCopy = random.nextInt(3) == 0;
            final CopyRule rule = lastCopy ? CopyRule.LAST_COPY : CopyRule.PHYSICAL;
            index.remove(slot, names, names.length, rule);
            naive.remove(slot, names, lastCopy);
            trace.add(slot + " removes " + Arrays.toString(names) + " " + rule);
        }

        private void removeTo(int slot) {
            final long name = anyName();
            final int left = random.nextInt(4) - 1;
            index.removeTo(slot, name, left);
            naive.removeTo(slot, name, left);
            trace.add(slot + " has " + left + " of " + name);
        }

        private void clear(int slot) {
            index.clear(slot);
            naive.clear(slot);
            lacks[slot] = false;
            trace.add(slot + " is cleared");
            assertEquals(0, index.heldBlocks(slot));
            assertEquals(0, index.missingBlocks(slot));
        }

        private void restore(int slot) {
            final long missing = index.missingBlocks(slot);
            final SlotCopies.Content content =
                    SlotCopies.export(index, slot, 1 + random.nextInt(9), () -> {});
            index.clear(slot);
            SlotCopies.importInto(index, slot, content, () -> {});
            trace.add(slot + " is restored");
            lacks[slot] |= index.heldBlocks(slot) != content.blocks();
            assertTrue(index.missingBlocks(slot) >= missing, "less is missing");
        }

        private void reopen() throws IOException {
            final IndexAnswers before = IndexAnswers.of(index, prompts);
            index.commit();
            index.close();
            open();
            trace.add("the next process");
            assertEquals(before, IndexAnswers.of(index, prompts));
        }

        private void compare() {
            for (int slot = 0; slot < lacks.length; slot++) {
                lacks[slot] |= index.missingBlocks(slot) > 0;
            }
            final Map<List<Long>, Held> truth = new HashMap<>();
            final long[] held = new long[lacks.length];
            for (Held each : naive.held()) {
                truth.put(List.of((long) each.slot(), each.engineHash()), each);
                held[each.slot()]++;
            }
            index.forEach(
                    (slot, name, sequenceHash, copies) -> {
                        final Held has = truth.get(List.of((long) slot, name));
                        assertTrue(has != null, () -> slot + " does not have " + name);
                        assertEquals(sequenceHash(has.path()), sequenceHash);
                        assertTrue(lacks[slot] ? copies <= has.copies() : copies == has.copies());
                    });
            for (int slot = 0; slot < lacks.length; slot++) {
                assertTrue(lacks[slot] || index.heldBlocks(slot) == held[slot], "of " + slot);
            }
            final long[] prompt = prompt();
            final Map<Integer, Integer> expected = naive.match(prompt);
            index.match(prompt, prompt.length, scores);
            for (int slot = 0; slot < lacks.length; slot++) {
                final int depth = expected.getOrDefault(slot, 0);
                final int found = scores.depth(slot);
                assertTrue(lacks[slot] ? found <= depth : found == depth, "depth of " + slot);
            }
        }

        private static long sequenceHash(List<Long> path) {
            final long[] hashes = path.stream().mapToLong(l -> l).toArray();
            BlockHasher.sequenceHashes(hashes, hashes.length, hashes);
            return hashes[hashes.length - 1];
        }
    }
}
