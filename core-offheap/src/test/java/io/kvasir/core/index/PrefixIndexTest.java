package io.kvasir.core.index;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.kvasir.core.radix.OverlapScores;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

import java.util.Arrays;
import java.util.stream.LongStream;

class PrefixIndexTest {
    private static final int SLOTS = 4;
    private static final long[] PROMPT = {10, 20, 30, 40};
    private static final long[] NAMES = {1, 2, 3, 4};

    private final PrefixIndex index = new PrefixIndex(new PrefixIndexConfig(SLOTS, 8, 12));
    private final OverlapScores scores = new OverlapScores(SLOTS);

    @AfterEach
    void close() {
        index.close();
    }

    @Test
    void aStoredPromptMatchesAsFarAsItGoes() {
        assertEquals(StoreResult.STORED, storeRoot(1, NAMES, PROMPT));
        assertEquals(4, index.match(PROMPT, 4, scores));
        assertEquals(2, index.match(PROMPT, 2, scores));
        assertEquals(2, index.match(new long[] {10, 20, 31}, 3, scores));
        assertEquals(0, index.match(new long[] {20, 30}, 2, scores));
        assertEquals(0, index.match(PROMPT, 0, scores));
    }

    @Test
    void slotsWithoutTheFirstBlockAreNotListed() {
        storeRoot(1, NAMES, PROMPT);
        storeRoot(3, new long[] {7}, new long[] {10});
        storeRoot(2, new long[] {7}, new long[] {11});
        index.match(PROMPT, 4, scores);
        assertEquals(2, scores.matchedSlots());
        assertEquals("{1=4, 3=1}", scores.toString());
        assertEquals(0, scores.depth(2));
        assertThrows(IndexOutOfBoundsException.class, () -> scores.slotAt(2));
    }

    @Test
    void aRefilledHoleRestoresTheWholeTail() {
        storeRoot(0, NAMES, PROMPT);
        remove(0, CopyRule.PHYSICAL, 2);
        assertEquals(1, depth(0));
        store(0, 1, new long[] {2}, new long[] {20});
        assertEquals(4, depth(0));
    }

    /** As SGLang does it: a node of its tree goes as a whole, the first block first. */
    @Test
    void whatWasStoredAtOnceIsRemovedFromItsStart() {
        for (int round = 0; round < 3; round++) {
            storeRoot(0, new long[] {1, 2}, new long[] {10, 20});
            store(0, 2, new long[] {3, 4, 5}, new long[] {30, 40, 50});
            store(0, 3, new long[] {6}, new long[] {60}); // leaves behind the node's first block
            assertEquals(0, remove(0, CopyRule.PHYSICAL, 4, 5));
            assertEquals(3, depth(0));
            assertEquals(0, remove(0, CopyRule.PHYSICAL, 6));
            assertEquals(0, remove(0, CopyRule.PHYSICAL, 3));
            assertEquals(2, depth(0));
            assertEquals(0, remove(0, CopyRule.PHYSICAL, 1, 2));
            assertEquals(0, index.heldBlocks(0));
        }
    }

    @Test
    void namesBehindEachOtherThatAreNotTheLastLeaveAHole() {
        storeRoot(0, NAMES, PROMPT);
        assertEquals(0, remove(0, CopyRule.PHYSICAL, 2, 3));
        assertEquals(1, depth(0));
        assertEquals(2, index.heldBlocks(0));
        store(0, 1, new long[] {2, 3}, new long[] {20, 30});
        assertEquals(4, depth(0));
    }

    @Test
    void anUnknownParentIsRefusedAndCounted() {
        assertEquals(StoreResult.UNKNOWN_PARENT, store(0, 99, NAMES, PROMPT));
        storeRoot(1, NAMES, PROMPT);
        assertEquals(StoreResult.UNKNOWN_PARENT, store(0, 1, new long[] {9}, new long[] {90}));
        assertEquals(2, index.unknownParents());
        assertEquals(0, index.heldBlocks(0));
    }

    @Test
    void aStoreOfNothingChangesAndCountsNothing() {
        storeRoot(0, NAMES, PROMPT);
        final long[] none = {};
        assertEquals(StoreResult.STORED, store(0, 99, none, none), "unknown parent");
        assertEquals(StoreResult.STORED, store(0, 1, none, none));
        assertEquals(StoreResult.STORED, storeRoot(1, none, none));
        assertEquals(0, index.unknownParents());
        assertEquals(NAMES.length, index.heldBlocks(0));
        assertEquals(0, index.heldBlocks(1));
    }

    @Test
    void storesThatContradictThemselvesAreRefused() {
        storeRoot(0, new long[] {9}, new long[] {5});
        assertEquals(StoreResult.INVALID, store(0, 9, new long[] {1, 9}, new long[] {10, 20}));
        assertEquals(StoreResult.INVALID, storeRoot(0, new long[] {1, 2, 1}, PROMPT));
        final long[] many = LongStream.range(0, 200).toArray();
        many[199] = 17;
        assertEquals(StoreResult.INVALID, storeRoot(0, many, many));
        assertEquals(3, index.invalidStores());
        assertEquals(1, index.heldBlocks());
    }

    @Test
    void aStoreThatDoesNotFitChangesNothing() {
        assertEquals(
                StoreResult.CAPACITY,
                storeRoot(
                        0, LongStream.range(0, 9).toArray(), LongStream.range(100, 109).toArray()));
        assertEquals(0, index.heldBlocks());
        assertEquals(0, index.blocks());
        for (int slot = 0; slot < 3; slot++) {
            assertEquals(StoreResult.STORED, storeRoot(slot, NAMES, PROMPT));
        }
        assertEquals(StoreResult.CAPACITY, storeRoot(3, NAMES, PROMPT)); // 12 held blocks
        assertEquals(2, index.capacityRefusals());
        assertEquals(4, index.blocks());
        assertEquals(12, index.heldBlocks());
        assertEquals(4, index.clear(1));
        assertEquals(StoreResult.STORED, storeRoot(3, NAMES, PROMPT));
    }

    @Test
    void everyCopyHasItsOwnRemoval() {
        storeRoot(0, NAMES, PROMPT);
        storeRoot(0, NAMES, PROMPT);
        assertEquals(0, remove(0, CopyRule.PHYSICAL, NAMES));
        assertEquals(4, depth(0));
        assertEquals(0, remove(0, CopyRule.PHYSICAL, NAMES));
        assertEquals(0, depth(0));
        assertEquals(4, remove(0, CopyRule.PHYSICAL, NAMES));
        assertEquals(4, index.unknownRemovals());
    }

    @Test
    void underTheLastCopyRuleOneRemovalTakesAll() {
        storeRoot(0, NAMES, PROMPT);
        storeRoot(0, NAMES, PROMPT);
        remove(0, CopyRule.LAST_COPY, 4);
        assertEquals(3, depth(0));
    }

    @Test
    void aRefreshIsNoNewCopyButStoresWhatIsMissing() {
        storeRoot(0, new long[] {1, 2}, new long[] {10, 20});
        index.store(0, true, 0, NAMES, PROMPT, 4, true);
        assertEquals(4, depth(0));
        remove(0, CopyRule.PHYSICAL, 1);
        assertEquals(0, depth(0));
    }

    @Test
    void announcedCopyCountsAreTakenAsTheyAre() {
        storeRoot(0, NAMES, PROMPT);
        index.removeTo(0, 1, 2);
        remove(0, CopyRule.PHYSICAL, 1);
        assertEquals(4, depth(0));
        index.removeTo(0, 1, 0);
        assertEquals(0, depth(0));
        index.removeTo(0, 1, 0);
        assertEquals(1, index.unknownRemovals());
    }

    @Test
    void aBlockWithTwoNamesIsHeldUntilTheLastOneGoes() {
        storeRoot(0, NAMES, PROMPT);
        storeRoot(0, new long[] {71, 72}, new long[] {10, 20});
        assertEquals(6, index.heldBlocks(0));
        assertEquals(4, index.blocks());
        remove(0, CopyRule.PHYSICAL, 1, 72);
        assertEquals(4, depth(0));
        remove(0, CopyRule.PHYSICAL, 71);
        assertEquals(0, depth(0));
        assertEquals(3, index.blocks());
    }

    @Test
    void aNameStoredForAnotherBlockLeavesTheOldOne() {
        storeRoot(0, NAMES, PROMPT);
        storeRoot(0, new long[] {2}, new long[] {50});
        assertEquals(1, index.conflictingStores());
        assertEquals(1, depth(0));
        assertEquals(1, index.match(new long[] {50}, 1, scores));
        assertEquals(4, index.heldBlocks(0));
    }

    @Test
    void aStoreMayTurnTheNamesOfItsOwnBlocksRound() {
        storeRoot(0, NAMES, PROMPT);
        assertEquals(StoreResult.STORED, storeRoot(0, new long[] {4, 3, 2, 1}, PROMPT));
        assertEquals(4, index.conflictingStores());
        assertEquals(4, depth(0));
        assertEquals(4, index.blocks());
        remove(0, CopyRule.PHYSICAL, 4);
        assertEquals(0, depth(0));
    }

    @Test
    void equalLocalHashesBehindDifferentPrefixesAreDifferentBlocks() {
        storeRoot(0, new long[] {1, 2, 3}, new long[] {10, 10, 10});
        storeRoot(1, new long[] {1, 2}, new long[] {20, 10});
        assertEquals(5, index.blocks());
        assertEquals(1, index.match(new long[] {10}, 1, scores));
        assertEquals("{0=1}", scores.toString());
    }

    @Test
    void zeroIsAnOrdinaryHash() {
        assertEquals(StoreResult.STORED, storeRoot(0, new long[] {0, 5}, new long[] {0, 0}));
        assertEquals(StoreResult.STORED, store(0, 0, new long[] {6}, new long[] {1}));
        assertEquals(2, index.match(new long[] {0, 0}, 2, scores));
        assertEquals(2, index.match(new long[] {0, 1}, 2, scores));
        remove(0, CopyRule.PHYSICAL, 0);
        assertEquals(0, index.match(new long[] {0}, 1, scores));
    }

    @Test
    void clearingOneSlotLeavesTheOthers() {
        storeRoot(0, NAMES, PROMPT);
        storeRoot(1, NAMES, PROMPT);
        assertEquals(4, index.clear(0));
        assertEquals(0, index.clear(0));
        index.match(PROMPT, 4, scores);
        assertEquals("{1=4}", scores.toString());
    }

    @Test
    void aSlotSaysWhichEventItHasApplied() {
        assertEquals(PrefixIndex.NO_EVENT, index.appliedSequence(3));
        index.eventApplied(3, 0);
        assertEquals(0, index.appliedSequence(3));
        index.clear(3);
        assertEquals(0, index.appliedSequence(3));
    }

    @Test
    void slotsAndCountsOutOfRangeAreRefused() {
        assertThrows(IndexOutOfBoundsException.class, () -> storeRoot(SLOTS, NAMES, PROMPT));
        assertThrows(IndexOutOfBoundsException.class, () -> storeRoot(-1, NAMES, PROMPT));
        assertThrows(
                IndexOutOfBoundsException.class,
                () -> index.store(0, true, 0, NAMES, PROMPT, 5, false));
        assertThrows(IndexOutOfBoundsException.class, () -> index.match(PROMPT, 5, scores));
        final long[] all = new long[SLOTS];
        index.appliedSequences(all, SLOTS);
        for (int slot = 0; slot < SLOTS; slot++) {
            assertEquals(index.appliedSequence(slot), all[slot]);
        }
        assertThrows(IndexOutOfBoundsException.class, () -> index.appliedSequences(all, SLOTS + 1));
        assertThrows(IndexOutOfBoundsException.class, () -> index.eventApplied(SLOTS, 1));
        assertThrows(
                IllegalArgumentException.class,
                () -> index.match(PROMPT, 4, new OverlapScores(SLOTS - 1)));
    }

    @Test
    void limitsOutOfRangeAreRefused() {
        assertThrows(IllegalArgumentException.class, () -> new PrefixIndexConfig(0, 1, 1));
        assertThrows(IllegalArgumentException.class, () -> new PrefixIndexConfig(1, 0, 1));
        assertThrows(IllegalArgumentException.class, () -> new PrefixIndexConfig(1, 1, 1L << 31));
    }

    @Test
    void closingTwiceIsHarmless() {
        index.close();
        index.close();
        assertThrows(IllegalStateException.class, () -> index.match(PROMPT, 4, scores));
    }

    private int depth(int slot) {
        index.match(PROMPT, PROMPT.length, scores);
        return scores.depth(slot);
    }

    private StoreResult storeRoot(int slot, long[] names, long[] locals) {
        return index.store(
                slot, true, 0, names, locals, Math.min(names.length, locals.length), false);
    }

    private StoreResult store(int slot, long parent, long[] names, long[] locals) {
        return index.store(slot, false, parent, names, locals, names.length, false);
    }

    private int remove(int slot, CopyRule rule, long... names) {
        return index.remove(slot, Arrays.copyOf(names, names.length), names.length, rule);
    }
}
