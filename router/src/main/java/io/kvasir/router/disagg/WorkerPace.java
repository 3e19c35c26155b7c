package io.kvasir.router.disagg;

/**
 * How one worker's times stand beside what the {@link LearnedLine} of its pool expects: 1 if they
 * are alike, 2 if it takes twice as long. Learned from sums that forget, so that long prompts count
 * more than short ones, and held to 1 while there are few samples. Thread-safe.
 */
public final class WorkerPace {
    private static final double KEPT = 0.98;

    /** Counts as so many samples of a worker that is like the others. */
    private static final double ALIKE = 4;

    private double weight;
    private double expected;
    private double taken;
    private volatile double factor = 1;

    /** Of a worker of which nothing is known. */
    public WorkerPace() {}

    /**
     * Takes a sample.
     *
     * @param expectedSeconds what the pool's line says; a sample is ignored where that is not
     *     positive, or NaN
     * @param seconds what it took; a sample that is negative or no number is ignored
     */
    public synchronized void learn(double expectedSeconds, double seconds) {
        if (!(expectedSeconds > 0 && seconds >= 0)
                || Double.isInfinite(expectedSeconds + seconds)) {
            return;
        }
        weight = weight * KEPT + 1;
        expected = expected * KEPT + expectedSeconds;
        taken = taken * KEPT + seconds;
        factor = (weight * taken / expected + ALIKE) / (weight + ALIKE);
    }

    /**
     * What a time that the pool's line expects is to be multiplied by.
     *
     * @return positive; 1 while nothing is known
     */
    public double factor() {
        return factor;
    }
}
