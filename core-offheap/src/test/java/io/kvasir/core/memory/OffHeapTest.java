package io.kvasir.core.memory;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.kvasir.testsupport.ChildJvm;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

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

    @ParameterizedTest
    @ValueSource(strings = {"true", "false"})
    void closedMemoryLeavesNoMapping(String largePages) throws Exception {
        assumeTrue(Files.exists(Path.of("/proc/self/maps")), "skipped: no list of mappings here");
        final List<String> flags = new ArrayList<>(ChildJvm.unchecked());
        flags.add("-Dkvasir.memory.large-pages=" + largePages);
        final int left = Integer.parseInt(ChildJvm.run(flags, MappingsCounter.class).strip());
        assertTrue(left < 100, left + " mappings of 6,000 memories are left"); // some of the JVM's
    }

    @Test
    void closedMemoryIsAnExceptionAndClosingTwiceHarmless() {
        final OffHeap memory = OffHeap.allocate(16);
        memory.close();
        memory.close();
        assertThrows(IllegalStateException.class, () -> memory.getLong(0));
    }

    @Test
    void aLimitThatIsNoNumberIsRefusedByName() {
        assertEquals(Long.MAX_VALUE, OffHeap.limit(null));
        assertEquals(10_000_000, OffHeap.limit("10000000"));
        assertEquals(0x1000, OffHeap.limit("0x1000"));
        for (String wrong : new String[] {"10MB", "", " 1", "1e9", "9223372036854775808"}) {
            final String message =
                    assertThrows(IllegalArgumentException.class, () -> OffHeap.limit(wrong))
                            .getMessage();
            assertTrue(message.startsWith("kvasir.memory.limit=" + wrong + " "), message);
            assertTrue(message.contains("bytes"), message);
        }
    }
}
