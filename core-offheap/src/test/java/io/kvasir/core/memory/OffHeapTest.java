package io.kvasir.core.memory;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import org.junit.jupiter.api.Test;

class OffHeapTest {
    @Test
    void memoryIsZeroedAndKeepsWhatIsWritten() {
        try (OffHeap memory = OffHeap.allocate(64)) {
            assertEquals(64, memory.length());
            assertEquals(0, memory.getLong(56));
            memory.putLong(8, -1);
            memory.putInt(12, 7);
            assertEquals(7, memory.getInt(12));
            assertEquals(-1, memory.getInt(8));
            memory.putLongRelease(16, 5);
            assertEquals(5, memory.getLongAcquire(16));
            assertEquals(5, memory.getAndAddLong(16, 3));
            assertEquals(8, memory.getLongOpaque(16));
            memory.putIntRelease(24, 9);
            assertEquals(9, memory.getIntAcquire(24));
            memory.putLongOpaque(32, 11);
            memory.putIntOpaque(40, 12);
            assertEquals(12, memory.getIntOpaque(40));
        }
    }

    @Test
    void offsetsOutsideTheMemoryAreExceptions() {
        try (OffHeap memory = OffHeap.allocate(16)) {
            assertThrows(IndexOutOfBoundsException.class, () -> memory.getLong(16));
            assertThrows(IndexOutOfBoundsException.class, () -> memory.getLong(-8));
            assertThrows(IndexOutOfBoundsException.class, () -> memory.putInt(16, 1));
        }
        assertThrows(IllegalArgumentException.class, () -> OffHeap.allocate(0));
    }

    @Test
    void closedMemoryIsAnExceptionAndClosingTwiceHarmless() {
        final OffHeap memory = OffHeap.allocate(16);
        memory.close();
        memory.close();
        assertThrows(IllegalStateException.class, () -> memory.getLong(0));
    }
}
