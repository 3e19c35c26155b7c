package io.kvasir.core.index;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class DescriptorsTest {
    @ParameterizedTest
    @CsvSource({"1, 24", "64, 24", "65, 32", "128, 32", "1024, 144"})
    void aBlockHasOneWordOfHoldersForSixtyFourSlots(int workerSlots, int length) {
        assertEquals(length, BlockEntryDescriptor.entryLength(workerSlots));
    }

    @ParameterizedTest
    @CsvSource({"0, 16, 0", "63, 16, 63", "64, 24, 0", "130, 32, 2"})
    void aSlotHasItsBitInItsWord(int slot, int wordOffset, int bit) {
        assertEquals(wordOffset, BlockEntryDescriptor.holderWordOffset(slot));
        assertEquals(1L << bit, BlockEntryDescriptor.holderBit(slot));
    }

    @Test
    void fieldsOfABlockFollowEachOther() {
        assertEquals(4, BlockEntryDescriptor.VERSION_OFFSET);
        assertEquals(8, BlockEntryDescriptor.SEQUENCE_HASH_OFFSET);
        assertEquals(16, BlockEntryDescriptor.HOLDERS_OFFSET);
    }

    @Test
    void fieldsOfAHoldingFollowEachOther() {
        assertEquals(4, MembershipDescriptor.SLOT_OFFSET);
        assertEquals(8, MembershipDescriptor.ENGINE_HASH_OFFSET);
        assertEquals(16, MembershipDescriptor.BLOCK_OFFSET);
        assertEquals(20, MembershipDescriptor.COPIES_OFFSET);
        assertEquals(24, MembershipDescriptor.SLOT_NEXT_OFFSET);
        assertEquals(28, MembershipDescriptor.SLOT_PREVIOUS_OFFSET);
        assertEquals(32, MembershipDescriptor.ENTRY_LENGTH);
    }

    @Test
    void fieldsOfAPairFollowEachOther() {
        assertEquals(4, PairDescriptor.SLOT_OFFSET);
        assertEquals(8, PairDescriptor.BLOCK_OFFSET);
        assertEquals(12, PairDescriptor.COUNT_OFFSET);
        assertEquals(16, PairDescriptor.ENTRY_LENGTH);
    }

    @ParameterizedTest
    @CsvSource({"0, 0", "1, 16", "5, 80"})
    void slotCellsFollowEachOther(int slot, long offset) {
        assertEquals(offset, SlotCellDescriptor.cellOffset(slot));
        assertEquals(8, SlotCellDescriptor.HELD_BLOCKS_OFFSET);
    }
}
