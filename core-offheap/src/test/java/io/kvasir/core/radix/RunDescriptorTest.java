package io.kvasir.core.radix;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

class RunDescriptorTest {
    @Test
    void anExtentIsOneWord() {
        final long extent = RunDescriptor.extent(0x7FFF_FFFE, 511, 512);
        assertEquals(0x7FFF_FFFE, RunDescriptor.line(extent));
        assertEquals(511, RunDescriptor.first(extent));
        assertEquals(512, RunDescriptor.length(extent));
    }

    @Test
    void aHolderIsOneWord() {
        final long holder = RunDescriptor.holder(65_535, 512, -2);
        assertEquals(65_535, RunDescriptor.slot(holder));
        assertEquals(512, RunDescriptor.leading(holder));
        assertEquals(-2, RunDescriptor.tag(holder));
    }

    @Test
    void fieldsOfARunFollowEachOtherAndWhatALookupReadsIsInTheFirstLine() {
        assertEquals(8, RunDescriptor.PARENT_OFFSET);
        assertEquals(16, RunDescriptor.EXTENT_OFFSET);
        assertEquals(24, RunDescriptor.CHILDREN_OFFSET);
        assertEquals(32, RunDescriptor.HOLDERS_OFFSET);
        assertEquals(40, RunDescriptor.INLINE_HOLDERS_OFFSET);
        assertEquals(80, RunDescriptor.DEPTH_OFFSET);
        assertEquals(84, RunDescriptor.CHILD_COUNT_OFFSET);
        assertEquals(88, RunDescriptor.NEXT_SEGMENT_OFFSET);
        assertEquals(92, RunDescriptor.PREVIOUS_SEGMENT_OFFSET);
        assertEquals(96, RunDescriptor.UNHELD_OFFSET);
        assertEquals(100, RunDescriptor.HOLDER_COUNTS_OFFSET);
        assertEquals(104, RunDescriptor.HEADLESS_OFFSET);
        assertEquals(112, RunDescriptor.END_OFFSET);
        assertEquals(120, RunDescriptor.END_RUN_OFFSET);
        assertEquals(384, RunDescriptor.headerOffset(3));
    }

    @Test
    void aMapHasBitsThenTagsThenPrefixLengths() {
        assertEquals(8, RunDescriptor.PARTIAL_OFFSET);
        assertEquals(32, RunDescriptor.mapTags(2));
        assertEquals(544, RunDescriptor.mapLeadings(2));
        assertEquals(800, RunDescriptor.mapLength(2));
    }

    @Test
    void anEntryOfATableIsHashThenRun() {
        assertEquals(8, RunDescriptor.ENTRY_RUN_OFFSET);
        assertEquals(16, RunDescriptor.TABLE_ENTRY_LENGTH);
        assertEquals(128, RunDescriptor.NODE_LENGTH);
    }
}
