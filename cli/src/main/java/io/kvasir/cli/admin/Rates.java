package io.kvasir.cli.admin;

import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.gateway.openai.InferenceRequest;

import java.util.Map;
import java.util.NavigableMap;
import java.util.Set;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * What a gateway did between two moments. Figures are NaN where nothing was there to be divided.
 *
 * @param seconds between them
 * @param sinceStart whether the first moment is the start of the gateway
 * @param requestsPerSecond answers to requests that workers are asked for
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
    private static final Set<String> ROUTES =
            Stream.of(InferenceRequest.Route.values())
                    .map(route -> route.label)
                    .collect(Collectors.toUnmodifiableSet());
    private static final int FIRST_REFUSAL = 400;
    private static final double P95 = 0.95;
    private static final double NANOS = 1e9;

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
        final MetricsPage old =
                before == null ? MetricsPage.read(new byte[0], Set.of()) : before.metrics();
        final MetricsPage grown = now.metrics().since(old);
        final double stated = counted(grown, GatewayView.STATED);
        return new Rates(
                seconds,
                before == null,
                requests(grown, 0) / seconds,
                requests(grown, FIRST_REFUSAL) / seconds,
                counted(grown, GatewayView.DECISIONS) / seconds,
                stated > 0 ? counted(grown, GatewayView.CACHED) / stated : Double.NaN,
                exact(grown),
                mean(grown),
                percentile(grown.buckets(GatewayView.TTFT)),
                counted(grown, GatewayView.OUTPUT) / seconds,
                byWorker(grown, GatewayView.ATTEMPTS, seconds),
                hitRates(grown));
    }

    /** A counter that is absent has counted nothing. */
    private static double counted(MetricsPage grown, String name) {
        return counted(grown, name, _ -> true);
    }

    private static double counted(
            MetricsPage grown, String name, Predicate<MetricsPage.Series> which) {
        final double sum = grown.sum(name, which);
        return Double.isNaN(sum) ? 0 : sum;
    }

    private static double requests(MetricsPage grown, int leastStatus) {
        return counted(
                grown,
                GatewayView.REQUESTS,
                series ->
                        ROUTES.contains(series.label("route"))
                                && (leastStatus == 0 || status(series) >= leastStatus));
    }

    private static int status(MetricsPage.Series series) {
        final String text = series.label("status");
        return text.matches("\\d{3}") ? Integer.parseInt(text) : FIRST_REFUSAL;
    }

    private static double exact(MetricsPage grown) {
        final double all = counted(grown, GatewayView.PREDICTIONS);
        final double exact =
                counted(grown, GatewayView.PREDICTIONS, s -> s.label("result").equals("exact"));
        return all > 0 ? exact / all : Double.NaN;
    }

    private static double mean(MetricsPage grown) {
        final double count = counted(grown, GatewayView.TTFT + "_count");
        return count > 0 ? counted(grown, GatewayView.TTFT + "_sum") / count : Double.NaN;
    }

    private static double percentile(NavigableMap<Double, Double> buckets) {
        if (buckets.isEmpty()) {
            return Double.NaN;
        }
        final double all = buckets.lastEntry().getValue();
        double lower = 0;
        double below = 0;
        for (Map.Entry<Double, Double> bucket : buckets.entrySet()) {
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

    private static Map<String, Double> byWorker(MetricsPage grown, String name, double divisor) {
        final Map<String, Double> rates = grown.sums(name, "worker");
        rates.replaceAll((_, counted) -> counted / divisor);
        return rates;
    }

    private static Map<String, Double> hitRates(MetricsPage grown) {
        final Map<String, Double> rates = grown.sums(GatewayView.STATED, "worker");
        final Map<String, Double> cached = grown.sums(GatewayView.CACHED, "worker");
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

    /** Those of one worker, of all its ranks together: null in all of its rows but the first. */
    void put(ObjectNode json, String worker, boolean first) {
        put(json, "sent_per_s", first ? attemptsPerSecond.getOrDefault(worker, 0.0) : Double.NaN);
        put(json, "hit_rate", first ? hitRates.getOrDefault(worker, Double.NaN) : Double.NaN);
    }

    private static void put(ObjectNode json, String name, double value) {
        if (Double.isFinite(value)) {
            json.put(name, value);
        } else {
            json.putNull(name);
        }
    }
}
