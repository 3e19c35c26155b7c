package io.kvasir.bench.gpu;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import org.junit.jupiter.api.Test;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

class BytePatternTest {
    private static final Cell CELL = new Cell(4096, 3);

    /** What a transfer makes of the source: its descriptors in reverse. */
    private static MemorySegment transferred(Arena arena, long seed) {
        final MemorySegment source = arena.allocate(CELL.bytes(), Long.BYTES);
        final MemorySegment target = arena.allocate(CELL.bytes(), Long.BYTES);
        BytePattern.fill(source, CELL, seed);
        for (int i = 0; i < CELL.count(); i++) {
            MemorySegment.copy(
                    source,
                    i * CELL.length(),
                    target,
                    (CELL.count() - 1 - i) * CELL.length(),
                    CELL.length());
        }
        return target;
    }

    @Test
    void whatATransferMovesIsRight() {
        try (Arena arena = Arena.ofConfined()) {
            assertEquals(-1, BytePattern.firstWrong(transferred(arena, 7), CELL, 7));
        }
    }

    @Test
    void theFirstWrongWordIsNamed() {
        try (Arena arena = Arena.ofConfined()) {
            final MemorySegment target = transferred(arena, 7);
            final byte right = target.get(ValueLayout.JAVA_BYTE, 5003);
            target.set(ValueLayout.JAVA_BYTE, 5003, (byte) (right + 1));
            assertEquals(5000, BytePattern.firstWrong(target, CELL, 7));
        }
    }

    @Test
    void bytesOfAnEarlierTransferAreWrong() {
        try (Arena arena = Arena.ofConfined()) {
            assertEquals(0, BytePattern.firstWrong(transferred(arena, 7), CELL, 8));
        }
    }

    @Test
    void descriptorsThatKeptTheirOrderAreWrong() {
        try (HostPool pool = new HostPool(CELL.bytes())) {
            pool.fill(CELL, 7);
            final BenchFailure e = assertThrows(BenchFailure.class, () -> pool.verify(CELL, 7));
            assertEquals(
                    "wrong bytes in DRAM at offset 0 of 3 descriptors of 4096 bytes",
                    e.getMessage());
        }
    }
}
