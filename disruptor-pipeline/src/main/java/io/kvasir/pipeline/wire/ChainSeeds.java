package io.kvasir.pipeline.wire;

import java.util.Arrays;

/**
 * Remembers under which seed the blocks of a salted chain are hashed: engine hash → seed.
 *
 * <p>Two generations of one open-addressing table each: when the young one is full it becomes the
 * old one and the old one is forgotten, so memory is bounded and what was used last stays. Unsalted
 * chains are never entered. Engine hashes are content hashes of the chain, salt included, so an
 * entry that outlives its block is harmless. One thread.
 */
final class ChainSeeds {
    private static final int INITIAL_CAPACITY = 256;
    private static final long[] EMPTY = {};

    private final int maxEntriesPerGeneration;
    private long[] youngKeys = EMPTY;
    private long[] youngSeeds = EMPTY;
    private int youngSize;
    private long[] oldKeys = EMPTY;
    private long[] oldSeeds = EMPTY;

    /**
     * @param maxEntries most blocks remembered; half of them are surely kept
     */
    ChainSeeds(int maxEntries) {
        if (maxEntries < 2) {
            throw new IllegalArgumentException("maxEntries must be 2 or more: " + maxEntries);
        }
        maxEntriesPerGeneration = maxEntries / 2;
    }

    /** Seed of the chain of a block, {@code absent} if it is not a known salted one. */
    long get(long engineHash, long absent) {
        if (youngKeys.length == 0) {
            return absent;
        }
        final long key = keyOf(engineHash);
        final int young = find(youngKeys, key);
        if (youngKeys[young] == key) {
            return youngSeeds[young];
        }
        if (oldKeys.length == 0) {
            return absent;
        }
        final int old = find(oldKeys, key);
        if (oldKeys[old] != key) {
            return absent;
        }
        final long seed = oldSeeds[old];
        put(engineHash, seed);
        return seed;
    }

    void put(long engineHash, long seed) {
        final long key = keyOf(engineHash);
        if (youngKeys.length > 0) {
            final int at = find(youngKeys, key);
            if (youngKeys[at] == key) {
                youngSeeds[at] = seed;
                return;
            }
        }
        if (youngSize >= maxEntriesPerGeneration) {
            oldKeys = youngKeys;
            oldSeeds = youngSeeds;
            youngKeys = EMPTY;
            youngSeeds = EMPTY;
            youngSize = 0;
        }
        if (2 * (youngSize + 1) > youngKeys.length) {
            grow();
        }
        final int at = find(youngKeys, key);
        youngKeys[at] = key;
        youngSeeds[at] = seed;
        youngSize++;
    }

    /** Whether nothing is remembered. */
    boolean isEmpty() {
        return youngSize == 0 && oldKeys.length == 0;
    }

    /** All that is remembered: engine hash and seed in turn, the older ones first. */
    long[] toArray() {
        final long[] pairs = new long[2 * (oldKeys.length + youngKeys.length)];
        final int old = collect(oldKeys, oldSeeds, pairs, 0);
        return Arrays.copyOf(pairs, collect(youngKeys, youngSeeds, pairs, old));
    }

    private static int collect(long[] keys, long[] seeds, long[] pairs, int from) {
        int at = from;
        for (int i = 0; i < keys.length; i++) {
            if (keys[i] != 0) {
                pairs[at++] = keys[i];
                pairs[at++] = seeds[i];
            }
        }
        return at;
    }

    void clear() {
        youngKeys = EMPTY;
        youngSeeds = EMPTY;
        oldKeys = EMPTY;
        oldSeeds = EMPTY;
        youngSize = 0;
    }

    private void grow() {
        final long[] keys = youngKeys;
        final long[] seeds = youngSeeds;
        final int capacity = Math.max(INITIAL_CAPACITY, 2 * keys.length);
        youngKeys = new long[capacity];
        youngSeeds = Arrays.copyOf(EMPTY, capacity);
        for (int i = 0; i < keys.length; i++) {
            if (keys[i] != 0) {
                final int at = find(youngKeys, keys[i]);
                youngKeys[at] = keys[i];
                youngSeeds[at] = seeds[i];
            }
        }
    }

    /** Index of the key, or of the free entry where it would go. */
    private static int find(long[] keys, long key) {
        final int mask = keys.length - 1;
        int at = (int) ((key * 0x9e3779b97f4a7c15L) >>> 32) & mask;
        while (keys[at] != 0 && keys[at] != key) {
            at = (at + 1) & mask;
        }
        return at;
    }

    // 0 marks a free entry; the two engine hashes 0 and 1 share a key, which costs at most a match
    private static long keyOf(long engineHash) {
        return engineHash == 0 ? 1 : engineHash;
    }
}
