package io.kvasir.pipeline.wire;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.index.CopyRule;
import io.kvasir.core.index.StorageTier;
import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

import java.util.HashMap;
import java.util.Map;
import java.util.Random;
import java.util.function.Consumer;

class ChainSeedsTest {
    private static final long ABSENT = -7;

    private final KvBatch batch = new KvBatch();

    private void follow(ChainSeeds seeds, CopyRule rule, Consumer<KvBatch> operations) {
        batch.reset(0, 0, rule, false, ApplyListener.NONE);
        operations.accept(batch);
        seeds.follow(batch);
    }

    private void stored(ChainSeeds seeds, long block) {
        seeds.put(block, -block);
        follow(
                seeds,
                CopyRule.PHYSICAL,
                to -> to.addStored(true, 0, new long[] {block}, new long[1], 1));
    }

    private void removed(ChainSeeds seeds, long block) {
        follow(seeds, CopyRule.PHYSICAL, to -> to.addRemoved(new long[] {block}, 1));
    }

    /** Stores other blocks and removes them, so many that all removed before are forgotten. */
    private void removeOthers(ChainSeeds seeds) {
        for (long block = 1_000; block < 5_000; block++) {
            stored(seeds, block);
            removed(seeds, block);
        }
    }

    @Test
    void whatWasPutIsFound() {
        final ChainSeeds seeds = new ChainSeeds(1 << 16, 1 << 15);
        assertEquals(ABSENT, seeds.get(5, ABSENT));
        final Random random = new Random(Seeds.next("ChainSeedsTest"));
        final Map<Long, Long> model = new HashMap<>();
        for (int i = 0; i < 20_000; i++) {
            final long key = random.nextInt(30_000) - 15_000L;
            final long value = random.nextLong();
            if (key != 1) { // shares its place with 0
                assertTrue(seeds.put(key, value));
                model.put(key, value);
            }
        }
        model.forEach((key, value) -> assertEquals(value, seeds.get(key, ABSENT)));
        seeds.clear();
        model.forEach((key, value) -> assertEquals(ABSENT, seeds.get(key, ABSENT)));
    }

    @Test
    void theTableIsThatOfAMap() {
        final SeedTable table = new SeedTable();
        final Random random = new Random(Seeds.next("ChainSeedsTest.table"));
        final Map<Long, Long> model = new HashMap<>();
        for (int i = 0; i < 200_000; i++) {
            final long key = 2L + random.nextInt(3_000);
            final int at = table.find(key);
            assertEquals(model.getOrDefault(key, ABSENT), at < 0 ? ABSENT : table.seed(at));
            if (at >= 0) {
                assertEquals((int) key, table.holders(at));
            }
            if (random.nextBoolean()) {
                table.put(key, i);
                table.holders(table.find(key), (int) key);
                model.put(key, (long) i);
            } else if (at >= 0) {
                table.remove(at);
                model.remove(key);
            }
            assertEquals(model.size(), table.size());
        }
    }

    @Test
    void whatIsHeldIsKept() {
        final ChainSeeds seeds = new ChainSeeds(1_000, 1_000);
        stored(seeds, 42);
        removeOthers(seeds);
        assertEquals(-42, seeds.get(42, ABSENT));
    }

    @Test
    void aBlockIsHeldUntilItsLastCopyIsRemoved() {
        final ChainSeeds seeds = new ChainSeeds(1_000, 1_000);
        stored(seeds, 42);
        stored(seeds, 42);
        removed(seeds, 42);
        removeOthers(seeds);
        assertEquals(-42, seeds.get(42, ABSENT));
        removed(seeds, 42);
        removeOthers(seeds);
        assertEquals(ABSENT, seeds.get(42, ABSENT));
    }

    @Test
    void oneRemovalIsThatOfAllCopiesWhereItMeansTheLast() {
        final ChainSeeds seeds = new ChainSeeds(1_000, 1_000);
        stored(seeds, 42);
        stored(seeds, 42);
        follow(seeds, CopyRule.LAST_COPY, to -> to.addRemoved(new long[] {42}, 1));
        removeOthers(seeds);
        assertEquals(ABSENT, seeds.get(42, ABSENT));
    }

    @Test
    void aRemovalThatSaysHowManyCopiesAreLeftIsBelieved() {
        final ChainSeeds seeds = new ChainSeeds(1_000, 1_000);
        stored(seeds, 42);
        follow(seeds, CopyRule.PHYSICAL, to -> to.addRemovedTo(42, 2));
        removed(seeds, 42);
        removeOthers(seeds);
        assertEquals(-42, seeds.get(42, ABSENT));
        follow(seeds, CopyRule.PHYSICAL, to -> to.addRemovedTo(42, 0));
        removeOthers(seeds);
        assertEquals(ABSENT, seeds.get(42, ABSENT));
    }

    @ParameterizedTest
    @EnumSource(
            value = StorageTier.class,
            names = {"HOST", "DISK", "SHARED"})
    void aBlockIsHeldWhileALowerTierHasIt(StorageTier tier) {
        final ChainSeeds seeds = new ChainSeeds(1_000, 1_000);
        stored(seeds, 42);
        for (int i = 0; i < 2; i++) { // where a lower tier has it, it has one copy
            follow(seeds, CopyRule.PHYSICAL, to -> to.addNamed(tier, new long[] {42}, 1));
        }
        removed(seeds, 42);
        removeOthers(seeds);
        assertEquals(-42, seeds.get(42, ABSENT));
        follow(seeds, CopyRule.PHYSICAL, to -> to.addRemoved(tier, new long[] {42}, 1));
        removeOthers(seeds);
        assertEquals(ABSENT, seeds.get(42, ABSENT));
    }

    @Test
    void memoryIsBounded() {
        final ChainSeeds seeds = new ChainSeeds(1_000, 1_000);
        for (long block = 1; block <= 1_000; block++) {
            assertFalse(seeds.isFull());
            stored(seeds, block);
        }
        assertTrue(seeds.isFull());
        assertFalse(seeds.put(1_001, 1));
        assertEquals(ABSENT, seeds.get(1_001, ABSENT));
        assertTrue(seeds.put(1_000, 5));
        assertEquals(5, seeds.get(1_000, ABSENT));
        removed(seeds, 1);
        assertTrue(seeds.put(1_001, 1));
    }

    @Test
    void ofRemovedBlocksTheLatestHalfIsKept() {
        final ChainSeeds seeds = new ChainSeeds(1_000, 1_000);
        for (long block = 1; block <= 100_000; block++) {
            stored(seeds, block);
            removed(seeds, block);
        }
        int found = 0;
        for (long block = 1; block <= 100_000; block++) {
            found += seeds.get(block, ABSENT) == -block ? 1 : 0;
        }
        assertTrue(found >= 500 && found <= 1_000, "found=" + found);
    }

    @Test
    void ofRemovedBlocksWhatIsUsedIsKept() {
        final ChainSeeds seeds = new ChainSeeds(1_000, 1_000);
        stored(seeds, 42);
        removed(seeds, 42);
        for (long block = 1_000; block < 50_000; block++) {
            stored(seeds, block);
            removed(seeds, block);
            if (block % 300 == 0) {
                assertEquals(-42, seeds.get(42, ABSENT));
            }
        }
    }

    @Test
    void whatIsRecalledIsHeldOrRemovedAsItWas() {
        final ChainSeeds before = new ChainSeeds(1_000, 1_000);
        for (long block = 1; block <= 900; block++) {
            stored(before, block);
        }
        for (long block = 1; block <= 700; block++) {
            removed(before, block);
        }
        assertEquals(-1, before.get(1, ABSENT)); // which is in both generations now
        stored(before, 300); // again
        final ChainSeeds after = new ChainSeeds(1_000, 1_000);
        after.recall(before.toArray());
        final Map<Long, Boolean> isHeld = new HashMap<>();
        final long[] pairs = after.toArray();
        for (int i = 0; i < pairs.length; i += 2) {
            assertEquals(-pairs[i], pairs[i + 1]);
            isHeld.merge(pairs[i], true, (first, second) -> !first);
        }
        assertEquals(900, isHeld.size());
        isHeld.forEach(
                (block, held) -> assertEquals(block == 300 || block > 700, held, "block " + block));
    }

    @Test
    void aSizeTooSmallIsRefused() {
        assertThrows(IllegalArgumentException.class, () -> new ChainSeeds(0, 2));
        assertThrows(IllegalArgumentException.class, () -> new ChainSeeds(1, 1));
    }
}
