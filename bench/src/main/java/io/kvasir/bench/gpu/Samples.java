package io.kvasir.bench.gpu;

import java.util.Arrays;

/** Times of equal work, in nanoseconds. */
final class Samples {
    private final long[] nanos;
    private int count;

    Samples(int capacity) {
        nanos = new long[capacity];
    }

    void add(long sample) {
        nanos[count++] = sample;
    }

    /** The median in microseconds; of an even number the higher one in the middle. */
    double medianMicros() {
        final long[] sorted = Arrays.copyOf(nanos, count);
        Arrays.sort(sorted);
        return sorted[count / 2] / 1e3;
    }
}
