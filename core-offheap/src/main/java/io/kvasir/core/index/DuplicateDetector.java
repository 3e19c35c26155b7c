package io.kvasir.core.index;

import io.kvasir.core.memory.FibonacciHash;

import java.util.Arrays;

/**
 * Says whether a list of hashes names one twice. Keeps its scratch between calls; it grows to the
 * longest list seen. One thread.
 */
final class DuplicateDetector {
    private static final int SHORT_LIST = 8;

    private long[] keys = new long[64];
    private int[] rounds = new int[64];
    private int round;

    boolean repeats(long[] hashes, int count) {
        return count <= SHORT_LIST ? repeatsShort(hashes, count) : repeatsLong(hashes, count);
    }

    private static boolean repeatsShort(long[] hashes, int count) {
        for (int i = 1; i < count; i++) {
            for (int j = 0; j < i; j++) {
                if (hashes[i] == hashes[j]) {
                    return true;
                }
            }
        }
        return false;
    }

    private boolean repeatsLong(long[] hashes, int count) {
        startRound(count);
        final int mask = keys.length - 1;
        for (int i = 0; i < count; i++) {
            final long hash = hashes[i];
            int index = (int) (FibonacciHash.spread(hash) >>> 32) & mask;
            while (rounds[index] == round) {
                if (keys[index] == hash) {
                    return true;
                }
                index = (index + 1) & mask;
            }
            rounds[index] = round;
            keys[index] = hash;
        }
        return false;
    }

    private void startRound(int count) {
        if (keys.length < 2 * count) {
            final int length = Integer.highestOneBit(2 * count - 1) << 1;
            keys = new long[length];
            rounds = new int[length];
            round = 0;
        }
        if (++round == 0) {
            Arrays.fill(rounds, 0);
            round = 1;
        }
    }
}
