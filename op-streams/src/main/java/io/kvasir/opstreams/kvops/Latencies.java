package io.kvasir.opstreams.kvops;

import org.HdrHistogram.Histogram;

import java.util.concurrent.TimeUnit;

/**
 * Latencies of queries, with and without those during which the thread lost its core. Recording
 * allocates nothing. One thread.
 */
public final class Latencies {
    private static final long LONGEST_NS = TimeUnit.MINUTES.toNanos(10);
    private static final int DIGITS = 3;

    private final Histogram kept = histogram();
    private final Histogram raw = histogram();
    private long keptSumNs;

    static Histogram histogram() {
        return new Histogram(LONGEST_NS, DIGITS);
    }

    /** The nearest value that a histogram takes. */
    static long clamped(long ns) {
        return Math.clamp(ns, 0, LONGEST_NS);
    }

    /**
     * Adds a query.
     *
     * @param ns what it took
     * @param preempted whether the thread lost its core meanwhile; such a query counts in {@link
     *     #raw} alone
     */
    public void record(long ns, boolean preempted) {
        final long value = clamped(ns);
        raw.recordValue(value);
        if (!preempted) {
            kept.recordValue(value);
            keptSumNs += value;
        }
    }

    /** Queries recorded. */
    public long count() {
        return raw.getTotalCount();
    }

    /** Share of queries during which the thread lost its core, 0..1. */
    public double preemptedShare() {
        return raw.getTotalCount() == 0
                ? 0
                : 1 - (double) kept.getTotalCount() / raw.getTotalCount();
    }

    /** Mean of those without loss of the core, in nanoseconds. */
    public double meanNs() {
        return kept.getTotalCount() == 0 ? 0 : (double) keptSumNs / kept.getTotalCount();
    }

    /** Those without loss of the core, in nanoseconds. */
    public Histogram kept() {
        return kept;
    }

    /** All of them, in nanoseconds. */
    public Histogram raw() {
        return raw;
    }
}
