package io.kvasir.core.index;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.kvasir.core.radix.OverlapScores;
import io.kvasir.testsupport.Allocations;
import io.kvasir.testsupport.Trials;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

class PrefixIndexMemoryTest {
    private static final int DEPTH = 50;
    private static final int LIVE_PROMPTS = 20;
    private static final int SLOTS = 4;
    private static final int BLOCKS = DEPTH * LIVE_PROMPTS;

    private final long[] names = new long[DEPTH];
    private final long[] locals = new long[DEPTH];
    private final OverlapScores scores = new OverlapScores(SLOTS);

    @Tag("trials")
    @Test
    void churnOfManyTimesTheCapacityNeedsNoMoreMemoryAndIsNeverRefused() {
        try (PrefixIndex index = new PrefixIndex(new PrefixIndexConfig(SLOTS, BLOCKS, BLOCKS))) {
            final long bytes = index.bytes();
            for (int prompt = 0; prompt < Trials.of(200, 1_000) * LIVE_PROMPTS; prompt++) {
                if (prompt >= LIVE_PROMPTS) {
                    remove(index, prompt - LIVE_PROMPTS);
                }
                assertEquals(StoreResult.STORED, store(index, prompt));
                assertEquals(DEPTH, index.match(locals, DEPTH, scores));
            }
            assertEquals(BLOCKS, index.blocks());
            assertEquals(BLOCKS, index.heldBlocks());
            assertEquals(bytes, index.bytes());
        }
    }

    @Test
    void matchingStoringAndRemovingAllocateNothing() {
        try (PrefixIndex index = new PrefixIndex(new PrefixIndexConfig(SLOTS, BLOCKS, BLOCKS))) {
            store(index, 1);
            assertEquals(
                    0, Allocations.bytesPerRound(5_000, () -> index.match(locals, DEPTH, scores)));
            assertEquals(
                    0,
                    Allocations.bytesPerRound(
                            5_000,
                            () -> {
                                store(index, 2);
                                remove(index, 2);
                            }));
        }
    }

    @Tag("trials")
    @Test
    void storesBehindBlocksInTheMiddleOfPromptsNeedNoMoreMemoryInTheEnd() {
        try (PrefixIndex index = new PrefixIndex(new PrefixIndexConfig(1, 1 << 16, 1 << 16))) {
            long used = 0;
            for (int prompt = 0; prompt < Trials.of(1_500, 5_000); prompt++) {
                name(prompt);
                index.store(0, true, 0, names, locals, DEPTH, true);
                final long[] name = {-1_000_000_000L - prompt};
                for (int block = 0; block < DEPTH; block += 10) {
                    assertEquals(
                            StoreResult.STORED,
                            index.store(0, false, names[block], name, new long[] {7}, 1, true));
                    assertEquals(0, index.remove(0, name, 1, CopyRule.LAST_COPY));
                }
                assertEquals(0, index.remove(0, names, DEPTH, CopyRule.LAST_COPY));
                assertEquals(0, index.blocks());
                if (prompt == 500) {
                    used = index.usedBytes();
                }
            }
            assertEquals(used, index.usedBytes());
        }
    }

    private StoreResult store(PrefixIndex index, int prompt) {
        name(prompt);
        return index.store(prompt % SLOTS, true, 0, names, locals, DEPTH, false);
    }

    private void remove(PrefixIndex index, int prompt) {
        name(prompt);
        index.remove(prompt % SLOTS, names, DEPTH, CopyRule.PHYSICAL);
    }

    private void name(int prompt) {
        for (int i = 0; i < DEPTH; i++) {
            locals[i] = prompt * 100L + i;
            names[i] = -locals[i];
        }
    }
}
