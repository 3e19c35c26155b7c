package io.kvasir.cli.load;

import io.kvasir.cli.console.Measured;

import org.HdrHistogram.Histogram;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;

/**
 * Collects the outcomes of one run. Any thread may record; {@link #result} is called when all are
 * in.
 *
 * <p>Times are kept in trace time: wall time × speed-up. Latencies count from when a request was
 * due, so a client or gateway that falls behind is not flattered.
 */
public final class RunStats {
    private static final int DIGITS = 3;
    private static final int MAX_ERRORS_KEPT = 3;
    private static final double NS_PER_US = 1_000.0;
    private static final double NS_PER_S = 1e9;

    private final double speedUp;
    private final Histogram ttftUs = new Histogram(DIGITS);
    private final Histogram totalUs = new Histogram(DIGITS);
    private final Histogram issueLagUs = new Histogram(DIGITS);
    private final Histogram gapUs = new Histogram(DIGITS);
    private final Map<String, Long> computedTokens = new TreeMap<>();
    private final Map<String, Integer> requestsByWorker = new TreeMap<>();
    private final List<String> firstErrors = new ArrayList<>();
    private int requests;
    private int errors;
    private long promptTokens;
    private long cachedTokens;
    private long outputTokens;
    private int compared;
    private int exact;
    private int explained;
    private int over;
    private int under;
    private int unexplained;

    /** Of a run whose simulated time is so many times faster than real time. */
    public RunStats(double speedUp) {
        this.speedUp = speedUp;
        ttftUs.setAutoResize(true);
        totalUs.setAutoResize(true);
        issueLagUs.setAutoResize(true);
        gapUs.setAutoResize(true);
    }

    /** How often the gateway's forecast of cached tokens was right. */
    public record Prediction(
            int compared, int exact, int explainedByEvents, int unexplained, int over, int under) {}

    /** Time between two tokens of an answer in trace time; NaN where it was not recorded. */
    public record InterToken(double p50Ms, double p95Ms, double p99Ms, double meanMs) {}

    /**
     * The numbers of one run. Times and rates of a run without answers are NaN, but for {@code
     * wallSeconds}.
     *
     * @param mode routing mode, or {@code external}
     * @param requests requests sent, failed ones included
     * @param errors those that failed
     * @param hitRate cached ÷ prompt tokens, by the engines' usage
     * @param ttftP50Ms median time to first token, trace time
     * @param loadSpread busiest worker's computed prompt tokens ÷ the mean over all workers; 1 =
     *     even
     * @param wallSeconds real time from the first arrival to the last answer
     * @param issueLagP99Ms how late the client sent, wall time: the measurement's own error
     * @param computedTokens prompt tokens computed (not cached) per worker name; of a split
     *     request, those of its prefill worker
     * @param requestsByWorker requests served per worker name
     */
    public record Result(
            String mode,
            int requests,
            int errors,
            double hitRate,
            double ttftP50Ms,
            double ttftP95Ms,
            double ttftP99Ms,
            double ttftMeanMs,
            double totalP50Ms,
            double totalP95Ms,
            double totalMeanMs,
            InterToken interToken,
            double loadSpread,
            double wallSeconds,
            long promptTokens,
            long cachedTokens,
            long outputTokens,
            double issueLagP99Ms,
            Map<String, Long> computedTokens,
            Map<String, Integer> requestsByWorker,
            Prediction prediction,
            List<String> firstErrors) {}

    /** Adds the outcome of one request. */
    public synchronized void record(Outcome outcome) {
        requests++;
        if (outcome.failed()) {
            errors++;
            if (firstErrors.size() < MAX_ERRORS_KEPT) {
                firstErrors.add(outcome.error());
            }
            return;
        }
        ttftUs.recordValue(traceUs(outcome.firstTokenNs() - outcome.scheduledNs()));
        totalUs.recordValue(traceUs(outcome.doneNs() - outcome.scheduledNs()));
        issueLagUs.recordValue(
                Math.max(0, Math.round((outcome.sentNs() - outcome.scheduledNs()) / NS_PER_US)));
        promptTokens += outcome.promptTokens();
        cachedTokens += outcome.cachedTokens();
        outputTokens += outcome.outputTokens();
        computedTokens.merge(outcome.prefilledBy(), outcome.computedTokens(), Long::sum);
        requestsByWorker.merge(outcome.worker(), 1, Integer::sum);
        if (outcome.predictedCachedTokens() >= 0) {
            compare(outcome);
        }
    }

    /** Adds a time between two tokens of an answer, in ns of wall time. */
    public synchronized void recordGap(long wallNs) {
        gapUs.recordValue(traceUs(wallNs));
    }

    private void compare(Outcome outcome) {
        compared++;
        final long difference = outcome.predictedCachedTokens() - outcome.cachedTokens();
        if (difference == 0) {
            exact++;
            return;
        }
        if (difference > 0) {
            over++;
        } else {
            under++;
        }
        final boolean bothStated =
                outcome.routerSequence() != Outcome.UNSTATED
                        && outcome.engineSequence() != Outcome.UNSTATED;
        if (bothStated && outcome.routerSequence() != outcome.engineSequence()) {
            explained++; // the engine's cache moved between the decision and the admission
        } else {
            unexplained++;
        }
    }

    private long traceUs(long wallNs) {
        return Math.max(0, Math.round(wallNs / NS_PER_US * speedUp));
    }

    /** Names of the workers that served requests so far. */
    public synchronized Set<String> workers() {
        return Set.copyOf(requestsByWorker.keySet());
    }

    /** Requests recorded so far. */
    synchronized int requests() {
        return requests;
    }

    /** Requests recorded so far that failed. */
    synchronized int errors() {
        return errors;
    }

    /** Cached ÷ prompt tokens so far; NaN before the first answer. */
    synchronized double hitRate() {
        return promptTokens == 0 ? Double.NaN : (double) cachedTokens / promptTokens;
    }

    /** Median time to first token so far in ms of trace time; NaN before the first answer. */
    synchronized double ttftP50Ms() {
        return Measured.percentileMs(ttftUs, 50);
    }

    /**
     * Closes the books.
     *
     * @param mode name of the run
     * @param workers workers that could have served; those without a request count as idle in the
     *     spread
     * @param wallNs real time of the run
     */
    public synchronized Result result(String mode, int workers, long wallNs) {
        return new Result(
                mode,
                requests,
                errors,
                hitRate(),
                Measured.percentileMs(ttftUs, 50),
                Measured.percentileMs(ttftUs, 95),
                Measured.percentileMs(ttftUs, 99),
                Measured.meanMs(ttftUs),
                Measured.percentileMs(totalUs, 50),
                Measured.percentileMs(totalUs, 95),
                Measured.meanMs(totalUs),
                new InterToken(
                        Measured.percentileMs(gapUs, 50),
                        Measured.percentileMs(gapUs, 95),
                        Measured.percentileMs(gapUs, 99),
                        Measured.meanMs(gapUs)),
                loadSpread(workers),
                wallNs / NS_PER_S,
                promptTokens,
                cachedTokens,
                outputTokens,
                Measured.percentileMs(issueLagUs, 99),
                new TreeMap<>(computedTokens),
                new TreeMap<>(requestsByWorker),
                new Prediction(compared, exact, explained, unexplained, over, under),
                List.copyOf(firstErrors));
    }

    private double loadSpread(int workers) {
        if (requests == errors) {
            return Double.NaN;
        }
        final long sum = computedTokens.values().stream().mapToLong(Long::longValue).sum();
        final long max =
                computedTokens.values().stream().mapToLong(Long::longValue).max().orElse(0);
        final int count = Math.max(workers, computedTokens.size());
        return sum == 0 ? 1 : (double) max * count / sum;
    }
}
