package io.kvasir.gateway.metrics;

import io.kvasir.gateway.disagg.BlockRelease;
import io.kvasir.gateway.log.RequestRecord;
import io.kvasir.gateway.openai.InferenceRequest;
import io.kvasir.gateway.trace.TraceCounts;
import io.kvasir.gateway.upstream.Fleet;
import io.kvasir.gateway.upstream.Upstream;
import io.kvasir.gateway.upstream.WorkerPool;
import io.kvasir.prompt.memo.PromptMemoCounts;
import io.kvasir.router.RouteException;
import io.prometheus.metrics.core.metrics.Counter;
import io.prometheus.metrics.core.metrics.Histogram;
import io.prometheus.metrics.core.metrics.Info;
import io.prometheus.metrics.instrumentation.jvm.JvmBufferPoolMetrics;
import io.prometheus.metrics.instrumentation.jvm.JvmGarbageCollectorMetrics;
import io.prometheus.metrics.instrumentation.jvm.JvmMemoryMetrics;
import io.prometheus.metrics.instrumentation.jvm.JvmRuntimeInfoMetric;
import io.prometheus.metrics.instrumentation.jvm.ProcessMetrics;

import java.io.IOException;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;

/**
 * What {@code GET /metrics} shows. Counters and histograms are written by the requests; what the
 * router and the workers know is read when the page is asked for.
 */
public final class GatewayMetrics {
    private static final double NANOS = 1e9;
    private static final int FAILED = 400;
    private static final double[] LATENCY = {
        0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300
    };
    private static final double[] PER_TOKEN = {
        0.001, 0.0025, 0.005, 0.01, 0.015, 0.02, 0.03, 0.04, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5,
        1, 2.5
    };
    private static final double[] ROUTING = {
        0.000_01, 0.000_025, 0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.0025, 0.005, 0.01, 0.05,
        0.25
    };

    private static final int FEW_SERVERS = 64;

    private final MetricRegistry page = new MetricRegistry();
    private final TextFormats formats = new TextFormats();
    private final List<Runnable> updates = new ArrayList<>(); // before each page, in this order
    private final Map<InferenceRequest.Route, Map<Upstream, WorkerSeries>> series =
            new EnumMap<>(InferenceRequest.Route.class);
    private final AtomicInteger left = new AtomicInteger(); // servers, whose series are kept
    private final Counter requests;
    private final Counter attempts;
    private final Counter disconnects;
    private final Counter tokenMismatches;
    private final Counter promptTokens;
    private final Counter outputTokens;
    private final Counter predictedTokens;
    private final Counter cachedTokens;
    private final Counter statedTokens;
    private final Counter comparisons;
    private final Counter unknownPrompts;
    private final Counter unrouted;
    private final Histogram duration;
    private final Histogram firstToken;
    private final Histogram perToken;
    private final Histogram tokenize;
    private final Histogram routing;
    private final Histogram dynamoRouting;
    private final Histogram queueWait;
    private final Histogram hitRate;
    private final ModelMetrics byModel = new ModelMetrics(page, LATENCY, PER_TOKEN);
    private final SplitMetrics splits = new SplitMetrics(page, LATENCY);

    public GatewayMetrics() {
        for (InferenceRequest.Route route : InferenceRequest.Route.values()) {
            series.put(route, new ConcurrentHashMap<>());
        }
        requests =
                page.counter(
                        "kvasir_requests_total",
                        "Answers by endpoint, HTTP status (499: the client left), routing mode and"
                                + " model",
                        "route",
                        "status",
                        "mode",
                        "model");
        attempts =
                page.counter(
                        "kvasir_upstream_attempts_total",
                        "Attempts by worker and outcome: ok, or how the worker failed",
                        "worker",
                        "outcome");
        disconnects =
                page.counter(
                        "kvasir_client_disconnects_total",
                        "Clients that left before their answer was complete",
                        "route");
        tokenMismatches =
                page.counter(
                        "kvasir_prompt_token_mismatch_total",
                        "Answers whose prompt_tokens differ from the tokens the gateway hashed",
                        "worker");
        promptTokens = page.counter("kvasir_prompt_tokens_total", "Prompt tokens routed", "worker");
        predictedTokens =
                page.counter(
                        "kvasir_predicted_cached_tokens_total",
                        "Prompt tokens predicted as cached, of answers with a stated number",
                        "worker");
        cachedTokens =
                page.counter(
                        "kvasir_engine_cached_tokens_total",
                        "Prompt tokens that the engine stated as cached",
                        "worker");
        statedTokens =
                page.counter(
                        "kvasir_stated_prompt_tokens_total",
                        "Prompt tokens of answers whose engine stated how many were cached",
                        "worker");
        comparisons =
                page.counter(
                        "kvasir_cache_prediction_total",
                        "Answers by how the prediction compares with the engine: exact, over,"
                                + " under",
                        "worker",
                        "result");
        unknownPrompts =
                page.counter(
                        "kvasir_untokenized_prompts_total",
                        "Prompts whose tokens are not all known: routed by load alone, or by those"
                                + " before the first image",
                        "route");
        unrouted =
                page.counter(
                        "kvasir_routing_refused_total",
                        "Choices of a worker that the router refused, by cause; retries count, too",
                        "model",
                        "pool",
                        "cause");
        duration =
                page.histogram(
                        "kvasir_request_duration_seconds",
                        "Time from a request's headers to the end of its answer",
                        LATENCY,
                        "route",
                        "stream");
        firstToken =
                page.histogram(
                        "kvasir_time_to_first_token_seconds",
                        "Time from a request's headers to its first output token; streams only",
                        LATENCY,
                        "worker",
                        "route");
        perToken =
                page.histogram(
                        "kvasir_time_per_output_token_seconds",
                        "Mean time between two output tokens of a stream of one answer",
                        PER_TOKEN,
                        "worker",
                        "route");
        outputTokens =
                page.counter("kvasir_output_tokens_total", "Output tokens generated", "worker");
        tokenize =
                page.histogram(
                        "kvasir_tokenize_duration_seconds",
                        "Time to turn a prompt into tokens",
                        ROUTING,
                        "route");
        routing =
                page.histogram(
                        "kvasir_routing_duration_seconds",
                        "Time to hash, match, choose and book",
                        ROUTING,
                        "mode");
        dynamoRouting =
                page.histogram(
                        "dynamo_routing_latency_seconds",
                        "The same as kvasir_routing_duration_seconds, without labels",
                        ROUTING);
        queueWait =
                page.histogram(
                        "kvasir_queue_wait_seconds",
                        "Time from a request's admission to its booking, of those that were booked;"
                                + " 0 where a worker had room at once",
                        LATENCY,
                        "pool");
        hitRate =
                Histogram.builder()
                        .name(page.named("router_kv_hit_rate"))
                        .help("Part of a prompt predicted as cached, when it was routed")
                        .classicOnly()
                        .classicLinearUpperBounds(0, 0.05, 21)
                        .register(page.prometheus());
        page.alsoAs(hitRate, "dynamo_component_router_kv_hit_rate");
        Info.builder()
                .name(page.named("kvasir_build_info"))
                .help("Version of Kvasir")
                .labelNames("version")
                .register(page.prometheus())
                .addLabelValues(version());
        registerProcess();
    }

    private static String version() {
        return Objects.requireNonNullElse(
                GatewayMetrics.class.getPackage().getImplementationVersion(), "unknown");
    }

    /** Process and JVM, by the names that dashboards know; none of them keeps a listener. */
    private void registerProcess() {
        ProcessMetrics.builder().register(page.prometheus());
        JvmRuntimeInfoMetric.builder().register(page.prometheus());
        JvmMemoryMetrics.builder().register(page.prometheus());
        JvmGarbageCollectorMetrics.builder().register(page.prometheus());
        ThreadMetrics.register(page.prometheus());
        JvmBufferPoolMetrics.builder().register(page.prometheus());
    }

    /** Every metric that the page may show, as it is spelled there. */
    Set<String> names() {
        return page.names();
    }

    /** What is counted of requests that are split. */
    public SplitMetrics splits() {
        return splits;
    }

    /** What is counted by model. */
    public ModelMetrics byModel() {
        return byModel;
    }

    /**
     * Adds what is read from routers and workers when the page is asked for. Series of a router
     * have the label {@code model} where there are several models.
     */
    public void watch(Fleet servers) {
        final FleetMetrics fleet = new FleetMetrics(page, servers);
        updates.add(
                () -> {
                    fleet.update();
                    forgetAllBut(servers.upstreams());
                });
        servers.onRemoval(() -> left(servers.upstreams()));
        byModel.watch(servers);
        page.gauge(
                "dynamo_kv_hit_rate",
                "Part of prompt tokens that the engine stated as cached, since the start",
                out -> {
                    // of those that are there: asking a counter by a name makes a series
                    for (var stated : statedTokens.collect().getDataPoints()) {
                        final String worker = stated.getLabels().get("worker");
                        if (stated.getValue() > 0) {
                            out.call(
                                    cachedTokens.labelValues(worker).get() / stated.getValue(),
                                    worker);
                        }
                    }
                },
                "worker");
    }

    /**
     * Adds what the gateway itself is busy with.
     *
     * @param now asked once for each page
     */
    public void watch(Supplier<GatewayActivity> now) {
        updates.add(new ActivityMetrics(page, now)::update);
    }

    /**
     * Adds what becomes of the blocks that prefill workers hold.
     *
     * @param release asked once for each page
     */
    public void watch(BlockRelease release) {
        updates.add(new BlockReleaseMetrics(page, release)::update);
    }

    /** Adds what became of spans. */
    public void watch(TraceCounts traces) {
        page.count(
                "kvasir_trace_spans_total",
                "Spans of sampled requests: that ended, that the collector took, that it did not"
                        + " take",
                out -> {
                    out.call((double) traces.ended(), "ended");
                    out.call((double) traces.exported(), "exported");
                    out.call((double) traces.failed(), "failed");
                },
                "result");
    }

    /** Adds how the settings that hold were changed. */
    public void watch(SettingsCounts settings) {
        page.gauge(
                "kvasir_settings_version",
                "Version of the settings that hold now, counted from 1 by changes",
                out -> out.call((double) settings.version()));
        page.count(
                "kvasir_settings_changes_total",
                "Changes of settings while the gateway runs, by an operator or by the file",
                out -> {
                    for (SettingsCounts.By by : SettingsCounts.By.values()) {
                        out.call((double) settings.count(by, false), by.spelling(), "applied");
                        out.call((double) settings.count(by, true), by.spelling(), "refused");
                    }
                },
                "by",
                "outcome");
    }

    /** Adds what is read from the memory of prompts that gateways share. */
    public void watchMemo(Supplier<PromptMemoCounts> counts) {
        page.count(
                "kvasir_prompt_memo_total",
                "Sections of prompts that were looked up in shared memory: found, not found;"
                        + " entries that gave way to newer ones; what was damaged or locked",
                out -> {
                    final PromptMemoCounts now = counts.get();
                    out.call((double) now.hits(), "hit");
                    out.call((double) now.misses(), "miss");
                    out.call((double) now.evictions(), "eviction");
                    out.call((double) now.errors(), "error");
                },
                "event");
    }

    /**
     * A server has left. Where no page is asked for, the series of those that have are forgotten
     * when they are as many as the others: all are looked through for it.
     */
    private void left(List<Upstream> others) {
        if (left.incrementAndGet() > Math.max(FEW_SERVERS, others.size())) {
            forgetAllBut(others);
        }
    }

    /** A request that outlives its worker makes a series anew, until the next page. */
    private void forgetAllBut(List<Upstream> servers) {
        left.set(0);
        final Set<Upstream> there = new HashSet<>(servers);
        final Set<String> names = new HashSet<>();
        servers.forEach(server -> names.add(server.name()));
        series.values().forEach(each -> each.keySet().retainAll(there));
        byModel.forgetAllBut(servers);
        page.forgetAllBut(names);
    }

    /** A prompt was read; {@code known} says whether its tokens are known. */
    public void tokenized(InferenceRequest.Route route, long durationNs, boolean known) {
        tokenize.labelValues(route.label).observe(durationNs / NANOS);
        if (!known) {
            unknownPrompts.labelValues(route.label).inc();
        }
    }

    /**
     * A prompt was booked on a worker.
     *
     * @param tokens of the prompt, 0 where they are unknown
     * @param predictedCachedTokens those of them that the worker is taken to hold
     */
    public void routed(
            String mode, String worker, int tokens, int predictedCachedTokens, long durationNs) {
        routing.labelValues(mode).observe(durationNs / NANOS);
        dynamoRouting.observe(durationNs / NANOS);
        promptTokens.labelValues(worker).inc(tokens);
        if (tokens > 0) {
            hitRate.observe((double) predictedCachedTokens / tokens);
        }
    }

    /** No worker was chosen for a request, or for a part of it. */
    public void notRouted(String model, WorkerPool pool, RouteException.Kind cause) {
        unrouted.labelValues(model, pool.spelling(), cause.spelling()).inc();
    }

    /** A request was booked that may have waited for it. */
    public void queued(WorkerPool pool, long waitedNs) {
        queueWait.labelValues(pool.spelling()).observe(waitedNs / NANOS);
    }

    /** An attempt at a worker has ended. */
    public void attempt(String worker, String outcome) {
        attempts.labelValues(worker, outcome).inc();
    }

    /** Looked up once for a server: what is recorded by them allocates nothing. */
    private WorkerSeries of(Upstream upstream, InferenceRequest.Route route) {
        final Map<Upstream, WorkerSeries> known = series.get(route);
        final WorkerSeries found = known.get(upstream);
        return found != null
                ? found
                : known.computeIfAbsent(
                        upstream,
                        server ->
                                new WorkerSeries(
                                        firstToken.labelValues(server.name(), route.label),
                                        perToken.labelValues(server.name(), route.label),
                                        outputTokens.labelValues(server.name())));
    }

    /** The first output token of a stream has come. */
    public void firstToken(Upstream upstream, InferenceRequest.Route route, long sinceStartNs) {
        of(upstream, route).firstToken().observe(sinceStartNs / NANOS);
    }

    /** A stream has ended: mean time between its output tokens. */
    public void timePerToken(Upstream upstream, InferenceRequest.Route route, long ns) {
        of(upstream, route).timePerToken().observe(ns / NANOS);
    }

    /** Output tokens have come. */
    public void generated(Upstream upstream, InferenceRequest.Route route, int tokens) {
        of(upstream, route).outputTokens().inc(tokens);
        byModel.generated(upstream.model(), tokens);
    }

    /**
     * An inference request that a worker was looked for has ended.
     *
     * @param model that it asked for
     * @param status what it came to
     */
    public void finished(
            InferenceRequest.Route route,
            boolean stream,
            String model,
            int status,
            long durationNs) {
        byModel.finished(model, route.label, stream, status >= FAILED, durationNs);
        duration.labelValues(route.label, Boolean.toString(stream)).observe(durationNs / NANOS);
    }

    /**
     * Counts a request that has ended: its answer was sent, or could not be.
     *
     * @param status what it came to; the head may have said something else
     * @return false if it was counted before
     */
    public boolean ended(RequestRecord record, int status) {
        if (!record.end(status)) {
            return false;
        }
        requests.labelValues(
                        record.endpoint().label,
                        Integer.toString(record.status()),
                        Objects.requireNonNullElse(record.mode(), "none"),
                        Objects.requireNonNullElse(record.model(), "none"))
                .inc();
        return true;
    }

    /** A client left before its answer was complete. */
    public void disconnected(InferenceRequest.Route route) {
        disconnects.labelValues(route.label).inc();
    }

    /** A worker counted another number of prompt tokens than the gateway. */
    public void tokenMismatch(String worker) {
        tokenMismatches.labelValues(worker).inc();
    }

    /**
     * Compares what was predicted with what the engine stated.
     *
     * @param prompt tokens of the prompt
     * @param predicted how many were predicted as cached
     * @param actual how many were
     */
    public void compared(String worker, int prompt, int predicted, int actual) {
        statedTokens.labelValues(worker).inc(prompt);
        predictedTokens.labelValues(worker).inc(predicted);
        cachedTokens.labelValues(worker).inc(actual);
        comparisons
                .labelValues(
                        worker,
                        predicted == actual ? "exact" : predicted > actual ? "over" : "under")
                .inc();
    }

    /** A page of metrics. */
    public record Page(String contentType, String text) {}

    /**
     * The page; one at a time, all of one snapshot.
     *
     * @param accept the reader's Accept header, null for none: OpenMetrics or Prometheus' text
     */
    public synchronized Page page(String accept) throws IOException {
        updates.forEach(Runnable::run);
        return formats.page(page.prometheus(), accept);
    }
}
