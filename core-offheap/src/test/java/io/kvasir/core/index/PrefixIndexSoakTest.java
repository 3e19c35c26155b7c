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
import org.junit.jupiter.params.provider.ValueSource;

import java.util.Arrays;
import java.util.Random;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/**
 * One thread churns while another matches. Each slot stores a prompt only down to a depth that is
 * computed from both, so a reader can tell a block that the slot never held; one slot holds some
 * prompts all the time.
 */
class PrefixIndexSoakTest {
    private static final int ROUNDS = 3;
    private static final long OPERATIONS = Trials.of(4_000, 15_000); // of a round, at least
    private static final long MATCHES = Trials.of(12_000, 50_000);
    private static final int PROMPTS = 120;
    private static final int DEPTH = 24;
    private static final int PINNED_PROMPTS = 10;

    @Tag("trials")
    @ParameterizedTest
    @ValueSource(ints = {8, 130})
    void aReaderNeverSeesABlockThatTheSlotNeverHeld(int slots) throws Exception {
        final long seed = Seeds.next("PrefixIndexSoakTest " + slots);
        // room for a third of all blocks: entries become other blocks all the time
        final PrefixIndexConfig config = new PrefixIndexConfig(slots, 1_000, 4_000);
        try (PrefixIndex index = new PrefixIndex(config);
                ExecutorService threads = Executors.newFixedThreadPool(2)) {
            final Churn churn = new Churn(new Random(seed), index, slots);
            churn.pin();
            final Reader reader = new Reader(index, churn);
            for (int round = 0; round < ROUNDS; round++) {
                final Shares shares = new Shares(2);
                final Future<?> writing = threads.submit(() -> churn.run(shares.of(OPERATIONS)));
                final Future<?> reading = threads.submit(() -> reader.run(shares.of(MATCHES)));
                writing.get();
                reading.get();
                threads.submit(reader::compareExactly).get();
            }
            System.out.printf(
                    "%d slots: %d operations, %d refused, %d matches, %d blocks hidden of %d%n",
                    slots,
                    churn.operations,
                    churn.refused,
                    reader.matches,
                    reader.hidden,
                    reader.pinnedSeen + reader.hidden);
            assertTrue(reader.hidden * 50_000 <= reader.pinnedSeen, "more than 1 in 50,000 hidden");
        }
    }

    /** The writer, and what is held when it is quiet. */
    private static final class Churn {
        private final Random random;
        private final PrefixIndex index;
        private final int slots;
        private final int pinnedSlot;
        private final long[] names = new long[DEPTH];
        private final long[] locals = new long[DEPTH];
        private final boolean[][][] held;
        private long operations;
        private long refused;

        Churn(Random random, PrefixIndex index, int slots) {
            this.random = random;
            this.index = index;
            this.slots = slots;
            this.pinnedSlot = slots - 1;
            this.held = new boolean[slots][PROMPTS][DEPTH];
        }

        /**
         * Deepest block of a prompt that a slot ever stores, as a count; 0 = not even the first.
         */
        int limit(int slot, int prompt) {
            if (slot == pinnedSlot) {
                return prompt < PINNED_PROMPTS ? DEPTH : 0;
            }
            return (int) Math.floorMod(BlockHasher.nextSequenceHash(slot, prompt), DEPTH + 1L);
        }

        static void locals(int prompt, long[] out) {
            for (int i = 0; i < DEPTH; i++) {
                out[i] = prompt * 1_000L + i;
            }
        }

        void pin() {
            for (int prompt = 0; prompt < PINNED_PROMPTS; prompt++) {
                assertEquals(StoreResult.STORED, store(pinnedSlot, prompt, 0, DEPTH));
            }
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
            final int slot = random.nextInt(slots - 1);
            final int prompt = random.nextInt(PROMPTS);
            final int limit = limit(slot, prompt);
            if (random.nextInt(400) == 0) {
                index.clear(slot);
                Arrays.stream(held[slot]).forEach(blocks -> Arrays.fill(blocks, false));
            } else if (limit > 0 && random.nextBoolean()) {
                storeSome(slot, prompt, limit);
            } else if (limit > 0) {
                removeSome(slot, prompt, limit);
            }
        }

        private void storeSome(int slot, int prompt, int limit) {
            int from = random.nextInt(limit);
            from = from > 0 && held[slot][prompt][from - 1] ? from : 0;
            final int to = from + 1 + random.nextInt(limit - from);
            if (store(slot, prompt, from, to) != StoreResult.STORED) {
                refused++;
            }
        }

        private StoreResult store(int slot, int prompt, int from, int to) {
            locals(prompt, locals);
            final long[] part = Arrays.copyOfRange(locals, from, to);
            for (int i = from; i < to; i++) {
                names[i - from] = name(slot, prompt, i);
            }
            final StoreResult result =
                    index.store(
                            slot,
                            from == 0,
                            name(slot, prompt, from - 1),
                            names,
                            part,
                            part.length,
                            true);
            if (result == StoreResult.STORED) {
                Arrays.fill(held[slot][prompt], from, to, true);
            }
            return result;
        }

        private void removeSome(int slot, int prompt, int limit) {
            final int from = random.nextInt(limit);
            for (int i = from; i < limit; i++) {
                names[i - from] = name(slot, prompt, i);
                held[slot][prompt][i] = false;
            }
            index.remove(slot, names, limit - from, CopyRule.PHYSICAL);
        }

        private static long name(int slot, int prompt, int block) {
            return (slot * 1_000L + prompt) * 100 + block;
        }
    }

    /** The reader. */
    private static final class Reader {
        private final PrefixIndex index;
        private final Churn churn;
        private final OverlapScores scores;
        private final long[] locals = new long[DEPTH];
        private int prompt;
        private long matches;
        private long hidden;
        private long pinnedSeen;

        Reader(PrefixIndex index, Churn churn) {
            this.index = index;
            this.churn = churn;
            this.scores = new OverlapScores(churn.slots);
        }

        void run(Shares.Share share) {
            try (share) {
                while (share.goesOn()) {
                    read();
                }
            }
        }

        private void read() {
            prompt = (prompt + 1) % PROMPTS;
            match();
            for (int i = 0; i < scores.matchedSlots(); i++) {
                final int slot = scores.slotAt(i);
                final int limit = churn.limit(slot, prompt);
                assertTrue(
                        scores.depth(slot) <= limit,
                        () -> "slot=" + slot + ", limit=" + limit + ", found=" + scores);
            }
            if (prompt < PINNED_PROMPTS) {
                pinnedSeen += scores.depth(churn.pinnedSlot);
                hidden += DEPTH - scores.depth(churn.pinnedSlot);
            }
        }

        void compareExactly() {
            for (prompt = 0; prompt < PROMPTS; prompt++) {
                match();
                for (int slot = 0; slot < churn.slots; slot++) {
                    int depth = 0;
                    while (depth < DEPTH && churn.held[slot][prompt][depth]) {
                        depth++;
                    }
                    assertEquals(depth, scores.depth(slot));
                }
            }
        }

        private void match() {
            Churn.locals(prompt, locals);
            index.match(locals, DEPTH, scores);
            matches++;
        }
    }
}
