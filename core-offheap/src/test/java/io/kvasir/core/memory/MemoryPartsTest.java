package io.kvasir.core.memory;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

import java.lang.foreign.Arena;
import java.util.Random;

/** Memory that is taken part by part, as where memory may not be mapped. */
class MemoryPartsTest {
    private static final long PART = MemoryParts.LENGTH;
    private static final long LENGTH = 3 * PART + 64;

    @BeforeEach
    void onlyWhereAccessesAreChecked() {
        Assumptions.assumeTrue(OffHeap.isCheckable());
    }

    @Test
    void aPartIsTakenWhenItIsTouched() {
        try (Arena arena = Arena.ofShared()) {
            final MemoryParts parts = new MemoryParts(arena, LENGTH);
            assertEquals(0, parts.taken());
            assertEquals(PART, parts.at(PART).byteSize());
            assertEquals(1, parts.taken());
            assertEquals(64, parts.at(3 * PART).byteSize());
            assertEquals(2, parts.taken());
            assertThrows(IndexOutOfBoundsException.class, () -> parts.at(4 * PART));
        }
    }

    @Test
    void rangesGoAcrossParts() {
        try (OffHeap memory = OffHeap.inParts(LENGTH)) {
            assertEquals(LENGTH, memory.length());
            final long[] values = new Random(1).longs(1_000).toArray();
            final long from = PART - 400 * Long.BYTES;
            memory.putLongs(from, values, 0, values.length);
            assertEquals(values[399], memory.getLong(PART - Long.BYTES));
            assertEquals(values[400], memory.getLong(PART));
            assertEquals(1_000, memory.matchingLongs(from, values, 0, 1_000));

            final long to = 2 * PART - 77 * Long.BYTES;
            memory.copy(from, to, 1_000 * Long.BYTES);
            final long[] read = new long[1_000];
            memory.getLongs(to, read, 0, 1_000);
            assertArrayEquals(values, read);
            memory.zero(to, 1_000 * Long.BYTES);
            assertEquals(0, memory.getLong(2 * PART));
            memory.putInt(LENGTH - Integer.BYTES, 7);
            assertEquals(7, memory.getIntAcquire(LENGTH - Integer.BYTES));
            memory.putByte(3 * PART, (byte) 5);
            assertEquals(5, memory.getByte(3 * PART));
            assertEquals(0, memory.getAndAddLong(0, 3));
            assertEquals(3, memory.getLongAcquire(0));
        }
    }

    @Test
    void nothingIsReadBeyondTheEndOrAfterClose() {
        final OffHeap memory = OffHeap.inParts(LENGTH);
        assertThrows(IndexOutOfBoundsException.class, () -> memory.getLong(LENGTH));
        assertThrows(IndexOutOfBoundsException.class, () -> memory.getLong(-8));
        memory.putLong(0, 1);
        memory.close();
        assertThrows(IllegalStateException.class, () -> memory.getLong(0));
        assertThrows(IllegalStateException.class, () -> memory.getLong(PART));
    }
}
