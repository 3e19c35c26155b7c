package io.kvasir.bench.transfer;

import java.util.concurrent.TimeUnit;

/**
 * Stands for the computation of a layer: arithmetic that leaves memory alone, as much as takes a
 * given time on an idle core.
 */
final class LayerWork {
    private static final long CALIBRATION_NS = TimeUnit.MILLISECONDS.toNanos(100);
    private static final long WARM_UP_NS = TimeUnit.MILLISECONDS.toNanos(500);
    private static final long STEPS = 100_000;

    private final double stepsPerNs;
    private long state = 1;

    /**
     * Measures its own speed: while nothing else of this process runs, or it comes out too slow.
     */
    LayerWork() {
        fastest(WARM_UP_NS); // until it is compiled
        stepsPerNs = fastest(CALIBRATION_NS);
    }

    private double fastest(long forNs) {
        double most = 0;
        final long startNs = System.nanoTime();
        for (long nowNs = startNs; nowNs - startNs < forNs; ) {
            compute(STEPS);
            final long endNs = System.nanoTime();
            most = Math.max(most, (double) STEPS / (endNs - nowNs));
            nowNs = endNs;
        }
        return most;
    }

    /** Steps that take so long. */
    long steps(double ns) {
        return Math.max(1, Math.round(ns * stepsPerNs));
    }

    /** A linear congruential generator: each step needs the one before. */
    void compute(long steps) {
        long x = state;
        for (long i = 0; i < steps; i++) {
            x = x * 6364136223846793005L + 1442695040888963407L;
        }
        state = x; // so that the work cannot be left out
    }
}
