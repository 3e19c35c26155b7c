package io.kvasir.core.index;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class DescriptorsTest {
    @Test
    void anExtentIsOneWord() {
        final long extent = RunDescriptor.extent(0x7FFF_FFFE, 511, 512);
        assertEquals(0x7FFF_FFFE, RunDescriptor.line(extent));
        assertEquals(511, RunDescriptor.first(extent));
        assertEquals(512, RunDescriptor.length(extent));
    }

    @Test
    void aCoverIsOneWord() {
        final long cover = RunDescriptor.cover(65_535, 512, -2);
        assertEquals(65_535, RunDescriptor.slot(cover));
        assertEquals(512, RunDescriptor.leading(cover));
        assertEquals(-2, RunDescriptor.tag(cover));
    }

    @Test
    void fieldsOfARunFollowEachOtherAndWhatALookupReadsIsInTheFirstLine() {
        assertEquals(8, RunDescriptor.PARENT_OFFSET);
        assertEquals(16, RunDescriptor.EXTENT_OFFSET);
        assertEquals(24, RunDescriptor.CHILDREN_OFFSET);
        assertEquals(32, RunDescriptor.COVERS_OFFSET);
        assertEquals(40, RunDescriptor.INLINE_COVERS_OFFSET);
        assertEquals(80, RunDescriptor.DEPTH_OFFSET);
        assertEquals(384, RunDescriptor.headerOffset(3));
    }

    @ParameterizedTest
    @CsvSource({"0, 0", "4194303, 511", "7, 100"})
    void aPositionNamesHoldingAndPlace(int holding, int place) {
        final int position = HeldRunDescriptor.position(holding, place);
        assertEquals(holding, HeldRunDescriptor.holding(position));
        assertEquals(place, HeldRunDescriptor.place(position));
    }

    @Test
    void aHoldingIsOneLine() {
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
        assertEquals(8, EngineHashIndexDescriptor.tagOffset(8));
        assertEquals(12, EngineHashIndexDescriptor.META_OFFSET);
        assertEquals(16, EngineHashIndexDescriptor.entryOffset(0));
        assertEquals(60, EngineHashIndexDescriptor.entryOffset(11));
        assertEquals(64, EngineHashIndexDescriptor.LENGTH);
    }

    @ParameterizedTest
    @CsvSource({"0, 0, 24", "1, 8, 32", "2, 16, 40"})
    void slotCellsAreTwoColumns(int slot, long applied, long held) {
        assertEquals(applied, SlotCellDescriptor.appliedSequenceOffset(slot));
        assertEquals(held, SlotCellDescriptor.heldBlocksOffset(3, slot));
        assertEquals(48, SlotCellDescriptor.length(3));
    }
}
