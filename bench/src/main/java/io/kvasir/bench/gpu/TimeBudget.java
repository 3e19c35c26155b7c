package io.kvasir.bench.gpu;

/**
 * The time that a sweep may take, dealt out to its cells: a cell gets its share of what is left, so
 * a slow one costs the later ones repeats before it costs any of them its turn.
 */
final class TimeBudget {
    private static final int MOST_REPEATS = 100;

    /** Of a cell's share; the rest is for filling and checking its bytes. */
    private static final double REPEATS_SHARE = 0.5;

    private final long endNanos;

    /** Starts now. */
    TimeBudget(long nanos) {
        this.endNanos = System.nanoTime() + nanos;
    }

    boolean isOver() {
        return leftNanos() <= 0;
    }

    private long leftNanos() {
        return endNanos - System.nanoTime();
    }

    /**
     * How often the next cell is measured.
     *
     * @param cellsLeft cells still to come, this one counted
     * @param onceNanos what one transfer of it took
     * @return 1 to 100
     */
    int repeats(int cellsLeft, long onceNanos) {
        final double share = REPEATS_SHARE * leftNanos() / cellsLeft;
        return (int) Math.clamp(share / Math.max(1, onceNanos), 1, MOST_REPEATS);
    }
}
