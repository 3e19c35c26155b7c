package io.kvasir.bench.gpu;

import java.util.ArrayList;
import java.util.List;

/**
 * One transfer of the sweep: so many descriptors of one length.
 *
 * @param length bytes of each descriptor
 * @param count descriptors
 */
record Cell(long length, int count) {
    private static final long SHORTEST = 4L << 10;
    private static final long LONGEST = 16L << 20;
    private static final int MOST = 4096;
    private static final int STEP = 4;

    long bytes() {
        return length * count;
    }

    /**
     * The sweep: 4 KiB to 16 MiB, each with 1 to 4096 descriptors, in steps of four, as far as a
     * pool holds them.
     *
     * @param poolBytes most bytes of one transfer, at least 4096
     */
    static List<Cell> sweep(long poolBytes) {
        final List<Cell> cells = new ArrayList<>();
        for (long length = SHORTEST; length <= LONGEST; length *= STEP) {
            for (int count = 1; count <= MOST && length * count <= poolBytes; count *= STEP) {
                cells.add(new Cell(length, count));
            }
        }
        return List.copyOf(cells);
    }
}
