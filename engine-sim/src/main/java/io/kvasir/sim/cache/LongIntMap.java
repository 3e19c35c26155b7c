package io.kvasir.sim.cache;

import java.util.Arrays;

/**
 * Map from long to non-negative int with open addressing, of fixed size. One thread.
 *
 * <p>Deletion shifts later entries back, so probes stay short however long the map lives.
 */
final class LongIntMap {
    static final int ABSENT = -1;

    private final long[] keys;
    private final int[] values;
    private final int mask;
    private int size;

    /** Makes a map for at most {@code maxEntries} entries, at most half full. */
    LongIntMap(int maxEntries) {
        final int capacity = Integer.highestOneBit(Math.max(2, maxEntries) * 2 - 1) * 2;
        this.keys = new long[capacity];
        this.values = new int[capacity];
        this.mask = capacity - 1;
        clear();
    }

    int get(long key) {
        for (int i = home(key); values[i] != ABSENT; i = (i + 1) & mask) {
            if (keys[i] == key) {
                return values[i];
            }
        }
        return ABSENT;
    }

    void put(long key, int value) {
        int i = home(key);
        while (values[i] != ABSENT && keys[i] != key) {
            i = (i + 1) & mask;
        }
        if (values[i] == ABSENT) {
            size++;
        }
        assert size <= values.length / 2 : "map over its size: entries=" + size;
        keys[i] = key;
        values[i] = value;
    }

    void remove(long key) {
        int hole = home(key);
        while (values[hole] != ABSENT && keys[hole] != key) {
            hole = (hole + 1) & mask;
        }
        if (values[hole] == ABSENT) {
            return;
        }
        size--;
        for (int i = (hole + 1) & mask; values[i] != ABSENT; i = (i + 1) & mask) {
            final int distanceToHome = (i - home(keys[i])) & mask;
            final int distanceToHole = (i - hole) & mask;
            if (distanceToHome >= distanceToHole) {
                keys[hole] = keys[i];
                values[hole] = values[i];
                hole = i;
            }
        }
        values[hole] = ABSENT;
    }

    void clear() {
        Arrays.fill(values, ABSENT);
        size = 0;
    }

    int size() {
        return size;
    }

    private int home(long key) {
        final long mixed = key * 0x9E3779B97F4A7C15L;
        return (int) (mixed >>> 32) & mask;
    }
}
