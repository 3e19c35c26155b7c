package io.kvasir.cli.simulate;

import io.kvasir.cli.console.Measured;

import org.HdrHistogram.Histogram;

import java.util.Arrays;

/** Collects what became of the requests of one run. One thread. */
final class FleetStats {
    private static final int DIGITS = 3;
    private static final double NS_PER_US = 1e3;

    private final Histogram ttftUs = new Histogram(DIGITS);
    private final Histogram gapUs = new Histogram(DIGITS);
    private final long[] computedTokens; // by worker
    private int requests;
    private int finished;
    private long promptTokens;
    private long cachedTokens;

    FleetStats(int workers) {
        computedTokens = new long[workers];
        ttftUs.setAutoResize(true);
        gapUs.setAutoResize(true);
    }

    /**
     * The numbers of one run; times in milliseconds of virtual time, NaN where none was seen.
     *
     * @param policy its name
     * @param requests all of them have ended
     * @param hitRate cached / prompt tokens
     * @param ttftP50Ms time to first token from arrival, median
     * @param gapMeanMs time between two tokens of an answer
     * @param imbalance prompt tokens computed by the busiest worker / mean over the workers
     */
    record Result(
            String policy,
            int requests,
            double hitRate,
            double ttftP50Ms,
            double ttftP95Ms,
            double ttftP99Ms,
            double ttftMeanMs,
            double gapMeanMs,
            double gapP99Ms,
            double imbalance) {}

    /** A request begins. */
    Request arrived(int worker, int tokens, long nowNs) {
        requests++;
        return new Request(worker, tokens, nowNs);
    }

    /** Requests so far. */
    int arrivals() {
        return requests;
    }

    /** One request from its arrival on. */
    final class Request {
        private final int worker;
        private final int tokens;
        private long lastNs;

        private Request(int worker, int tokens, long nowNs) {
            this.worker = worker;
            this.tokens = tokens;
            this.lastNs = nowNs;
        }

        /** A token came. */
        void token(long nowNs, int cached, boolean first) {
            final long us = Math.round((nowNs - lastNs) / NS_PER_US);
            lastNs = nowNs;
            if (!first) {
                gapUs.recordValue(us);
                return;
            }
            ttftUs.recordValue(us);
            promptTokens += tokens;
            cachedTokens += cached;
            computedTokens[worker] += tokens - cached;
        }

        void finished() {
            finished++;
        }
    }

    void checkEnd() {
        if (finished != requests) {
            throw new IllegalStateException("finished=" + finished + " of requests=" + requests);
        }
    }

    Result result(String policy) {
        return new Result(
                policy,
                requests,
                promptTokens == 0 ? Double.NaN : (double) cachedTokens / promptTokens,
                Measured.percentileMs(ttftUs, 50),
                Measured.percentileMs(ttftUs, 95),
                Measured.percentileMs(ttftUs, 99),
                Measured.meanMs(ttftUs),
                Measured.meanMs(gapUs),
                Measured.percentileMs(gapUs, 99),
                imbalance());
    }

    private double imbalance() {
        if (finished == 0) {
            return Double.NaN;
        }
        final long sum = Arrays.stream(computedTokens).sum();
        final long max = Arrays.stream(computedTokens).max().orElse(0);
        return sum == 0 ? 1 : (double) max * computedTokens.length / sum;
    }
}
