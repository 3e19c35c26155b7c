package io.kvasir.cli.admin;

import com.fasterxml.jackson.databind.node.ObjectNode;

import java.util.HashMap;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Set;
import java.util.TreeMap;

/**
 * What a gateway did between two moments. Figures are NaN where nothing was there to be divided.
 *
 * @param seconds between them
 * @param sinceStart whether the first moment is the start of the gateway
 * @param requestsPerSecond answers to requests for text
 * @param refusedPerSecond those of them with a status of 400 or more
 * @param decisionsPerSecond workers chosen
 * @param hitRate tokens that engines took from their caches, of the prompt tokens of these answers
 * @param exactRate predictions of these that were exact
 * @param ttftMeanSeconds mean time to the first token of streams
 * @param ttftP95Seconds 95th percentile of it, between the bounds of a histogram
 * @param outputTokensPerSecond tokens generated
 * @param attemptsPerSecond by worker
 * @param hitRates by worker
 */
record Rates(
        double seconds,
        boolean sinceStart,
        double requestsPerSecond,
        double refusedPerSecond,
        double decisionsPerSecond,
        double hitRate,
        double exactRate,
        double ttftMeanSeconds,
        double ttftP95Seconds,
        double outputTokensPerSecond,
        Map<String, Double> attemptsPerSecond,
        Map<String, Double> hitRates) {
    private static final Set<String> ROUTES = Set.of("chat", "completions");
    private static final int FIRST_REFUSAL = 400;
    private static final double P95 = 0.95;
    private static final double NANOS = 1e9;

    /** What a counter has counted; one that fell began anew, one that is absent is 0. */
    private static double grown(double before, double now) {
        if (Double.isNaN(now)) {
            return 0;
        }
        return Double.isNaN(before) || now < before ? now : now - before;
    }

    /**
     * Between two views of one gateway.
     *
     * @param beforeOrNull null for its start
     */
    static Rates between(GatewayView beforeOrNull, GatewayView now) {
        final boolean restarted =
                beforeOrNull != null
                        && now.upSeconds() < (now.takenNs() - beforeOrNull.takenNs()) / NANOS;
        final GatewayView before = restarted ? null : beforeOrNull;
        final double seconds =
                before == null
                        ? now.upSeconds()
                        : Math.max(1, now.takenNs() - before.takenNs()) / NANOS;
        final MetricsPage page = now.metrics();
        final MetricsPage old =
                before == null ? MetricsPage.read(new byte[0], Set.of()) : before.metrics();
        final double cached = grown(old.sum(GatewayView.CACHED), page.sum(GatewayView.CACHED));
        final double stated = grown(old.sum(GatewayView.STATED), page.sum(GatewayView.STATED));
        return new Rates(
                seconds,
                before == null,
                requests(old, page, 0) / seconds,
                requests(old, page, FIRST_REFUSAL) / seconds,
                grown(old.sum(GatewayView.DECISIONS), page.sum(GatewayView.DECISIONS)) / seconds,
                stated > 0 ? cached / stated : Double.NaN,
                exact(old, page),
                mean(old, page),
                percentile(old.buckets(GatewayView.TTFT), page.buckets(GatewayView.TTFT)),
                grown(old.sum(GatewayView.OUTPUT), page.sum(GatewayView.OUTPUT)) / seconds,
                byWorker(old, page, GatewayView.ATTEMPTS, seconds),
                hitRates(old, page));
    }

    private static double requests(MetricsPage old, MetricsPage page, int leastStatus) {
        return grown(requests(old, leastStatus), requests(page, leastStatus));
    }

    private static double requests(MetricsPage page, int leastStatus) {
        return page.sum(
                GatewayView.REQUESTS,
                series ->
                        ROUTES.contains(series.label("route"))
                                && (leastStatus == 0 || status(series) >= leastStatus));
    }

    private static int status(MetricsPage.Series series) {
        final String text = series.label("status");
        return text.matches("\\d{3}") ? Integer.parseInt(text) : FIRST_REFUSAL;
    }

    private static double exact(MetricsPage old, MetricsPage page) {
        final double all =
                grown(old.sum(GatewayView.PREDICTIONS), page.sum(GatewayView.PREDICTIONS));
        final double exact = grown(exact(old), exact(page));
        return all > 0 ? exact / all : Double.NaN;
    }

    private static double exact(MetricsPage page) {
        return page.sum(GatewayView.PREDICTIONS, s -> s.label("result").equals("exact"));
    }

    private static double mean(MetricsPage old, MetricsPage page) {
        final String count = GatewayView.TTFT + "_count";
        final String sum = GatewayView.TTFT + "_sum";
        final double counted = grown(old.sum(count), page.sum(count));
        return counted > 0 ? grown(old.sum(sum), page.sum(sum)) / counted : Double.NaN;
    }

    private static double percentile(
            NavigableMap<Double, Double> old, NavigableMap<Double, Double> buckets) {
        if (buckets.isEmpty()) {
            return Double.NaN;
        }
        final NavigableMap<Double, Double> grown = new TreeMap<>();
        buckets.forEach(
                (bound, count) -> grown.put(bound, grown(old.getOrDefault(bound, 0.0), count)));
        final double all = grown.lastEntry().getValue();
        double lower = 0;
        double below = 0;
        for (Map.Entry<Double, Double> bucket : grown.entrySet()) {
            if (all > 0 && bucket.getValue() >= P95 * all) {
                return Double.isInfinite(bucket.getKey())
                        ? lower
                        : lower
                                + (bucket.getKey() - lower)
                                        * (P95 * all - below)
                                        / (bucket.getValue() - below);
            }
            lower = bucket.getKey();
            below = bucket.getValue();
        }
        return Double.NaN;
    }

    private static Map<String, Double> byWorker(
            MetricsPage old, MetricsPage page, String name, double divisor) {
        final Map<String, Double> before = old.sums(name, "worker");
        final Map<String, Double> rates = new HashMap<>();
        page.sums(name, "worker")
                .forEach(
                        (worker, now) ->
                                rates.put(
                                        worker,
                                        grown(before.getOrDefault(worker, 0.0), now) / divisor));
        return rates;
    }

    private static Map<String, Double> hitRates(MetricsPage old, MetricsPage page) {
        final Map<String, Double> rates = byWorker(old, page, GatewayView.STATED, 1);
        final Map<String, Double> cached = byWorker(old, page, GatewayView.CACHED, 1);
        rates.replaceAll(
                (worker, stated) ->
                        stated > 0 ? cached.getOrDefault(worker, 0.0) / stated : Double.NaN);
        return rates;
    }

    /** Adds them to an object. */
    void put(ObjectNode json) {
        put(json, "seconds", seconds);
        json.put("since_start", sinceStart);
        put(json, "requests_per_s", requestsPerSecond);
        put(json, "refused_per_s", refusedPerSecond);
        put(json, "decisions_per_s", decisionsPerSecond);
        put(json, "hit_rate", hitRate);
        put(json, "exact_rate", exactRate);
        put(json, "ttft_mean_s", ttftMeanSeconds);
        put(json, "ttft_p95_s", ttftP95Seconds);
        put(json, "output_tokens_per_s", outputTokensPerSecond);
    }

    private static void put(ObjectNode json, String name, double value) {
        if (Double.isFinite(value)) {
            json.put(name, value);
        } else {
            json.putNull(name);
        }
    }
}
