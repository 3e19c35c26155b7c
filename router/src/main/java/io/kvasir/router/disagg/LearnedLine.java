package io.kvasir.router.disagg;

/**
 * Seconds as {@code a + b · tokens}, learned by least squares that forget: each sample weighs
 * {@value #KEPT} of the one after it. Neither {@code a} nor {@code b} is below 0: where the samples
 * say so, the other one alone explains them. Thread-safe.
 */
public final class LearnedLine {
    private static final double KEPT = 0.98;

    /** Fewer samples say nothing. */
    private static final int LEAST_SAMPLES = 8;

    /**
     * Below this share of the mean square, the tokens are too alike to tell {@code b} from {@code
     * a}.
     */
    private static final double TOO_ALIKE = 1e-6;

    private record Line(double fixed, double perToken) {}

    private double weight;
    private double sumX;
    private double sumY;
    private double sumXx;
    private double sumXy;
    private int samples;
    private volatile Line line; // null before enough is known

    /** A line of which nothing is known. */
    public LearnedLine() {}

    /**
     * Takes a sample.
     *
     * @param tokens not negative
     * @param seconds that they took; a sample that is negative or no number is ignored
     */
    public synchronized void learn(double tokens, double seconds) {
        if (!(tokens >= 0 && seconds >= 0) || Double.isInfinite(tokens + seconds)) {
            return;
        }
        weight = weight * KEPT + 1;
        sumX = sumX * KEPT + tokens;
        sumY = sumY * KEPT + seconds;
        sumXx = sumXx * KEPT + tokens * tokens;
        sumXy = sumXy * KEPT + tokens * seconds;
        samples = Math.min(samples + 1, LEAST_SAMPLES);
        if (samples == LEAST_SAMPLES) {
            line = solve();
        }
    }

    private Line solve() {
        final double spread = weight * sumXx - sumX * sumX;
        if (spread <= TOO_ALIKE * weight * sumXx) {
            return sumX > 0 ? new Line(0, sumY / sumX) : new Line(sumY / weight, 0);
        }
        final double perToken = (weight * sumXy - sumX * sumY) / spread;
        final double fixed = (sumY - perToken * sumX) / weight;
        if (perToken < 0) {
            return new Line(sumY / weight, 0);
        }
        return fixed < 0 ? new Line(0, sumXy / sumXx) : new Line(fixed, perToken);
    }

    /**
     * Whether enough samples have come to ask for a time.
     *
     * @return true from the eighth sample on
     */
    public boolean isKnown() {
        return line != null;
    }

    /**
     * This line, or another one as long as nothing is known of this one.
     *
     * @param other the line that stands for this one until then
     * @return this line if it {@link #isKnown}, else {@code other}
     */
    public LearnedLine orElse(LearnedLine other) {
        return isKnown() ? this : other;
    }

    /**
     * Expects a time.
     *
     * @param tokens not negative
     * @return seconds; NaN while {@link #isKnown} is false
     */
    public double seconds(double tokens) {
        final Line known = line;
        return known == null ? Double.NaN : known.fixed + known.perToken * tokens;
    }

    /**
     * What one more token takes.
     *
     * @return seconds; NaN while {@link #isKnown} is false
     */
    public double secondsPerToken() {
        final Line known = line;
        return known == null ? Double.NaN : known.perToken;
    }
}
