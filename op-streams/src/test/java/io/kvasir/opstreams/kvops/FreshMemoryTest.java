package io.kvasir.opstreams.kvops;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.kvasir.core.memory.OffHeap;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Isolated;

@Isolated // looks at the memory of the process
class FreshMemoryTest {
    private static final long LENGTH = 48L << 20;

    @Test
    void newMemoryIsTouchedAndStaysZero() {
        assumeTrue(System.getProperty("os.name").equals("Linux"), "Linux only");
        final FreshMemory fresh = FreshMemory.before();
        try (OffHeap memory = OffHeap.allocate(LENGTH)) {
            final long touched = fresh.touch(LENGTH);
            assumeTrue(touched > 0, "a kernel before 5.14");
            assertTrue(touched >= LENGTH, "touched " + touched);
            assertEquals(0, memory.getLong(LENGTH - Long.BYTES));
        }
    }

    @Test
    void aReserveFarBeyondWhatIsMeantIsLeftAlone() {
        final FreshMemory fresh = FreshMemory.before();
        try (OffHeap memory = OffHeap.allocate(LENGTH * 4)) {
            assertEquals(0, fresh.touch(LENGTH));
            assertEquals(0, memory.getLong(0));
        }
    }
}
