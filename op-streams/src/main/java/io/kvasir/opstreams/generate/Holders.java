package io.kvasir.opstreams.generate;

import org.agrona.collections.Long2LongHashMap;

import java.util.Arrays;

/** Which workers hold which block: one bit per worker, one row per block with a holder. */
public final class Holders {
    private static final long NO_ROW = -1;
    private static final float LOAD = 0.6f;
    private static final int FIRST_ROWS = 1 << 10;

    private final int words;
    private final Long2LongHashMap rowOf = new Long2LongHashMap(FIRST_ROWS, LOAD, NO_ROW);
    private final long[] alive;
    private long[][] rows = new long[FIRST_ROWS][];
    private int[] freeRows = new int[FIRST_ROWS];
    private int free;
    private int used;

    /** No worker holds anything. */
    public Holders(int workers) {
        words = (workers + Long.SIZE - 1) / Long.SIZE;
        alive = new long[words];
    }

    /** A worker holds a block from now on, named by its sequence hash. */
    public void add(long block, int worker) {
        long row = rowOf.get(block);
        if (row == NO_ROW) {
            row = newRow();
            rowOf.put(block, row);
        }
        rows[(int) row][worker / Long.SIZE] |= 1L << worker;
    }

    private int newRow() {
        if (free > 0) {
            return freeRows[--free];
        }
        if (used == rows.length) {
            rows = Arrays.copyOf(rows, 2 * used);
            freeRows = Arrays.copyOf(freeRows, 2 * used);
        }
        rows[used] = new long[words];
        return used++;
    }

    /** A worker that holds a block does so no more. */
    public void remove(long block, int worker) {
        final int row = (int) rowOf.get(block);
        rows[row][worker / Long.SIZE] &= ~(1L << worker);
        for (long word : rows[row]) {
            if (word != 0) {
                return;
            }
        }
        rowOf.remove(block);
        freeRows[free++] = row;
    }

    /** Blocks that have a holder. */
    int blocks() {
        return rowOf.size();
    }

    /**
     * Finds how many leading blocks of a prompt each worker holds.
     *
     * @param path sequence hashes of the blocks, [count]
     * @param depths receives one number a worker
     */
    public void overlaps(long[] path, int count, int[] depths) {
        Arrays.fill(depths, 0);
        Arrays.fill(alive, -1);
        for (int i = 0; i < count; i++) {
            final long row = rowOf.get(path[i]);
            if (row == NO_ROW || !deepen(rows[(int) row], i + 1, depths)) {
                return;
            }
        }
    }

    private boolean deepen(long[] row, int depth, int[] depths) {
        long any = 0;
        for (int w = 0; w < words; w++) {
            alive[w] &= row[w];
            any |= alive[w];
            for (long bits = alive[w]; bits != 0; bits &= bits - 1) {
                depths[w * Long.SIZE + Long.numberOfTrailingZeros(bits)] = depth;
            }
        }
        return any != 0;
    }
}
