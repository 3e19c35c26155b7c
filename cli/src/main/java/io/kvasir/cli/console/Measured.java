package io.kvasir.cli.console;

import org.HdrHistogram.Histogram;

import java.util.Locale;

/** What was measured, and how it is shown; NaN where nothing was. Stateless. */
public final class Measured {
    private static final double US_PER_MS = 1e3;
    private static final double ROUNDING = 10_000;

    private Measured() {}

    /** A percentile in ms of times in µs. */
    public static double percentileMs(Histogram us, double percentile) {
        return us.getTotalCount() == 0
                ? Double.NaN
                : us.getValueAtPercentile(percentile) / US_PER_MS;
    }

    /** The mean in ms of times in µs. */
    public static double meanMs(Histogram us) {
        return us.getTotalCount() == 0 ? Double.NaN : us.getMean() / US_PER_MS;
    }

    /** For JSON, with four decimals: null for NaN. */
    public static Double rounded(double value) {
        return Double.isNaN(value) ? null : (Double) (Math.round(value * ROUNDING) / ROUNDING);
    }

    /** For people: a dash for NaN. */
    public static String text(String format, double value) {
        return Double.isNaN(value) ? "-" : String.format(Locale.ROOT, format, value);
    }
}
