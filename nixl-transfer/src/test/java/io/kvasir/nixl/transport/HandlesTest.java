package io.kvasir.nixl.transport;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

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

    @ParameterizedTest
    @ValueSource(ints = {Integer.MIN_VALUE, -1, 0, (1 << 24) + 1, Integer.MAX_VALUE})
    void aNumberOfSlotsOutsideItsLimitsIsNamed(int slots) {
        refused("slots=" + slots + ", limits are 1..16777216", () -> new Handles(slots));
    }

    @ParameterizedTest
    @ValueSource(ints = {-1, 1, (1 << 24) + 1, Integer.MAX_VALUE})
    void slotsAreNotTakenAwayNorTooManyAdded(int slots) {
        final Handles handles = new Handles(2);
        refused("slots=" + slots + ", limits are 2..16777216", () -> handles.grow(slots));
        handles.take();
        handles.take();
        assertEquals(0, handles.take());
    }

    private static void refused(String why, Executable call) {
        assertEquals(why, assertThrows(IllegalArgumentException.class, call).getMessage());
    }
}
