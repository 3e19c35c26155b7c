package io.kvasir.core.index;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class DescriptorsTest {
    @ParameterizedTest
    @CsvSource({"0, 0", "4194303, 511", "7, 100"})
    void aPositionNamesHeldRunAndArrayOffset(int heldRun, int arrayOffset) {
        final int position = HeldRunDescriptor.position(heldRun, arrayOffset);
        assertEquals(heldRun, HeldRunDescriptor.heldRun(position));
        assertEquals(arrayOffset, HeldRunDescriptor.arrayOffset(position));
    }

    @Test
    void aHeldRunIsOneLine() {
        assertEquals(4, HeldRunDescriptor.RUN_OFFSET);
        assertEquals(8, HeldRunDescriptor.LOW_OFFSET);
        assertEquals(10, HeldRunDescriptor.HIGH_OFFSET);
        assertEquals(12, HeldRunDescriptor.HELD_OFFSET);
        assertEquals(16, HeldRunDescriptor.BIRTH_OFFSET);
        assertEquals(20, HeldRunDescriptor.BITS_OFFSET);
        assertEquals(24, HeldRunDescriptor.ABOVE_BIRTH_OFFSET);
        assertEquals(28, HeldRunDescriptor.BELOW_OFFSET);
        assertEquals(32, HeldRunDescriptor.chunkOffset(0));
        assertEquals(60, HeldRunDescriptor.chunkOffset(7));
        assertEquals(64, HeldRunDescriptor.LENGTH);
    }

    @Test
    void fieldsOfARecordOfAnEngineHashFollowEachOther() {
        assertEquals(0, EngineHashRecordDescriptor.ENGINE_HASH_OFFSET);
        assertEquals(8, EngineHashRecordDescriptor.POSITION_OFFSET);
        assertEquals(12, EngineHashRecordDescriptor.COPIES_OFFSET);
        assertEquals(16, EngineHashRecordDescriptor.NEXT_OFFSET);
        assertEquals(20, EngineHashRecordDescriptor.PREVIOUS_OFFSET);
        assertEquals(24, EngineHashRecordDescriptor.LENGTH);
    }

    @Test
    void aLineOfTheEngineHashIndexIsALineOfTheArena() {
        assertEquals(8, EngineHashIndexDescriptor.LAST_TAGS_OFFSET);
        assertEquals(8, EngineHashIndexDescriptor.tagOffset(8));
        assertEquals(12, EngineHashIndexDescriptor.META_OFFSET);
        assertEquals(16, EngineHashIndexDescriptor.entryOffset(0));
        assertEquals(60, EngineHashIndexDescriptor.entryOffset(11));
        assertEquals(64, EngineHashIndexDescriptor.LENGTH);
    }

    @ParameterizedTest
    @CsvSource({"0, 0, 48", "1, 56, 104", "3, 168, 216"})
    void missingBlocksOfASlotAreSevenWords(int slot, long offset, long last) {
        assertEquals(offset, MissingBlocksDescriptor.offset(slot));
        assertEquals(
                last,
                MissingBlocksDescriptor.offset(slot)
                        + MissingBlocksDescriptor.CROWDED_BEFORE_OFFSET);
    }

    @ParameterizedTest
    @CsvSource({"0, 0, 24", "1, 8, 32", "2, 16, 40"})
    void slotCellsAreTwoColumns(int slot, long applied, long held) {
        assertEquals(applied, SlotCellDescriptor.appliedSequenceOffset(slot));
        assertEquals(held, SlotCellDescriptor.heldBlocksOffset(3, slot));
        assertEquals(48, SlotCellDescriptor.length(3));
    }

    @Test
    void whatIsKeptOfASlotIsEightLines() {
        assertEquals(256, IndexCheckpointDescriptor.OWNER_WORDS_OFFSET);
        assertEquals(320, IndexCheckpointDescriptor.LABEL_LENGTH_OFFSET);
        assertEquals(328, IndexCheckpointDescriptor.LABEL_OFFSET);
        assertEquals(184, IndexCheckpointDescriptor.MOST_LABEL);
        assertEquals(1536, IndexCheckpointDescriptor.slotOffset(3));
        assertEquals(1536 + 272, IndexCheckpointDescriptor.ownerWordOffset(3, 2));
        assertEquals(4024, IndexCheckpointDescriptor.FOLLOWED_OFFSET);
        assertEquals(8, IndexCheckpointDescriptor.USED_LINES_OFFSET);
        assertEquals(16, IndexCheckpointDescriptor.UNTOUCHED_OFFSET);
    }
}
