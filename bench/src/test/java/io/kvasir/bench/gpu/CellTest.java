package io.kvasir.bench.gpu;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

import java.util.List;

class CellTest {
    @Test
    void theSweepGoesFromOneSmallDescriptorAsFarAsThePoolHolds() {
        assertEquals(
                List.of(new Cell(4096, 1), new Cell(4096, 4), new Cell(16384, 1)),
                Cell.sweep(16384));
    }

    @Test
    void theWholeSweepHasManySmallAndFewLargeDescriptors() {
        final List<Cell> cells = Cell.sweep(256L << 20);
        assertEquals(39, cells.size());
        assertTrue(cells.contains(new Cell(65536, 4096)));
        assertTrue(cells.contains(new Cell(16L << 20, 16)));
        assertTrue(cells.stream().allMatch(cell -> cell.bytes() <= 256L << 20));
    }
}
