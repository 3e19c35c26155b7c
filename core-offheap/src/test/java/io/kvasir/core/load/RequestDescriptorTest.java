package io.kvasir.core.load;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

class RequestDescriptorTest {
    @Test
    void fieldsOfARequestFollowEachOtherInOneCacheLine() {
        assertEquals(4, RequestDescriptor.SLOT_OFFSET);
        assertEquals(8, RequestDescriptor.REQUEST_ID_OFFSET);
        assertEquals(16, RequestDescriptor.PREFILL_TOKENS_OFFSET);
        assertEquals(24, RequestDescriptor.DEADLINE_OFFSET);
        assertEquals(32, RequestDescriptor.ARRAY_OFFSET);
        assertEquals(36, RequestDescriptor.OWN_BLOCKS_OFFSET);
        assertEquals(40, RequestDescriptor.PLACE_OFFSET);
        assertEquals(42, RequestDescriptor.TIMER_OFFSET);
        assertEquals(44, RequestDescriptor.GENERATION_OFFSET);
        assertEquals(48, RequestDescriptor.SLOT_NEXT_OFFSET);
        assertEquals(52, RequestDescriptor.SLOT_PREVIOUS_OFFSET);
        assertEquals(56, RequestDescriptor.TIMER_NEXT_OFFSET);
        assertEquals(60, RequestDescriptor.TIMER_PREVIOUS_OFFSET);
        assertEquals(64, RequestDescriptor.ENTRY_LENGTH);
    }

    @Test
    void whatIsBookedOnASlotFillsOneCacheLine() {
        assertEquals(8, BookedLoadDescriptor.ACTIVE_BLOCKS_OFFSET);
        assertEquals(16, BookedLoadDescriptor.ACTIVE_REQUESTS_OFFSET);
        assertEquals(24, BookedLoadDescriptor.SETTLED_OFFSET);
        assertEquals(32, BookedLoadDescriptor.LOST_OFFSET);
        assertEquals(40, BookedLoadDescriptor.FEWEST_UNDER_WAY_OFFSET);
        assertEquals(48, BookedLoadDescriptor.WATCHED_SINCE_OFFSET);
        assertEquals(192, BookedLoadDescriptor.cellOffset(3));
    }
}
