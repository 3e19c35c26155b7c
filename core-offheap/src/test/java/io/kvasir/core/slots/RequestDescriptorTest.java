package io.kvasir.core.slots;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

class RequestDescriptorTest {
    @Test
    void fieldsOfARequestFollowEachOther() {
        assertEquals(4, RequestDescriptor.SLOT_OFFSET);
        assertEquals(8, RequestDescriptor.REQUEST_ID_OFFSET);
        assertEquals(16, RequestDescriptor.PREFILL_TOKENS_OFFSET);
        assertEquals(24, RequestDescriptor.PHASE_OFFSET);
        assertEquals(28, RequestDescriptor.TAIL_OFFSET);
        assertEquals(32, RequestDescriptor.SLOT_NEXT_OFFSET);
        assertEquals(36, RequestDescriptor.SLOT_PREVIOUS_OFFSET);
        assertEquals(40, RequestDescriptor.OWN_BLOCKS_OFFSET);
        assertEquals(48, RequestDescriptor.ENTRY_LENGTH);
    }
}
