package io.kvasir.core.index;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.hash.BlockHasher;
import io.kvasir.core.radix.OverlapScores;
import io.kvasir.testsupport.Seeds;
import io.kvasir.testsupport.Shares;
import io.kvasir.testsupport.Trials;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.util.BitSet;
import java.util.Random;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/**
 * Two threads on prompts of several runs that share their beginnings: runs are split and grow, many
 * slots hold one run, children come and go in tables, and memory is short. A prompt is a path of
 * three parts of a tree; each slot stores a part only down to a depth that is computed from both,
 * so a reader can tell a block that the slot never held. The last slot holds two prompts all the
 * time.
 *
 * <p>{@code -Dkvasir.soak=N} makes each case so many times as long.
 */
class PrefixIndexDeepSoakTest {
    private static final long FACTOR = Long.getLong("kvasir.soak", 1);
    private static final long OPERATIONS = Trials.of(400, 2_000) * FACTOR; // of a round, at least
    private static final long MATCHES = Trials.of(600, 3_000) * FACTOR;
    private static final int ROUNDS = 2;
    private static final int PINNED_PROMPTS = 2;

    @Tag("trials")
    @ParameterizedTest(name = "{0} slots, {1} KiB, parts of up to {2} blocks")
    @CsvSource({"2, 400, 600", "40, 256, 20", "40, 3500, 600", "1000, 5000, 60"})
    void aReaderNeverSeesABlockThatTheSlotNeverHeld(int slots, int kib, int longest)
            throws Exception {
        final long seed = Seeds.next("PrefixIndexDeepSoakTest " + slots + "/" + longest);
        final PrefixIndexConfig config =
                new PrefixIndexConfig(slots, 1 << 20, 1 << 22, (long) kib << 10);
        try (PrefixIndex index = new PrefixIndex(config);
                ExecutorService threads = Executors.newFixedThreadPool(2)) {
            final Churn churn = new Churn(new Random(seed), index, new Prompts(slots, longest));
            churn.pin();
            final Reader reader = new Reader(index, churn.prompts);
            for (int round = 0; round < ROUNDS; round++) {
                final Shares shares = new Shares(2);
                final Future<?> writing = threads.submit(() -> churn.run(shares.of(OPERATIONS)));
                final Future<?> reading = threads.submit(() -> reader.run(shares.of(MATCHES)));
                writing.get();
                reading.get();
                threads.submit(() -> reader.compareExactly(churn)).get();
                IndexInvariants.check(index);
            }
            System.out.printf(
                    "%d slots: %d operations, %d refused, %d matches, %d pinned blocks hidden of"
                            + " %d, %d runs%n",
                    slots,
                    churn.operations,
                    churn.refused,
                    reader.matches,
                    reader.hidden,
                    reader.pinned,
                    index.tree().runs());
        }
    }

    /**
     * The tree of parts and what each slot may store of it. Part 0..7 begins prompts, 8..31 goes on
     * behind part {@code p / 4 - 2}, 32..127 behind part {@code p / 4}.
     */
    private static final class Prompts {
        private static final int FIRST_LEAF = 32;
        private static final int PARTS = 128;

        final int slots;
        private final int longest;

        Prompts(int slots, int longest) {
            this.slots = slots;
            this.longest = longest;
        }

        int count() {
            return PARTS - FIRST_LEAF;
        }

        /** Parts of a prompt, from the root. */
        int[] parts(int prompt) {
            final int leaf = FIRST_LEAF + prompt;
            final int middle = leaf / 4;
            return new int[] {middle / 4 - 2, middle, leaf};
        }

        int length(int part) {
            return 1 + Math.floorMod(BlockHasher.nextSequenceHash(7, part), longest);
        }

        /** Blocks of a part that a slot ever stores. */
        int limit(int slot, int part) {
            final long random = BlockHasher.nextSequenceHash(slot, part);
            final int length = length(part);
            return (random & 1) == 0 || slot == slots - 1
                    ? length
                    : (int) Math.floorMod(random >>> 1, length + 1L);
        }

        long local(int part, int block) {
            return part * 10_000L + block;
        }

        /** All blocks of a prompt. */
        long[] locals(int prompt) {
            final int[] parts = parts(prompt);
            int count = 0;
            for (int part : parts) {
                count += length(part);
            }
            final long[] locals = new long[count];
            int next = 0;
            for (int part : parts) {
                for (int block = 0; block < length(part); block++) {
                    locals[next++] = local(part, block);
                }
            }
            return locals;
        }

        /** Leading blocks of a prompt that a slot ever stores. */
        int limitOfPrompt(int slot, int prompt) {
            int limit = 0;
            for (int part : parts(prompt)) {
                limit += limit(slot, part);
                if (limit(slot, part) < length(part)) {
                    break;
                }
            }
            return limit;
        }
    }

    /** The writer, and what is held when it is quiet. */
    private static final class Churn {
        private final Random random;
        private final PrefixIndex index;
        private final Prompts prompts;
        private final BitSet[][] held;
        private long operations;
        private long refused;
        private long forgotten;

        Churn(Random random, PrefixIndex index, Prompts prompts) {
            this.random = random;
            this.index = index;
            this.prompts = prompts;
            this.held = new BitSet[prompts.slots][Prompts.PARTS];
            for (BitSet[] parts : held) {
                for (int part = 0; part < parts.length; part++) {
                    parts[part] = new BitSet();
                }
            }
        }

        void pin() {
            for (int prompt = 0; prompt < PINNED_PROMPTS; prompt++) {
                int parent = -1;
                for (int part : prompts.parts(prompt)) {
                    store(prompts.slots - 1, parent, part, 0, prompts.length(part));
                    parent = part;
                }
            }
            assertEquals(0, refused);
        }

        void run(Shares.Share share) {
            try (share) {
                while (share.goesOn()) {
                    change();
                    operations++;
                }
            }
        }

        private void change() {
            final int slot = random.nextInt(Math.max(1, prompts.slots - 1));
            final int[] parts = prompts.parts(random.nextInt(prompts.count()));
            switch (random.nextInt(8)) {
                case 0, 1, 2, 3 -> storePrompt(slot, parts);
                case 4 -> removeSome(slot, parts[random.nextInt(parts.length)]);
                case 5, 6 -> removeEnd(slot, parts);
                default -> {
                    if (random.nextInt(20) == 0) {
                        index.clear(slot);
                        for (BitSet part : held[slot]) {
                            part.clear();
                        }
                    }
                }
            }
        }

        /** Stores a prompt to some depth, in steps, as an engine does that answers. */
        private void storePrompt(int slot, int[] parts) {
            int parent = -1;
            for (int part : parts) {
                final int limit = prompts.limit(slot, part);
                int from = Math.min(held[slot][part].nextClearBit(0), limit);
                if (from > 0 && random.nextInt(4) == 0) {
                    from = 0;
                }
                while (from < limit) {
                    final int to = from + 1 + random.nextInt(limit - from);
                    store(slot, parent, part, from, to);
                    if (!held[slot][part].get(to - 1) || random.nextInt(6) == 0) {
                        return;
                    }
                    from = to;
                }
                if (limit < prompts.length(part) || !held[slot][part].get(limit - 1)) {
                    return;
                }
                parent = part;
            }
        }

        private void store(int slot, int parent, int part, int from, int to) {
            final long[] names = new long[to - from];
            final long[] locals = new long[to - from];
            for (int block = from; block < to; block++) {
                names[block - from] = name(slot, part, block);
                locals[block - from] = prompts.local(part, block);
            }
            final boolean root = from == 0 && parent < 0;
            final long parentName =
                    from > 0
                            ? name(slot, part, from - 1)
                            : parent < 0 ? 0 : name(slot, parent, prompts.length(parent) - 1);
            final StoreResult result =
                    index.store(slot, root, parentName, names, locals, names.length, true);
            if (result == StoreResult.STORED) {
                held[slot][part].set(from, to);
            } else {
                refused++;
            }
            forget();
        }

        private void removeSome(int slot, int part) {
            final int length = prompts.length(part);
            final int from = random.nextInt(length);
            remove(slot, part, from, from + 1 + random.nextInt(length - from));
        }

        private void removeEnd(int slot, int[] parts) {
            for (int i = parts.length - 1; i >= 0; i--) {
                remove(slot, parts[i], 0, prompts.length(parts[i]));
                if (random.nextInt(3) > 0) {
                    return;
                }
            }
        }

        /** The last block first. */
        private void remove(int slot, int part, int from, int to) {
            final BitSet mine = held[slot][part];
            final long[] names = new long[to - from];
            int count = 0;
            for (int block = to - 1; block >= from; block--) {
                if (mine.get(block)) {
                    names[count++] = name(slot, part, block);
                }
            }
            mine.clear(from, to);
            index.remove(slot, names, count, CopyRule.LAST_COPY);
            forget();
        }

        /** Without memory to note a hole the index gives up what is behind it. */
        private void forget() {
            if (index.forgottenBlocks() == forgotten) {
                return;
            }
            forgotten = index.forgottenBlocks();
            for (BitSet[] parts : held) {
                for (BitSet part : parts) {
                    part.clear();
                }
            }
            index.forEach(
                    (slot, name, sequence, copies) ->
                            held[slot][(int) (name >> 16 & 0xFFF)].set((int) (name & 0xFFFF)));
        }

        private static long name(int slot, int part, int block) {
            return (long) slot << 28 | (long) part << 16 | block;
        }
    }

    /** The reader. */
    private static final class Reader {
        private final PrefixIndex index;
        private final Prompts prompts;
        private final OverlapScores scores;
        private final long[][] locals;
        private int prompt;
        private long matches;
        private long hidden;
        private long pinned;

        Reader(PrefixIndex index, Prompts prompts) {
            this.index = index;
            this.prompts = prompts;
            this.scores = new OverlapScores(prompts.slots);
            this.locals = new long[prompts.count()][];
            for (int p = 0; p < locals.length; p++) {
                locals[p] = prompts.locals(p);
            }
        }

        void run(Shares.Share share) {
            try (share) {
                while (share.goesOn()) {
                    read();
                }
            }
        }

        private void read() {
            prompt = (prompt + 1) % prompts.count();
            match();
            for (int i = 0; i < scores.matchedSlots(); i++) {
                final int slot = scores.slotAt(i);
                final int limit = prompts.limitOfPrompt(slot, prompt);
                assertTrue(
                        scores.depth(slot) <= limit,
                        () -> "slot=" + slot + ", limit=" + limit + ", found=" + scores);
            }
            if (prompt < PINNED_PROMPTS) {
                pinned += locals[prompt].length;
                hidden += locals[prompt].length - scores.depth(prompts.slots - 1);
            }
        }

        void compareExactly(Churn churn) {
            for (prompt = 0; prompt < prompts.count(); prompt++) {
                match();
                for (int slot = 0; slot < prompts.slots; slot++) {
                    int depth = 0;
                    for (int part : prompts.parts(prompt)) {
                        final int leading = churn.held[slot][part].nextClearBit(0);
                        depth += leading;
                        if (leading < prompts.length(part)) {
                            break;
                        }
                    }
                    assertEquals(depth, scores.depth(slot));
                }
            }
        }

        private void match() {
            index.match(locals[prompt], locals[prompt].length, scores);
            matches++;
        }
    }
}
