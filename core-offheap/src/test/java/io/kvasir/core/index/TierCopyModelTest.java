package io.kvasir.core.index;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.memory.MemoryGate;
import io.kvasir.core.radix.OverlapScores;
import io.kvasir.testsupport.NaiveTiers;
import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.Set;

/**
 * The first event of a lower tier has the blocks of the device copied, holes between them. Readers
 * that match meanwhile find no prefix that goes on over a hole.
 */
class TierCopyModelTest {
    private static final int STORIES = 60;
    private static final int OTHER_BLOCKS = 60;

    @ParameterizedTest
    @EnumSource(names = {"HOST", "DISK"})
    void aReaderFindsNoHoleHeldWhileTheDeviceIsCopied(StorageTier tier) {
        final Random random = new Random(Seeds.next("TierCopyModelTest " + tier));
        int looks = 0;
        for (int i = 0; i < STORIES; i++) {
            looks += tell(random, tier);
        }
        assertTrue(looks > 0, "nothing was given up during a copy: no reader came in between");
    }

    /** Returns how often was read during the copy. */
    private static int tell(Random random, StorageTier tier) {
        try (MemoryGate gate = new MemoryGate("the test")) {
            final PrefixIndex device =
                    new PrefixIndex(new PrefixIndexConfig(2, 10_000, 10_000), gate);
            final LowerTiers lower =
                    new LowerTiers(
                            device,
                            new LowerTiersConfig(
                                    Set.of(tier),
                                    new PrefixIndexConfig(
                                            2,
                                            10_000,
                                            OTHER_BLOCKS + 20,
                                            4 << 20,
                                            CapacityRule.EVICT)),
                            gate);
            final NaiveTiers naive = new NaiveTiers(1, 1);
            final List<List<Long>> prompts = new ArrayList<>();
            final int[] looks = {0};
            lower.indexOrNull(tier)
                    .onEviction(
                            (slot, names, count) -> { // in the middle of what the writer does
                                looks[0]++;
                                compare(lower, tier, naive, prompts);
                            });
            final long[] others = random.longs(OTHER_BLOCKS).toArray();
            lower.stored(1, tier, true, 0, others, others, OTHER_BLOCKS);
            for (int i = 0; i < 6; i++) {
                final List<Long> prompt = random.longs(12).boxed().toList();
                prompts.add(prompt);
                naive.store(0, 0, null, prompt, prompt);
                device.store(0, true, 0, longs(prompt), longs(prompt), 12, false);
                final long[] hole = {prompt.get(random.nextInt(11))};
                naive.remove(0, 0, hole[0]);
                device.remove(0, hole, 1, CopyRule.PHYSICAL);
            }
            final long[] first = {random.nextLong()};
            lower.stored(0, tier, true, 0, first, first, 1);
            compare(lower, tier, naive, prompts);
            final OverlapScores scores = new OverlapScores(2);
            assertEquals(1, lower.match(tier, first, 1, scores), "a reader after the copy");
            return looks[0];
        }
    }

    private static void compare(
            LowerTiers lower, StorageTier tier, NaiveTiers naive, List<List<Long>> prompts) {
        final OverlapScores scores = new OverlapScores(2);
        for (List<Long> prompt : prompts) {
            lower.match(tier, longs(prompt), prompt.size(), scores);
            final int most = naive.depth(0, 0, prompt);
            assertTrue(scores.depth(0) <= most, () -> scores.depth(0) + " blocks, not " + most);
        }
    }

    private static long[] longs(List<Long> values) {
        return values.stream().mapToLong(Long::longValue).toArray();
    }
}
