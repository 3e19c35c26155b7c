package io.kvasir.core.index;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.testsupport.Seeds;
import io.kvasir.testsupport.Trials;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.Random;

/** Stores that are refused half way leave everything as it was. */
class PrefixIndexRefusalTest {
    private static final int SLOTS = 3;
    private static final int OPERATIONS = Trials.of(250, 1_500);

    @Test
    void aStoreThatNamesAHeldBlockAndANewOneAlikeIsTakenBack() {
        final PrefixIndexConfig config =
                new PrefixIndexConfig(1, 1 << 20, 1 << 20).withBudgetBytes(64 << 10);
        try (PrefixIndex index = new PrefixIndex(config)) {
            assertEquals(
                    StoreResult.STORED,
                    index.store(0, true, 0, new long[] {1}, new long[] {10}, 1, false));
            // the first two under one name, and more than there is memory for
            final int count = 20_000;
            final long[] names = new long[count];
            Arrays.setAll(names, i -> i < 2 ? 77 : 1_000 + i);
            final long[] locals = new long[count];
            Arrays.setAll(locals, i -> 10L + i);
            final Map<Long, Integer> before = contents(index);
            assertEquals(StoreResult.INVALID, index.store(0, true, 0, names, locals, count, false));
            assertEquals(before, contents(index));
            assertEquals(1, index.heldBlocks());
            IndexInvariants.check(index);
        }
    }

    @Tag("trials")
    @ParameterizedTest
    @ValueSource(ints = {64, 72, 80})
    void storesWithRepeatedNamesInTooLittleMemoryChangeNothingOrAll(int kib) {
        final Random random = new Random(Seeds.next("PrefixIndexRefusalTest " + kib));
        final PrefixIndexConfig config =
                new PrefixIndexConfig(SLOTS, 1 << 20, 1 << 20).withBudgetBytes((long) kib << 10);
        try (PrefixIndex index = new PrefixIndex(config)) {
            int stored = 0;
            for (int i = 0; i < OPERATIONS || index.capacityRefusals() == 0; i++) {
                assertTrue(i < 10_000, "never full");
                stored += step(index, random) ? 1 : 0;
                if (i % 100 == 0) {
                    IndexInvariants.check(index);
                }
            }
            assertTrue(stored > OPERATIONS / 20, "stored=" + stored);
            for (int slot = 0; slot < SLOTS; slot++) {
                index.clear(slot);
            }
            assertEquals(0, index.heldBlocks());
            assertEquals(0, index.blocks());
            IndexInvariants.check(index);
        }
    }

    /** One store or removal; says whether something was stored. */
    private static boolean step(PrefixIndex index, Random random) {
        final int slot = random.nextInt(SLOTS);
        final int count = random.nextInt(4) == 0 ? 1 + random.nextInt(700) : 1 + random.nextInt(20);
        final long[] names = new long[count];
        final int pool = random.nextInt(3) == 0 ? 30 : 3_000;
        final int first = random.nextInt(pool);
        Arrays.setAll(names, i -> random.nextInt(40) == 0 ? random.nextInt(pool) : first + i);
        if (random.nextInt(3) == 0) {
            index.remove(
                    slot,
                    names,
                    count,
                    random.nextBoolean() ? CopyRule.PHYSICAL : CopyRule.LAST_COPY);
            return false;
        }
        final long[] locals = new long[count];
        final int path = random.nextInt(6);
        Arrays.setAll(locals, i -> random.nextInt(60) == 0 ? random.nextInt(3) : path * 1_000L + i);
        final Map<Long, Integer> before = contents(index);
        final long conflicts = index.conflictingStores();
        final long forgotten = index.forgottenBlocks();
        final StoreResult result =
                index.store(
                        slot,
                        random.nextBoolean(),
                        random.nextInt(pool),
                        names,
                        locals,
                        count,
                        random.nextBoolean());
        if (index.conflictingStores() == conflicts) {
            assertEquals(forgotten, index.forgottenBlocks(), "a store forgets nothing");
            if (result != StoreResult.STORED) {
                assertEquals(before, contents(index), () -> "changed by a store: " + result);
            }
        }
        return result == StoreResult.STORED;
    }

    /** What is held: a number made of slot, engine hash and path, with its copies. */
    private static Map<Long, Integer> contents(PrefixIndex index) {
        final Map<Long, Integer> contents = new HashMap<>();
        index.forEach(
                (slot, name, sequence, copies) ->
                        contents.put(31 * (31 * name + slot) + sequence * 7, copies));
        return contents;
    }
}
