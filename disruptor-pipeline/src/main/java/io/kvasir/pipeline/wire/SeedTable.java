package io.kvasir.pipeline.wire;

import java.util.Arrays;

/**
 * Seeds by engine hash, each with a number that stands for what holds the block: an open-addressing
 * table that grows as needed. An entry's index is valid until the next change. One thread.
 */
final class SeedTable {
    static final int ABSENT = -1;
    private static final int INITIAL_CAPACITY = 256;

    private long[] keys = {};
    private long[] seeds = {};
    private int[] holders = {};
    private int size;

    int size() {
        return size;
    }

    /** Index of an entry, {@link #ABSENT} if there is none. */
    int find(long engineHash) {
        if (size == 0) {
            return ABSENT;
        }
        final long key = keyOf(engineHash);
        final int at = probe(key);
        return keys[at] == key ? at : ABSENT;
    }

    long seed(int at) {
        return seeds[at];
    }

    int holders(int at) {
        return holders[at];
    }

    void holders(int at, int value) {
        holders[at] = value;
    }

    /** Gives a block a seed; a new entry has no holders. */
    void put(long engineHash, long seed) {
        if (2 * (size + 1) > keys.length) {
            grow();
        }
        final long key = keyOf(engineHash);
        final int at = probe(key);
        if (keys[at] != key) {
            keys[at] = key;
            holders[at] = 0;
            size++;
        }
        seeds[at] = seed;
    }

    /** Removes an entry; those that were put behind it because of it close the gap. */
    void remove(int index) {
        final int mask = keys.length - 1;
        int free = index;
        for (int at = free + 1 & mask; keys[at] != 0; at = at + 1 & mask) {
            if ((at - home(keys[at]) & mask) >= (at - free & mask)) {
                keys[free] = keys[at];
                seeds[free] = seeds[at];
                holders[free] = holders[at];
                free = at;
            }
        }
        keys[free] = 0;
        size--;
    }

    /**
     * Collects all entries, engine hash and seed in turn.
     *
     * @param times how often each is collected
     * @return where the next one goes
     */
    int collect(long[] pairs, int from, int times) {
        int next = from;
        for (int at = 0; at < keys.length; at++) {
            for (int i = 0; i < times && keys[at] != 0; i++) {
                pairs[next++] = keys[at];
                pairs[next++] = seeds[at];
            }
        }
        return next;
    }

    private void grow() {
        final long[] oldKeys = keys;
        final long[] oldSeeds = seeds;
        final int[] oldHolders = holders;
        final int capacity = Math.max(INITIAL_CAPACITY, 2 * oldKeys.length);
        keys = new long[capacity];
        seeds = Arrays.copyOf(seeds, capacity);
        holders = Arrays.copyOf(holders, capacity);
        for (int i = 0; i < oldKeys.length; i++) {
            if (oldKeys[i] != 0) {
                final int at = probe(oldKeys[i]);
                keys[at] = oldKeys[i];
                seeds[at] = oldSeeds[i];
                holders[at] = oldHolders[i];
            }
        }
    }

    /** Index of the key, or of the free entry where it would go. */
    private int probe(long key) {
        int at = home(key);
        while (keys[at] != 0 && keys[at] != key) {
            at = at + 1 & keys.length - 1;
        }
        return at;
    }

    private int home(long key) {
        return (int) ((key * 0x9e3779b97f4a7c15L) >>> 32) & keys.length - 1;
    }

    // 0 marks a free entry; the two engine hashes 0 and 1 share a key, which costs at most a match
    private static long keyOf(long engineHash) {
        return engineHash == 0 ? 1 : engineHash;
    }
}
