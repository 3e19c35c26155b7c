package io.kvasir.bench;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.kvasir.core.index.CopyRule;
import io.kvasir.core.index.PrefixIndex;
import io.kvasir.core.index.PrefixIndexConfig;
import io.kvasir.core.index.StoreResult;
import io.kvasir.core.radix.OverlapScores;
import io.kvasir.opstreams.alternatives.HashMapIndex;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.Set;

class PromptsTest {
    @ParameterizedTest
    @CsvSource({"256, 8", "1024, 64"})
    void bothIndexesAnswerEveryPromptAlikeBeforeAndAfterRemovals(int depth, int workers) {
        final Prompts prompts = new Prompts(depth, workers);
        final HashMapIndex onHeap = new HashMapIndex(workers);
        final int[] depths = new int[workers];
        final OverlapScores scores = new OverlapScores(workers);
        final PrefixIndexConfig config =
                new PrefixIndexConfig(workers, Prompts.BLOCKS, prompts.held());
        try (PrefixIndex offHeap = new PrefixIndex(config)) {
            prompts.announce(
                    (slot, names, local, count) -> {
                        assertEquals(
                                StoreResult.STORED,
                                offHeap.store(slot, true, 0, names, local, count, false));
                        onHeap.storeRoot(slot, names, local, count);
                    });
            assertEquals(Prompts.BLOCKS, offHeap.blocks());
            assertEquals(prompts.held(), offHeap.heldBlocks());
            assertAlike(prompts, offHeap, onHeap, scores, depths);

            prompts.announce(
                    (slot, names, local, count) -> {
                        if (slot % 2 == 0) {
                            assertEquals(
                                    0, offHeap.remove(slot, names, count / 2, CopyRule.PHYSICAL));
                            assertEquals(0, onHeap.remove(slot, names, count / 2));
                        }
                    });
            assertAlike(prompts, offHeap, onHeap, scores, depths);
        }
    }

    private static void assertAlike(
            Prompts prompts,
            PrefixIndex offHeap,
            HashMapIndex onHeap,
            OverlapScores scores,
            int[] depths) {
        for (int p = 0; p < prompts.count(); p++) {
            final long[] local = prompts.localHashes(p);
            assertEquals(
                    offHeap.match(local, local.length, scores),
                    onHeap.match(local, local.length, depths));
            for (int slot = 0; slot < depths.length; slot++) {
                assertEquals(scores.depth(slot), depths[slot], "prompt " + p + ", slot " + slot);
            }
        }
    }

    @ParameterizedTest
    @CsvSource({"16", "1024"})
    void everyPromptHasItsTurn(int depth) {
        final Prompts prompts = new Prompts(depth, 8);
        final Set<long[]> seen = Collections.newSetFromMap(new IdentityHashMap<>());
        for (int i = 0; i < prompts.count(); i++) {
            seen.add(prompts.next());
        }
        assertEquals(Prompts.BLOCKS / depth, seen.size());
    }
}
