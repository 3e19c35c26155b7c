package io.kvasir.core.index;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.util.SplittableRandom;

/**
 * What an event costs is bounded by its own blocks, however many the worker holds: counted in lines
 * followed, entries verified and entries moved by the engine-hash index beyond the line of each
 * engine hash itself.
 */
class PrefixIndexCostTest {
    private static final int PROMPT = 20;

    /** One event may split a bucket, and follow what a few of them have in overflow. */
    private static final long ALLOWED_PER_EVENT = 48;

    private static final long ALLOWED_PER_BLOCK = 8;

    private final SplittableRandom random = new SplittableRandom(11);
    private final long[] names = new long[PROMPT];
    private final long[] locals = new long[PROMPT];
    private final long[] one = new long[1];
    private final long[] oneLocal = new long[1];

    @ParameterizedTest(name = "{0} prompts held")
    @ValueSource(ints = {50, 1_000})
    void eventsCostTheirOwnBlocksWithRoomAndAtTheLimit(int prompts) {
        final long blocks = (long) prompts * PROMPT;
        final PrefixIndexConfig config =
                new PrefixIndexConfig(2, blocks, 3 * blocks).withBudgetBytes(64 << 20);
        try (PrefixIndex index = new PrefixIndex(config)) {
            final long[] middles = new long[prompts];
            final long[][] paths = new long[prompts][];
            for (int p = 0; p < prompts; p++) {
                fresh();
                middles[p] = names[PROMPT / 2];
                paths[p] = locals.clone();
                assertCost(index, PROMPT, StoreResult.STORED, true, 0, names, locals);
            }
            assertEquals(blocks, index.blocks());
            for (int i = 0; i < 300; i++) {
                eventsThatChangeNothing(index, middles);
                secondNames(index, paths[random.nextInt(prompts)]);
            }
            for (int i = 0; i < 300; i++) {
                removalFromTheMiddle(index, middles, prompts);
                branchFromTheMiddle(index, middles[random.nextInt(prompts)]);
            }
        }
    }

    @ParameterizedTest(name = "{0} prompts held")
    @ValueSource(ints = {50, 1_000})
    void storesThatEvictCostTheirOwnBlocks(int prompts) {
        final long blocks = (long) prompts * PROMPT;
        final PrefixIndexConfig config =
                new PrefixIndexConfig(3, 2 * blocks, blocks, 64 << 20, CapacityRule.EVICT);
        try (PrefixIndex index = new PrefixIndex(config)) {
            for (int p = 0; p < prompts; p++) {
                fresh();
                assertEquals(
                        StoreResult.STORED, index.store(0, true, 0, names, locals, PROMPT, true));
            }
            final long[] held = new long[1];
            for (int p = 0; p < 2 * prompts; p++) {
                fresh();
                assertEvicting(index, p % 3, true, 0, names, locals, PROMPT);
                held[0] = names[PROMPT - 1];
                for (int i = 0; i < 10; i++) {
                    one[0] = random.nextLong();
                    oneLocal[0] = random.nextLong();
                    assertEvicting(index, p % 3, false, held[0], one, oneLocal, 1);
                    held[0] = one[0];
                }
            }
            assertEquals(blocks, index.heldBlocks());
            assertEquals(0, index.capacityRefusals() + index.missingParents());
        }
    }

    private static void assertEvicting(
            PrefixIndex index,
            int slot,
            boolean root,
            long parent,
            long[] engineHashes,
            long[] localHashes,
            int count) {
        final long before = allSteps(index);
        assertEquals(
                StoreResult.STORED,
                index.store(slot, root, parent, engineHashes, localHashes, count, true));
        final long steps = allSteps(index) - before;
        assertTrue(
                steps <= 2 * (ALLOWED_PER_EVENT + ALLOWED_PER_BLOCK * count),
                () -> "steps=" + steps + ", blocks=" + count);
    }

    private static long allSteps(PrefixIndex index) {
        long steps = index.evictor().steps();
        for (int slot = 0; slot < 3; slot++) {
            steps += index.names(slot).index().steps();
        }
        return steps;
    }

    private void eventsThatChangeNothing(PrefixIndex index, long[] middles) {
        one[0] = random.nextLong();
        oneLocal[0] = random.nextLong();
        assertRemoval(index, one, 1);
        final StoreResult unheld =
                index.missingBlocks(0) > 0
                        ? StoreResult.MISSING_PARENT
                        : StoreResult.UNKNOWN_PARENT;
        assertCost(index, 1, unheld, false, random.nextLong(), one, oneLocal);
        fresh();
        assertRemoval(index, names, PROMPT);
        assertCost(index, PROMPT, StoreResult.CAPACITY, true, 0, names, locals);
        final long middle = middles[random.nextInt(middles.length)];
        if (index.names(0).position(middle) != HeldRuns.NO_HELD_RUN) {
            assertCost(index, PROMPT, StoreResult.CAPACITY, false, middle, names, locals);
        }
    }

    /** Other engine hashes for tokens that the slot holds, as with cache salts. */
    private void secondNames(PrefixIndex index, long[] path) {
        fresh();
        final long before = steps(index);
        assertEquals(StoreResult.STORED, index.store(0, true, 0, names, path, PROMPT, true));
        assertBounded(index, before, 2 * PROMPT);
        final long removed = steps(index);
        assertEquals(0, index.remove(0, names, PROMPT, CopyRule.PHYSICAL));
        assertBounded(index, removed, 2 * PROMPT);
    }

    private void removalFromTheMiddle(PrefixIndex index, long[] middles, int prompts) {
        final int p = random.nextInt(prompts);
        one[0] = middles[p];
        final long before = steps(index);
        index.remove(0, one, 1, CopyRule.PHYSICAL);
        assertEquals(HeldRuns.NO_HELD_RUN, index.names(0).position(one[0]));
        assertBounded(index, before, 1);
    }

    private void branchFromTheMiddle(PrefixIndex index, long middle) {
        one[0] = random.nextLong();
        oneLocal[0] = random.nextLong();
        final long before = steps(index);
        index.store(0, false, middle, one, oneLocal, 1, true);
        assertBounded(index, before, 1);
    }

    private void assertCost(
            PrefixIndex index,
            int count,
            StoreResult expected,
            boolean root,
            long parent,
            long[] engineHashes,
            long[] localHashes) {
        final long before = steps(index);
        assertEquals(
                expected, index.store(0, root, parent, engineHashes, localHashes, count, true));
        assertBounded(index, before, count);
    }

    private void assertRemoval(PrefixIndex index, long[] engineHashes, int count) {
        final long before = steps(index);
        final long known = index.missingRemovals();
        final int unknown = index.remove(0, engineHashes, count, CopyRule.PHYSICAL);
        assertEquals(count, unknown + index.missingRemovals() - known);
        assertBounded(index, before, count);
    }

    private static void assertBounded(PrefixIndex index, long before, int count) {
        final long steps = steps(index) - before;
        assertTrue(
                steps <= ALLOWED_PER_EVENT + ALLOWED_PER_BLOCK * count,
                () -> "steps=" + steps + ", blocks=" + count);
    }

    private static long steps(PrefixIndex index) {
        return index.names(0).index().steps();
    }

    private void fresh() {
        for (int i = 0; i < PROMPT; i++) {
            names[i] = random.nextLong();
            locals[i] = random.nextLong();
        }
    }
}
