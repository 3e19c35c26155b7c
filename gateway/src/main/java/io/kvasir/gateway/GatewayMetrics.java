package io.kvasir.gateway;

import io.kvasir.core.slots.RoutedPrefixes;
import io.kvasir.pipeline.IndexState;
import io.kvasir.pipeline.SourceStatus;
import io.kvasir.router.KvRouter;
import io.kvasir.router.Worker;
import io.prometheus.metrics.config.EscapingScheme;
import io.prometheus.metrics.core.metrics.Counter;
import io.prometheus.metrics.core.metrics.CounterWithCallback;
import io.prometheus.metrics.core.metrics.GaugeWithCallback;
import io.prometheus.metrics.core.metrics.Histogram;
import io.prometheus.metrics.expositionformats.PrometheusTextFormatWriter;
import io.prometheus.metrics.model.registry.PrometheusRegistry;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.util.Locale;
import java.util.function.ToDoubleFunction;

/**
 * What {@code GET /metrics} shows. Counters and histograms are written by the requests; what the
 * router and the workers know is read when the page is asked for.
 */
final class GatewayMetrics {
    /** Content type of {@link #text}. */
    static final String CONTENT_TYPE = PrometheusTextFormatWriter.CONTENT_TYPE;

    private static final double NANOS = 1e9;
    private static final double[] LATENCY = {
        0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300
    };
    private static final double[] ROUTING = {
        0.000_01, 0.000_025, 0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.0025, 0.005, 0.01, 0.05,
        0.25
    };

    private final PrometheusRegistry registry = new PrometheusRegistry();
    private final PrometheusTextFormatWriter writer = PrometheusTextFormatWriter.create();
    private final Counter requests;
    private final Counter attempts;
    private final Counter disconnects;
    private final Counter tokenMismatches;
    private final Counter promptTokens;
    private final Counter predictedTokens;
    private final Counter cachedTokens;
    private final Counter comparisons;
    private final Counter unknownPrompts;
    private final Histogram duration;
    private final Histogram firstToken;
    private final Histogram tokenize;
    private final Histogram routing;
    private final Histogram dynamoRouting;
    private final Histogram hitRate;

    GatewayMetrics() {
        requests =
                counter(
                        "kvasir_requests_total",
                        "Requests by route, HTTP status (499: the client left) and routing mode",
                        "route",
                        "status",
                        "mode");
        attempts =
                counter(
                        "kvasir_upstream_attempts_total",
                        "Attempts by worker and outcome: ok, or how the worker failed",
                        "worker",
                        "outcome");
        disconnects =
                counter(
                        "kvasir_client_disconnects_total",
                        "Clients that left before their answer was complete",
                        "route");
        tokenMismatches =
                counter(
                        "kvasir_prompt_token_mismatch_total",
                        "Answers whose prompt_tokens differ from the tokens the gateway hashed",
                        "worker");
        promptTokens = counter("kvasir_prompt_tokens_total", "Prompt tokens routed", "worker");
        predictedTokens =
                counter(
                        "kvasir_predicted_cached_tokens_total",
                        "Prompt tokens predicted as cached, of answers with a stated number",
                        "worker");
        cachedTokens =
                counter(
                        "kvasir_engine_cached_tokens_total",
                        "Prompt tokens that the engine stated as cached",
                        "worker");
        comparisons =
                counter(
                        "kvasir_cache_prediction_total",
                        "Answers by how the prediction compares with the engine: exact, over,"
                                + " under",
                        "worker",
                        "result");
        unknownPrompts =
                counter(
                        "kvasir_untokenized_prompts_total",
                        "Prompts routed by load alone, because their tokens cannot be known",
                        "route");
        duration =
                histogram(
                        "kvasir_request_duration_seconds",
                        "Time from a request's headers to the end of its answer",
                        LATENCY,
                        "route",
                        "stream");
        firstToken =
                histogram(
                        "kvasir_time_to_first_token_seconds",
                        "Time from a request's headers to its first output token; streams only",
                        LATENCY,
                        "route");
        tokenize =
                histogram(
                        "kvasir_tokenize_duration_seconds",
                        "Time to turn a prompt into tokens",
                        ROUTING,
                        "route");
        routing =
                histogram(
                        "kvasir_routing_duration_seconds",
                        "Time to hash, match, choose and book",
                        ROUTING,
                        "mode");
        dynamoRouting =
                histogram(
                        "dynamo_routing_latency_seconds",
                        "The same as kvasir_routing_duration_seconds, without labels",
                        ROUTING);
        hitRate =
                Histogram.builder()
                        .name("router_kv_hit_rate")
                        .help("Part of a prompt predicted as cached, when it was routed")
                        .classicOnly()
                        .classicLinearUpperBounds(0, 0.05, 21)
                        .register(registry);
    }

    private Counter counter(String name, String help, String... labels) {
        return Counter.builder().name(name).help(help).labelNames(labels).register(registry);
    }

    private Histogram histogram(String name, String help, double[] bounds, String... labels) {
        return Histogram.builder()
                .name(name)
                .help(help)
                .labelNames(labels)
                .classicOnly()
                .classicUpperBounds(bounds)
                .register(registry);
    }

    /** Adds what is read from workers when the page is asked for. */
    void watch(Fleet fleet) {
        gauge(fleet, "active_requests", "Requests booked and not released", Worker::activeRequests);
        gauge(fleet, "prefill_tokens", "Tokens still to be prefilled", Worker::prefillTokens);
        gauge(fleet, "active_blocks", "Blocks in use by running requests", Worker::activeBlocks);
        gauge(
                fleet,
                "index_blocks",
                "Blocks the index holds for the worker",
                Worker::indexedBlocks);
        gauge(fleet, "event_sequence", "Number of the last event applied", Worker::eventSequence);
        gauge(
                fleet,
                "event_age_seconds",
                "Time since the last event message, NaN before the first",
                GatewayMetrics::eventAgeSeconds);
        GaugeWithCallback.builder()
                .name("kvasir_worker_up")
                .help("1 if requests may be sent to the worker")
                .labelNames("worker", "dp_rank")
                .callback(
                        out -> {
                            for (Worker w : fleet.workers()) {
                                out.call(w.available() ? 1 : 0, w.name(), rank(w));
                            }
                        })
                .register(registry);
        GaugeWithCallback.builder()
                .name("kvasir_worker_index_state")
                .help("1 for the state that the worker's index is in")
                .labelNames("worker", "dp_rank", "state")
                .callback(
                        out -> {
                            for (Worker w : fleet.workers()) {
                                final IndexState current = w.state();
                                for (IndexState state : IndexState.values()) {
                                    out.call(
                                            state == current ? 1 : 0,
                                            w.name(),
                                            rank(w),
                                            lower(state));
                                }
                            }
                        })
                .register(registry);
        GaugeWithCallback.builder()
                .name("kvasir_worker_tokenizer")
                .help("1 for the result of comparing the gateway's tokens with the engine's")
                .labelNames("worker", "result")
                .callback(
                        out -> {
                            for (Upstream u : fleet.upstreams()) {
                                for (Upstream.TokenizerCheck c : Upstream.TokenizerCheck.values()) {
                                    out.call(u.tokenizer() == c ? 1 : 0, u.name(), c.spelling());
                                }
                            }
                        })
                .register(registry);
        CounterWithCallback.builder()
                .name("kvasir_event_messages_total")
                .help("Event messages received")
                .labelNames("worker", "dp_rank")
                .callback(
                        out -> {
                            for (Worker w : fleet.workers()) {
                                final SourceStatus status = w.sourceStatus();
                                out.call(
                                        status == null ? 0.0 : (double) status.messages(),
                                        w.name(),
                                        rank(w));
                            }
                        })
                .register(registry);
        CounterWithCallback.builder()
                .name("kvasir_events_dropped_total")
                .help("Events that were not applied, by reason")
                .labelNames("worker", "dp_rank", "reason")
                .callback(
                        out -> {
                            for (Worker w : fleet.workers()) {
                                final SourceStatus status = w.sourceStatus();
                                if (status != null) {
                                    status.drops()
                                            .forEach(
                                                    (reason, count) ->
                                                            out.call(
                                                                    (double) count,
                                                                    w.name(),
                                                                    rank(w),
                                                                    reason));
                                }
                            }
                        })
                .register(registry);
    }

    /** Adds what is read from the router when the page is asked for. */
    void watch(KvRouter router) {
        CounterWithCallback.builder()
                .name("kvasir_bookings_expired_total")
                .help("Bookings that booking-timeout-ms has ended")
                .callback(out -> out.call((double) router.expiredLeases()))
                .register(registry);
        CounterWithCallback.builder()
                .name("kvasir_bookings_pathless_total")
                .help(
                        "Requests that counted all their blocks as their own, for want of room to"
                                + " say which they share")
                .callback(out -> out.call((double) router.slotTable().pathlessBookings()))
                .register(registry);
        CounterWithCallback.builder()
                .name("kvasir_load_corrections_total")
                .help("How often a worker's load was not what is booked on it, and was corrected")
                .callback(out -> out.call((double) router.slotTable().corrections()))
                .register(registry);
        if (router.routedPrefixes() != null) {
            watch(router.routedPrefixes());
        }
    }

    private void watch(RoutedPrefixes routed) {
        GaugeWithCallback.builder()
                .name("kvasir_routed_blocks")
                .help("Blocks that workers without events are taken to hold")
                .callback(out -> out.call((double) routed.blocks()))
                .register(registry);
        GaugeWithCallback.builder()
                .name("kvasir_routed_prompts")
                .help("Routed prompts that these blocks are of")
                .callback(out -> out.call((double) routed.visits()))
                .register(registry);
        CounterWithCallback.builder()
                .name("kvasir_routed_prompts_dropped_total")
                .help(
                        "Routed prompts that do not count any more: expired, pruned for want of"
                                + " room; or never counted: refused")
                .labelNames("reason")
                .callback(
                        out -> {
                            out.call((double) routed.expired(), "expired");
                            out.call((double) routed.pruned(), "pruned");
                            out.call((double) routed.refused(), "refused");
                        })
                .register(registry);
    }

    private void gauge(Fleet fleet, String name, String help, ToDoubleFunction<Worker> value) {
        GaugeWithCallback.builder()
                .name("kvasir_worker_" + name)
                .help(help)
                .labelNames("worker", "dp_rank")
                .callback(
                        out -> {
                            for (Worker w : fleet.workers()) {
                                out.call(value.applyAsDouble(w), w.name(), rank(w));
                            }
                        })
                .register(registry);
    }

    private static double eventAgeSeconds(Worker worker) {
        final SourceStatus status = worker.sourceStatus();
        return status == null || status.lastEventAgeNs() < 0
                ? Double.NaN
                : status.lastEventAgeNs() / NANOS;
    }

    private static String rank(Worker worker) {
        return Integer.toString(worker.dpRank());
    }

    private static String lower(Enum<?> value) {
        return value.name().toLowerCase(Locale.ROOT);
    }

    void tokenized(InferenceRequest.Route route, long durationNs, boolean known) {
        tokenize.labelValues(route.label).observe(durationNs / NANOS);
        if (!known) {
            unknownPrompts.labelValues(route.label).inc();
        }
    }

    void routed(DecisionRecord decision, long durationNs) {
        routing.labelValues(decision.mode().spelling()).observe(durationNs / NANOS);
        dynamoRouting.observe(durationNs / NANOS);
        promptTokens.labelValues(decision.worker()).inc(decision.tokens());
        if (decision.tokens() > 0) {
            hitRate.observe((double) decision.predictedCachedTokens() / decision.tokens());
        }
    }

    void attempt(String worker, String outcome) {
        attempts.labelValues(worker, outcome).inc();
    }

    void firstToken(InferenceRequest.Route route, long sinceStartNs) {
        firstToken.labelValues(route.label).observe(sinceStartNs / NANOS);
    }

    void finished(
            InferenceRequest.Route route,
            boolean stream,
            int status,
            String mode,
            long durationNs) {
        requests.labelValues(route.label, Integer.toString(status), mode).inc();
        duration.labelValues(route.label, Boolean.toString(stream)).observe(durationNs / NANOS);
    }

    /** A request that was refused before it was routed. */
    void refused(String route, int status) {
        requests.labelValues(route, Integer.toString(status), "none").inc();
    }

    void disconnected(InferenceRequest.Route route) {
        disconnects.labelValues(route.label).inc();
    }

    void tokenMismatch(String worker) {
        tokenMismatches.labelValues(worker).inc();
    }

    /** Compares what was predicted with what the engine stated. */
    void compared(String worker, int predicted, int actual) {
        predictedTokens.labelValues(worker).inc(predicted);
        cachedTokens.labelValues(worker).inc(actual);
        comparisons
                .labelValues(
                        worker,
                        predicted == actual ? "exact" : predicted > actual ? "over" : "under")
                .inc();
    }

    /** The page, in Prometheus' text format. */
    byte[] text() throws IOException {
        final ByteArrayOutputStream out = new ByteArrayOutputStream(16_384);
        writer.write(out, registry.scrape(), EscapingScheme.UNDERSCORE_ESCAPING);
        return out.toByteArray();
    }
}
