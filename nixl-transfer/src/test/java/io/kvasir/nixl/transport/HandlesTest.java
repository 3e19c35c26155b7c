package io.kvasir.nixl.transport;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

class HandlesTest {
    @Test
    void aHandleIsKnownUntilItIsGivenBack() {
        final Handles handles = new Handles(2);
        final long first = handles.take();
        final long second = handles.take();

        assertEquals(0, handles.take());
        assertNotEquals(handles.slot(first), handles.slot(second));
        handles.release(handles.slot(first));
        assertEquals(-1, handles.slot(first));
        final long third = handles.take();
        assertNotEquals(first, third);
        assertTrue(handles.slot(third) >= 0);
        assertEquals(-1, handles.slot(first));
        assertTrue(handles.slot(second) >= 0);
    }

    @Test
    void whatWasNeverGivenIsUnknown() {
        final Handles handles = new Handles(2);
        final long taken = handles.take();

        for (long handle : new long[] {0, 1, -1, 3, taken + 1, taken + (1L << 32), ~taken}) {
            assertEquals(-1, handles.slot(handle));
        }
    }

    @Test
    void growingAddsSlotsAndKeepsHandles() {
        final Handles handles = new Handles(2);
        final long first = handles.take();
        final long stale = handles.take();
        handles.release(handles.slot(stale));

        handles.grow(4);

        assertEquals(0, handles.slot(first));
        assertEquals(-1, handles.slot(stale));
        assertEquals(2, handles.slot(handles.take()));
        assertEquals(3, handles.slot(handles.take()));
        assertEquals(1, handles.slot(handles.take()));
        assertEquals(0, handles.take());
    }
}
