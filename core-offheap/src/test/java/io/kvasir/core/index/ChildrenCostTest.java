package io.kvasir.core.index;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.kvasir.core.memory.StoreCounter;

import org.junit.jupiter.api.Test;

import java.util.SplittableRandom;

/** What an event costs does not grow with the children of a run: counted in stores to memory. */
class ChildrenCostTest {
    private static final int SYSTEM = 64;
    private static final int CHILDREN = 20_000;
    private static final int ALLOWED = 500;

    private final SplittableRandom random = new SplittableRandom(7);

    private static StoreResult store(PrefixIndex index, long[] names, long[] locals) {
        return index.store(0, true, 0, names, locals, locals.length, true);
    }

    /** A prompt with random blocks behind some of the system prompt's. */
    private long[] behind(long[] system, int blocks) {
        final long[] prompt = new long[blocks + 1];
        System.arraycopy(system, 0, prompt, 0, blocks);
        prompt[blocks] = random.nextLong();
        return prompt;
    }

    @Test
    void aSplitAndItsEndLeaveTheChildrenAlone() {
        assumeTrue(StoreCounter.isPossible(), "stores can not be seen");
        final long[] system = random.longs(SYSTEM).toArray();
        final PrefixIndexConfig config =
                new PrefixIndexConfig(2, 1 << 20, 1 << 20).withBudgetBytes(32 << 20);
        try (PrefixIndex index = new PrefixIndex(config);
                StoreCounter counter = new StoreCounter(index.arena().memory())) {
            for (int i = 0; i < CHILDREN; i++) {
                final long[] prompt = behind(system, SYSTEM);
                assertEquals(StoreResult.STORED, store(index, prompt, prompt));
            }
            for (int at = 1; at < SYSTEM; at += 9) {
                counter.takeStores();
                final long[] branch = behind(system, at);
                assertEquals(StoreResult.STORED, store(index, branch, branch));
                final long split = counter.takeStores();
                assertTrue(split < ALLOWED, () -> "stores of a split: " + split);
                assertEquals(
                        0,
                        index.remove(0, new long[] {branch[at]}, 1, CopyRule.PHYSICAL),
                        "unknown names");
                final long join = counter.takeStores();
                assertTrue(join < ALLOWED, () -> "stores of a join: " + join);
            }
            assertEquals(CHILDREN + 1, index.tree().runs());
            IndexInvariants.check(index);
        }
    }
}
