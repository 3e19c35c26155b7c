package io.kvasir.prompt.tokenizer;

import java.util.Arrays;

/**
 * Open-addressing map from a pair of token ids to the rank of its merge and the merged id. Filled
 * once, then read by any thread.
 *
 * <pre>
 *   key   = left id : 32 | right id : 32     (-1 = free; ids are never negative)
 *   value = rank : 32    | merged id : 32
 * </pre>
 */
final class MergeTable {
    /** Value of a pair that does not merge. */
    static final long NONE = -1L;

    private final long[] keys;
    private final long[] values;
    private final int mask;

    MergeTable(int expectedPairs) {
        final int capacity = Integer.highestOneBit(Math.max(8, expectedPairs) * 2 - 1) * 2;
        keys = new long[capacity];
        values = new long[capacity];
        mask = capacity - 1;
        Arrays.fill(keys, -1L);
    }

    /**
     * Adds a pair; a pair given twice keeps its last rank, as the reference implementation does.
     */
    void put(int left, int right, int rank, int merged) {
        final long key = key(left, right);
        int at = slot(key);
        while (keys[at] != -1L && keys[at] != key) {
            at = (at + 1) & mask;
        }
        keys[at] = key;
        values[at] = ((long) rank << 32) | merged;
    }

    /** RankScheduler and merged id of a pair, or {@link #NONE}. */
    long get(int left, int right) {
        final long key = key(left, right);
        int at = slot(key);
        while (true) {
            final long found = keys[at];
            if (found == key) {
                return values[at];
            }
            if (found == -1L) {
                return NONE;
            }
            at = (at + 1) & mask;
        }
    }

    private static long key(int left, int right) {
        return ((long) left << 32) | right;
    }

    private int slot(long key) {
        final long mixed = key * 0x9E3779B97F4A7C15L;
        return (int) ((mixed >>> 32) ^ (mixed >>> 15)) & mask;
    }
}
