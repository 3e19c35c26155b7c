package io.kvasir.core.memory;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.kvasir.testsupport.MemoryMappings;

import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/**
 * The build runs some tests a second time with memory as it is shipped: unchecked access, on large
 * pages.
 */
class ShippedModeTest {
    @Test
    void memoryIsCheckedWhereTheRunSaysSo() {
        assertEquals(Boolean.getBoolean("kvasir.memory.checked"), OffHeap.isCheckable());
    }

    @Test
    void largePagesAreAskedForUnlessTheRunSaysNo() throws IOException {
        assumeTrue(
                Files.exists(Path.of("/sys/kernel/mm/transparent_hugepage")),
                "skipped: this kernel has no large pages");
        final MemorySegment memory = HugePages.map(8L << 20).orElseThrow();
        try {
            final String flags = MemoryMappings.of(memory.address(), "VmFlags:").orElse("");
            assumeTrue(!flags.isEmpty(), "skipped: /proc/self/smaps says nothing of advice");
            assertEquals(
                    !"false".equals(System.getProperty("kvasir.memory.large-pages")),
                    List.of(flags.split(" ")).contains("hg"));
        } finally {
            HugePages.unmap(memory);
        }
    }
}
