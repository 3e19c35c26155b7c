package io.kvasir.panama.libc;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.kvasir.testsupport.MemoryMappings;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;

class LargePagesTest {
    private static final long LARGE = 2L << 20;
    private static final Path MODE = Path.of("/sys/kernel/mm/transparent_hugepage/enabled");

    @ParameterizedTest
    @ValueSource(longs = {1, 4096, LARGE - 1, LARGE, LARGE + 1, 5 * LARGE + 12_345})
    void memoryIsZerosFromAPageOnAndAsLongAsWanted(long length) {
        for (int round = 0; round < 3; round++) { // what was freed comes back
            try (Arena arena = Arena.ofShared()) {
                final MemorySegment memory = LargePages.allocate(arena, length);
                assertEquals(length, memory.byteSize());
                assertEquals(0, memory.address() % 4096);
                assertEquals(-1, memory.mismatch(arena.allocate(length)));
                memory.fill((byte) 1);
            }
        }
    }

    @Test
    void memoryEndsWithItsArena() {
        final MemorySegment memory;
        try (Arena arena = Arena.ofConfined()) {
            memory = LargePages.allocate(arena, LARGE);
        }
        assertThrows(IllegalStateException.class, () -> memory.get(ValueLayout.JAVA_BYTE, 0));
    }

    @Test
    void moreThanThereIsIsRefused() {
        try (Arena arena = Arena.ofConfined()) {
            assertThrows(OutOfMemoryError.class, () -> LargePages.allocate(arena, 1L << 60));
        }
    }

    @Test
    void theKernelGivesLargePages() throws IOException {
        assumeTrue(
                Files.isReadable(MODE) && !Files.readString(MODE).contains("[never]"),
                "skipped: this kernel gives no large pages: " + MODE);
        try (Arena arena = Arena.ofConfined()) {
            final MemorySegment memory = LargePages.allocate(arena, 8 * LARGE);
            assumeTrue(
                    largePageKilobytes(memory.address()) >= 0,
                    "skipped: /proc/self/smaps does not tell of large pages");
            assertTrue(largePageKilobytes(memory.address()) > 0, "all on ordinary pages");
        }
    }

    /** Of the mapping that an address lies in; -1 if it is not told. */
    private static long largePageKilobytes(long address) throws IOException {
        return MemoryMappings.of(address, "AnonHugePages:")
                .map(size -> Long.parseLong(size.replaceAll("\\D", "")))
                .orElse(-1L);
    }
}
