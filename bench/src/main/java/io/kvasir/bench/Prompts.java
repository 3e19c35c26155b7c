package io.kvasir.bench;

import java.util.SplittableRandom;

/**
 * Prompts as local hashes, and the workers that hold a part of them. A fixed number of distinct
 * blocks, so that depth changes the shape and not the size. Equal parameters give equal prompts.
 */
final class Prompts {
    /** Distinct blocks of a workload: several times the cores' private caches. */
    static final int BLOCKS = 1 << 18;

    /** Workers that hold some of each prompt. */
    static final int HOLDERS = 4;

    private final int depth;
    private final long[][] localHashes;
    private final int[][] slots; // [prompt][holder]
    private final int[][] depths; // [prompt][holder]
    private int next;

    Prompts(int depth, int workers) {
        final SplittableRandom random = new SplittableRandom(1337);
        this.depth = depth;
        localHashes = new long[BLOCKS / depth][depth];
        slots = new int[localHashes.length][HOLDERS];
        depths = new int[localHashes.length][HOLDERS];
        for (int p = 0; p < localHashes.length; p++) {
            for (int i = 0; i < depth; i++) {
                localHashes[p][i] = random.nextLong();
            }
            final int first = random.nextInt(workers);
            for (int h = 0; h < HOLDERS; h++) {
                slots[p][h] = (first + h) % workers;
                depths[p][h] = h == 0 ? depth : 1 + random.nextInt(depth);
            }
        }
    }

    /** Receives what a worker holds. */
    interface Store {
        void store(int slot, long[] engineHashes, long[] localHashes, int count);
    }

    /** Announces everything that is held; names are unique per slot. */
    void announce(Store store) {
        final long[] names = new long[depth];
        for (int p = 0; p < localHashes.length; p++) {
            for (int i = 0; i < depth; i++) {
                names[i] = Long.reverse((long) p * depth + i + 1);
            }
            for (int h = 0; h < HOLDERS; h++) {
                store.store(slots[p][h], names, localHashes[p], depths[p][h]);
            }
        }
    }

    /** Held (slot, block) pairs. */
    long held() {
        long held = 0;
        for (int[] prompt : depths) {
            for (int count : prompt) {
                held += count;
            }
        }
        return held;
    }

    int depth() {
        return depth;
    }

    int count() {
        return localHashes.length;
    }

    long[] localHashes(int prompt) {
        return localHashes[prompt];
    }

    /** Local hashes of another prompt at each call, far from the last one in memory. */
    long[] next() {
        next += 7_919; // odd, and the number of prompts a power of two: all have their turn
        return localHashes[next & (localHashes.length - 1)];
    }
}
