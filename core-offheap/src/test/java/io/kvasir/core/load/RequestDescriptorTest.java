package io.kvasir.core.load;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

class RequestDescriptorTest {
    @Test
    void fieldsOfARequestFollowEachOtherInOneCacheLine() {
        assertEquals(0, RequestDescriptor.NUMBER_OFFSET);
        assertEquals(8, RequestDescriptor.PREFILL_TOKENS_OFFSET);
        assertEquals(16, RequestDescriptor.DEADLINE_OFFSET);
        assertEquals(24, RequestDescriptor.SLOT_OFFSET);
        assertEquals(28, RequestDescriptor.ARRAY_OFFSET);
        assertEquals(32, RequestDescriptor.OWN_BLOCKS_OFFSET);
        assertEquals(36, RequestDescriptor.PATH_END_OFFSET);
        assertEquals(38, RequestDescriptor.TIMER_OFFSET);
        assertEquals(40, RequestDescriptor.SLOT_NEXT_OFFSET);
        assertEquals(44, RequestDescriptor.SLOT_PREVIOUS_OFFSET);
        assertEquals(48, RequestDescriptor.TIMER_NEXT_OFFSET);
        assertEquals(52, RequestDescriptor.TIMER_PREVIOUS_OFFSET);
        assertEquals(128, RequestDescriptor.entryOffset(2));
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

    @Test
    void fieldsOfAVisitFollowEachOther() {
        assertEquals(8, VisitDescriptor.SLOT_OFFSET);
        assertEquals(12, VisitDescriptor.ARRAY_OFFSET);
        assertEquals(16, VisitDescriptor.END_OFFSET);
        assertEquals(72, VisitDescriptor.offset(3));
    }
}
