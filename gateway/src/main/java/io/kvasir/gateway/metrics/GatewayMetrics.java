package io.kvasir.gateway.metrics;

import io.kvasir.core.index.StorageTier;
import io.kvasir.core.load.PredictedPrefixes;
import io.kvasir.gateway.config.HandoffProtocol;
import io.kvasir.gateway.disagg.BlockRelease;
import io.kvasir.gateway.disagg.BlockReleaseCounts;
import io.kvasir.gateway.log.RequestRecord;
import io.kvasir.gateway.openai.InferenceRequest;
import io.kvasir.gateway.trace.TraceCounts;
import io.kvasir.gateway.upstream.Fleet;
import io.kvasir.gateway.upstream.Upstream;
import io.kvasir.gateway.upstream.UpstreamRegistry;
import io.kvasir.gateway.upstream.WorkerPool;
import io.kvasir.pipeline.source.EventPlaneStatus;
import io.kvasir.pipeline.source.IndexCause;
import io.kvasir.pipeline.source.IndexState;
import io.kvasir.pipeline.source.SourceStatus;
import io.kvasir.prompt.memo.PromptMemoCounts;
import io.kvasir.router.KvRouter;
import io.kvasir.router.RouteException;
import io.kvasir.router.RouterStatus;
import io.kvasir.router.Worker;
import io.kvasir.router.disagg.FallbackPolicy;
import io.kvasir.router.disagg.LegFailure;
import io.kvasir.router.disagg.SplitEvent;
import io.kvasir.router.queue.QueueStatus;
import io.kvasir.router.queue.RouterQueue;
import io.kvasir.router.replica.ReplicaStatus;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.router.state.SnapshotStatus;
import io.prometheus.metrics.core.metrics.Counter;
import io.prometheus.metrics.core.metrics.CounterWithCallback;
import io.prometheus.metrics.core.metrics.GaugeWithCallback;
import io.prometheus.metrics.core.metrics.Histogram;
import io.prometheus.metrics.core.metrics.Info;
import io.prometheus.metrics.core.metrics.StatefulMetric;
import io.prometheus.metrics.instrumentation.jvm.JvmBufferPoolMetrics;
import io.prometheus.metrics.instrumentation.jvm.JvmGarbageCollectorMetrics;
import io.prometheus.metrics.instrumentation.jvm.JvmMemoryMetrics;
import io.prometheus.metrics.instrumentation.jvm.JvmRuntimeInfoMetric;
import io.prometheus.metrics.instrumentation.jvm.ProcessMetrics;
import io.prometheus.metrics.model.registry.PrometheusRegistry;

import java.io.IOException;
import java.time.Clock;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumMap;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.BiConsumer;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.function.ToDoubleFunction;
import java.util.function.ToLongFunction;

/**
 * What {@code GET /metrics} shows. Counters and histograms are written by the requests; what the
 * router and the workers know is read when the page is asked for.
 */
public final class GatewayMetrics {
    private static final List<StorageTier> OF_WORKERS = List.of(StorageTier.HOST, StorageTier.DISK);

    private static final double NANOS = 1e9;
    private static final double MILLIS = 1e3;
    private static final int FAILED = 400;
    private static final String KIND = "kind";
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

    private final PrometheusRegistry registry = new PrometheusRegistry();
    private final TextFormats formats = new TextFormats();
    private final Set<String> names = new TreeSet<>();
    private final List<StatefulMetric<?, ?>> byWorker = new ArrayList<>();
    private final Map<InferenceRequest.Route, Map<Upstream, WorkerSeries>> series =
            new EnumMap<>(InferenceRequest.Route.class);
    private Runnable take = () -> {};
    private final Map<String, ShadowPolicy> shadows = new ConcurrentHashMap<>(); // by model
    private volatile Snapshot snapshot;
    private boolean labelsModels; // before the first page
    private volatile GatewayActivity activity;
    private volatile BlockReleaseCounts prefills;
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
    private final Counter splits;
    private final Counter wholes;
    private final Counter unrouted;
    private final Counter legFailures;
    private final Counter stranded;
    private final Counter handoffTokens;
    private final Histogram prefillLeg;
    private final Histogram handoff;
    private final Histogram duration;
    private final Histogram firstToken;
    private final Histogram perToken;
    private final Histogram tokenize;
    private final Histogram routing;
    private final Histogram dynamoRouting;
    private final Histogram queueWait;
    private final Histogram hitRate;
    private final ModelMetrics byModel = new ModelMetrics(registry, names, LATENCY, PER_TOKEN);

    public GatewayMetrics() {
        for (InferenceRequest.Route route : InferenceRequest.Route.values()) {
            series.put(route, new ConcurrentHashMap<>());
        }
        requests =
                counter(
                        "kvasir_requests_total",
                        "Answers by endpoint, HTTP status (499: the client left), routing mode and"
                                + " model",
                        "route",
                        "status",
                        "mode",
                        "model");
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
        statedTokens =
                counter(
                        "kvasir_stated_prompt_tokens_total",
                        "Prompt tokens of answers whose engine stated how many were cached",
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
        splits =
                counter(
                        "kvasir_split_requests_total",
                        "Requests that were split between a prefill and a decode worker",
                        "handoff");
        wholes =
                counter(
                        "kvasir_whole_requests_total",
                        "Requests that one worker was to do all of although there are prefill"
                                + " workers, by reason",
                        "reason");
        unrouted =
                counter(
                        "kvasir_routing_refused_total",
                        "Choices of a worker that the router refused, by cause; retries count, too",
                        "model",
                        "pool",
                        "cause");
        legFailures =
                counter(
                        "kvasir_leg_failures_total",
                        "Failures of one of the two workers of a split request, and what followed:"
                                + " decode-only, other-prefill, fail",
                        "leg",
                        "kind",
                        "fallback");
        stranded =
                counter(
                        "kvasir_prefills_stranded_total",
                        "Prefills without a decode whose engine has no call to free the blocks, or"
                                + " whose answer does not say which they are",
                        "handoff");
        prefillLeg =
                histogram(
                        "kvasir_prefill_leg_seconds",
                        "Time from the prefill worker's request to its answer",
                        LATENCY,
                        "worker");
        handoff =
                histogram(
                        "kvasir_handoff_seconds",
                        "Time from the prefill worker's answer to the first bytes of the decode"
                                + " worker's: transfer and wait",
                        LATENCY,
                        "worker");
        handoffTokens =
                counter(
                        "kvasir_handoff_tokens_total",
                        "Tokens whose blocks the decode worker did not hold and had to fetch",
                        "worker");
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
                        "worker",
                        "route");
        perToken =
                histogram(
                        "kvasir_time_per_output_token_seconds",
                        "Mean time between two output tokens of a stream of one answer",
                        PER_TOKEN,
                        "worker",
                        "route");
        outputTokens = counter("kvasir_output_tokens_total", "Output tokens generated", "worker");
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
        queueWait =
                histogram(
                        "kvasir_queue_wait_seconds",
                        "Time from a request's admission to its booking, of those that were booked;"
                                + " 0 where a worker had room at once",
                        LATENCY,
                        "pool");
        hitRate =
                Histogram.builder()
                        .name(named("router_kv_hit_rate"))
                        .help("Part of a prompt predicted as cached, when it was routed")
                        .classicOnly()
                        .classicLinearUpperBounds(0, 0.05, 21)
                        .register(registry);
        byModel.alsoAs(hitRate, "dynamo_component_router_kv_hit_rate");
        Info.builder()
                .name(named("kvasir_build_info"))
                .help("Version of Kvasir")
                .labelNames("version")
                .register(registry)
                .addLabelValues(version());
        registerProcess();
    }

    private static String version() {
        return Objects.requireNonNullElse(
                GatewayMetrics.class.getPackage().getImplementationVersion(), "unknown");
    }

    /** Process and JVM, by the names that dashboards know; none of them keeps a listener. */
    private void registerProcess() {
        ProcessMetrics.builder().register(registry);
        JvmRuntimeInfoMetric.builder().register(registry);
        JvmMemoryMetrics.builder().register(registry);
        JvmGarbageCollectorMetrics.builder().register(registry);
        ThreadMetrics.register(registry);
        JvmBufferPoolMetrics.builder().register(registry);
    }

    private Counter counter(String name, String help, String... labels) {
        return listed(
                Counter.builder()
                        .name(named(name))
                        .help(help)
                        .labelNames(labels)
                        .register(registry),
                labels);
    }

    private Histogram histogram(String name, String help, double[] bounds, String... labels) {
        return listed(
                Histogram.builder()
                        .name(named(name))
                        .help(help)
                        .labelNames(labels)
                        .classicOnly()
                        .classicUpperBounds(bounds)
                        .register(registry),
                labels);
    }

    private <M extends StatefulMetric<?, ?>> M listed(M metric, String... labels) {
        if (labels.length > 0 && labels[0].equals("worker")) {
            byWorker.add(metric);
        }
        return metric;
    }

    private String named(String name) {
        names.add(name);
        return name;
    }

    /** What is counted by model. */
    public ModelMetrics byModel() {
        return byModel;
    }

    /** Every metric that the page may show, as it is spelled there. */
    Set<String> names() {
        return names;
    }

    /** A gauge that is read when the page is asked for. */
    void gauge(String name, String help, Consumer<Point> points, String... labels) {
        GaugeWithCallback.builder()
                .name(named(name))
                .help(help)
                .labelNames(labels)
                .callback(out -> points.accept(out::call))
                .register(registry);
    }

    /** A counter that is read when the page is asked for. */
    void count(String name, String help, Consumer<Point> points, String... labels) {
        CounterWithCallback.builder()
                .name(named(name))
                .help(help)
                .labelNames(labels)
                .callback(out -> points.accept(out::call))
                .register(registry);
    }

    /** Takes one value of a metric and its labels. */
    interface Point {
        void call(double value, String... labels);

        /** Takes values of one model, which is their last label. */
        default Point of(String model) {
            return (value, labels) -> {
                final String[] all = Arrays.copyOf(labels, labels.length + 1);
                all[labels.length] = model;
                call(value, all);
            };
        }
    }

    /** What of a page is read from the routers of one model. */
    private record ModelSnapshot(
            UpstreamRegistry servers,
            RouterStatus router,
            RouterStatus prefillOrNull,
            Map<WorkerPool, QueueStatus> queues) {
        static ModelSnapshot of(UpstreamRegistry servers) {
            final KvRouter prefill = servers.routerOrNull(WorkerPool.PREFILL);
            final Map<WorkerPool, QueueStatus> queues = new EnumMap<>(WorkerPool.class);
            for (WorkerPool pool : WorkerPool.values()) {
                final RouterQueue queue = servers.queueOrNull(pool);
                if (queue != null) {
                    queues.put(pool, queue.status());
                }
            }
            return new ModelSnapshot(
                    servers,
                    servers.routerOrNull(WorkerPool.MAIN).status(),
                    prefill == null ? null : prefill.status(),
                    queues);
        }
    }

    /** What all metrics of one page are read from. */
    private record Snapshot(
            List<ModelSnapshot> models, List<Worker> workers, List<SourceStatus> sources) {
        static Snapshot of(Fleet fleet) {
            final List<Worker> workers =
                    fleet.upstreams().stream().flatMap(u -> u.ranks().stream()).toList();
            return new Snapshot(
                    fleet.registries().stream().map(ModelSnapshot::of).toList(),
                    workers,
                    workers.stream().map(Worker::sourceStatus).filter(Objects::nonNull).toList());
        }
    }

    /**
     * Adds what is read from routers and workers when the page is asked for. Series of a router
     * have the label {@code model} where there are several models.
     */
    public void watch(Fleet servers) {
        final List<UpstreamRegistry> models = servers.registries();
        models.forEach(this::followShadow);
        labelsModels = models.size() > 1;
        take =
                () -> {
                    snapshot = Snapshot.of(servers);
                    models.forEach(this::followShadow);
                    shadows.values().forEach(ShadowPolicy::update);
                    forgetAllBut(servers.upstreams());
                };
        servers.onRemoval(() -> forgetAllBut(servers.upstreams()));
        take.run();
        watchRouter("kvasir_", "", ModelSnapshot::router);
        watchRouter("kvasir_prefill_pool_", "; prefill workers", ModelSnapshot::prefillOrNull);
        watchWorkers();
        watchQueues();
        watchPools(servers);
        watchShadows();
        watchSources();
        byModel.watch(servers);
        new LoadMetrics(
                this,
                () -> snapshot.workers,
                () ->
                        models.stream()
                                .flatMap(
                                        model ->
                                                Arrays.stream(WorkerPool.values())
                                                        .map(model::routerOrNull)));
        gauge(
                "kvasir_worker_tokenizer",
                "1 for the result of comparing the gateway's tokens with the engine's",
                out -> {
                    for (Upstream u : servers.upstreams()) {
                        for (Upstream.TokenizerCheck c : Upstream.TokenizerCheck.values()) {
                            out.call(u.tokenizer() == c ? 1 : 0, u.name(), c.spelling());
                        }
                    }
                },
                "worker",
                "result");
        count(
                "kvasir_discovery_failures_total",
                "How often a source of workers could not be read or named one that cannot be used",
                out ->
                        servers.failures()
                                .forEach((source, n) -> out.call((double) n.get(), source)),
                "source");
        if (models.stream()
                .anyMatch(m -> m.routerOrNull(WorkerPool.MAIN).routedPrefixes() != null)) {
            watchRouted("kvasir_", "", WorkerPool.MAIN);
            watchRouted("kvasir_prefill_pool_", "; prefill workers", WorkerPool.PREFILL);
        }
    }

    /** Another weight is another policy, which begins now. */
    private void followShadow(UpstreamRegistry model) {
        final KvRouter router = model.routerOrNull(WorkerPool.MAIN);
        final double weight = model.shadowOverlapWeight();
        final ShadowPolicy now = shadows.get(model.model());
        if (weight < 0 || router.journal() == null) {
            shadows.remove(model.model());
        } else if (now == null || now.weight() != weight) {
            shadows.put(model.model(), new ShadowPolicy(router.journal(), weight));
        }
    }

    /** The labels of a series of a router. */
    private String[] ofModel(String... labels) {
        if (!labelsModels) {
            return labels;
        }
        final String[] all = Arrays.copyOf(labels, labels.length + 1);
        all[labels.length] = "model";
        return all;
    }

    /** Points of each model, of what it may not have; none of it then. */
    private <T> Consumer<Point> each(
            Function<ModelSnapshot, T> source, BiConsumer<T, Point> points) {
        return out -> {
            for (ModelSnapshot model : snapshot.models) {
                final T there = source.apply(model);
                if (there != null) {
                    points.accept(there, labelsModels ? out.of(model.servers.model()) : out);
                }
            }
        };
    }

    /** Adds what waits for a worker; no series where nothing can. */
    private void watchQueues() {
        queueGauge(
                "kvasir_queue_requests", "Requests that wait for a worker", QueueStatus::requests);
        queueGauge("kvasir_queue_tokens", "Tokens of the prompts of these", QueueStatus::tokens);
        queueGauge(
                "kvasir_queue_following",
                "Those of them that wait for another one's prompt to be computed",
                QueueStatus::following);
        queueGauge(
                "kvasir_queue_oldest_seconds",
                "How long the one has waited that came first",
                status -> status.oldestNs() / NANOS);
        count(
                "kvasir_queue_admitted_total",
                "Requests that were booked: at once, or after a wait",
                ofQueues(
                        (status, out, pool) -> {
                            out.call((double) status.admitted() - status.waited(), pool, "no");
                            out.call((double) status.waited(), pool, "yes");
                        }),
                ofModel("pool", "waited"));
        count(
                "kvasir_queue_refused_total",
                "Requests that did not wait, or waited no longer, by cause; cancelled: the client"
                        + " left",
                ofQueues(
                        (status, out, pool) -> {
                            status.refused()
                                    .forEach(
                                            (kind, n) ->
                                                    out.call((double) n, pool, kind.spelling()));
                            out.call((double) status.cancelled(), pool, "cancelled");
                        }),
                ofModel("pool", "cause"));
        count(
                "kvasir_single_flight_total",
                "Prompts that others could follow (led) or could not, as there were too many"
                        + " (not_led), and requests that followed one",
                ofQueues(
                        (status, out, pool) -> {
                            out.call((double) status.led(), pool, "led");
                            out.call((double) status.notLed(), pool, "not_led");
                            out.call((double) status.followed(), pool, "followed");
                        }),
                ofModel("pool", "event"));
        gauge(
                "dynamo_frontend_router_queue_pending_requests",
                "The same as kvasir_queue_requests",
                ofDynamo(QueueStatus::requests),
                "model",
                "worker_type");
        gauge(
                "dynamo_frontend_router_queue_pending_isl_tokens",
                "The same as kvasir_queue_tokens",
                ofDynamo(QueueStatus::tokens),
                "model",
                "worker_type");
    }

    private void queueGauge(String name, String help, ToDoubleFunction<QueueStatus> value) {
        gauge(
                name,
                help,
                ofQueues((status, out, pool) -> out.call(value.applyAsDouble(status), pool)),
                ofModel("pool"));
    }

    /** Takes the points of the queue of one pool. */
    private interface QueuePoints {
        void of(QueueStatus status, Point out, String pool);
    }

    private Consumer<Point> ofQueues(QueuePoints points) {
        return each(
                ModelSnapshot::queues,
                (queues, out) ->
                        queues.forEach((pool, status) -> points.of(status, out, pool.spelling())));
    }

    private Consumer<Point> ofDynamo(ToDoubleFunction<QueueStatus> value) {
        return out -> {
            for (ModelSnapshot model : snapshot.models) {
                model.queues.forEach(
                        (pool, status) ->
                                out.call(
                                        value.applyAsDouble(status),
                                        model.servers.model(),
                                        pool == WorkerPool.MAIN ? "decode" : "prefill"));
            }
        };
    }

    private void watchShadows() {
        countOfShadows(
                "kvasir_shadow_decisions_total",
                "Decisions that the shadow policy was judged by",
                (shadow, out) -> out.call((double) shadow.decisions()));
        countOfShadows(
                "kvasir_shadow_missed_total",
                "Decisions that were overwritten in the journal before they were judged",
                (shadow, out) -> out.call((double) shadow.missed()));
        countOfShadows(
                "kvasir_shadow_other_choices_total",
                "Decisions in which the shadow policy would have chosen another worker",
                (shadow, out) -> out.call((double) shadow.otherChoices()));
        countOfShadows(
                "kvasir_shadow_cached_tokens_total",
                "Prompt tokens that the workers held that the policy chose",
                (shadow, out) -> {
                    out.call(shadow.cachedTokens(false), "recorded");
                    out.call(shadow.cachedTokens(true), "shadow");
                },
                "policy");
        countOfShadows(
                "kvasir_shadow_prefill_blocks_total",
                "Blocks to prefill until the prompt is computed, on the workers that the policy"
                        + " chose",
                (shadow, out) -> {
                    out.call(shadow.prefillBlocks(false), "recorded");
                    out.call(shadow.prefillBlocks(true), "shadow");
                },
                "policy");
    }

    private void countOfShadows(
            String name, String help, BiConsumer<ShadowPolicy, Point> points, String... labels) {
        count(
                name,
                help,
                each(model -> shadows.get(model.servers.model()), points),
                ofModel(labels));
    }

    private void watchPools(Fleet servers) {
        gauge(
                "kvasir_load_balance_score",
                "Standard deviation of the available workers' load (blocks in use and to prefill)"
                        + " as a part of its mean; 0 = all alike",
                each(
                        ModelSnapshot::servers,
                        (model, out) ->
                                out.call(
                                        LoadBalance.score(
                                                model.workers(WorkerPool.MAIN),
                                                model.routerOrNull(WorkerPool.MAIN)
                                                        .settings()
                                                        .get(RouterSettings.BLOCK_SIZE)))),
                ofModel());
        gauge(
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
        gauge(
                "kvasir_disagg_active",
                "1 while requests can be split between prefill and decode workers",
                each(ModelSnapshot::servers, (model, out) -> out.call(model.canSplit() ? 1 : 0)),
                ofModel());
        gauge(
                "kvasir_worker_role",
                "1 for the worker's role, pool and protocol of hand-off",
                out -> {
                    for (Upstream u : servers.upstreams()) {
                        (labelsModels ? out.of(u.model()) : out)
                                .call(
                                        1,
                                        u.name(),
                                        u.role().spelling(),
                                        u.pool().spelling(),
                                        u.handoff().spelling());
                    }
                },
                ofModel("worker", "role", "pool", "handoff"));
    }

    /**
     * Adds what the gateway itself is busy with.
     *
     * @param now asked once for each page
     */
    public void watch(Supplier<GatewayActivity> now) {
        final Runnable before = take;
        take =
                () -> {
                    before.run();
                    activity = now.get();
                };
        take.run();
        gauge(
                "kvasir_requests_preparing",
                "Requests that were let in and are not booked yet",
                out -> out.call(activity.preparing()));
        gauge(
                "kvasir_prompts_waiting",
                "Requests that wait for one of the prompt-threads",
                out -> out.call(activity.waitingPrompts()));
        gauge(
                "kvasir_requests_unread",
                "Requests that their worker is done with, and whose answer waits for its client",
                out -> out.call(activity.unread()));
        gauge(
                "kvasir_body_bytes_in_flight",
                "Bytes of request bodies in memory; max-body-bytes-in-flight limits them",
                out -> out.call((double) activity.bodyBytes()));
        gauge(
                "kvasir_answer_bytes_in_flight",
                "Bytes of answers in memory that are no streams; max-body-bytes-in-flight limits"
                        + " them",
                out -> out.call((double) activity.answerBytes()));
        gauge(
                "kvasir_requests_in_flight",
                "Requests that wait for a worker's answer or get it",
                out -> out.call(activity.exchanges()));
        gauge(
                "kvasir_streams_in_flight",
                "Those of them that are answered as streams",
                out -> out.call(activity.streams()));
        gauge(
                "kvasir_open_connections",
                "Connections of clients",
                out -> out.call(activity.connections()));
        count(
                "kvasir_access_log_dropped_total",
                "Lines of the access log that were not written",
                out -> out.call((double) activity.droppedLogLines()));
    }

    /**
     * Adds what becomes of the blocks that prefill workers hold.
     *
     * @param release asked once for each page
     */
    public void watch(BlockRelease release) {
        final Runnable before = take;
        take =
                () -> {
                    before.run();
                    prefills = release.counts();
                };
        take.run();
        gauge(
                "kvasir_prefills_held",
                "Finished prefills whose blocks a prefill worker still holds",
                out -> out.call((double) prefills.held()));
        count(
                "kvasir_prefills_fetched_total",
                "Finished prefills whose blocks a decode worker has fetched",
                out -> out.call((double) prefills.fetched()));
        count(
                "kvasir_prefills_released_total",
                "Finished prefills without a decode whose worker was notified to free the blocks",
                out -> out.call((double) prefills.released()));
        count(
                "kvasir_prefills_left_total",
                "Finished prefills without a decode whose blocks are left to the worker's lease",
                out -> prefills.left().forEach((why, n) -> out.call((double) n, why.spelling())),
                "reason");
        count(
                "kvasir_prefill_heartbeats_total",
                "Leases of prefills that were prolonged",
                out -> out.call((double) prefills.heartbeats()));
    }

    /** Shows what became of spans. */
    public void watch(TraceCounts traces) {
        count(
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

    /** Adds what becomes of sections of prompts that are looked up in shared memory. */
    public void watch(SettingsCounts settings) {
        gauge(
                "kvasir_settings_version",
                "Version of the settings that hold now, counted from 1 by changes",
                out -> out.call((double) settings.version()));
        count(
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
        count(
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

    /** A request is split. */
    public void split(HandoffProtocol protocol) {
        splits.labelValues(protocol.spelling()).inc();
    }

    /** One worker does all of a request. */
    public void notSplit(String reason) {
        wholes.labelValues(reason).inc();
    }

    /** One leg of a split request has failed, and something follows. */
    public void legFailed(LegFailure failure, SplitEvent next) {
        legFailures
                .labelValues(
                        failure.leg().spelling(),
                        failure.kind(),
                        switch (next) {
                            case DECODE_ALONE -> FallbackPolicy.DECODE_ONLY.spelling();
                            case PREFILL_AGAIN -> FallbackPolicy.OTHER_PREFILL.spelling();
                            default -> FallbackPolicy.FAIL.spelling();
                        })
                .inc();
    }

    /** The blocks of a prefill are left to its engine. */
    public void stranded(HandoffProtocol protocol) {
        stranded.labelValues(protocol.spelling()).inc();
    }

    /** A prefill worker has answered. */
    public void prefilled(Upstream worker, long ns) {
        prefillLeg.labelValues(worker.name()).observe(ns / NANOS);
    }

    /**
     * A decode worker's answer begins.
     *
     * @param tokens of the prompt that it did not hold
     */
    public void fetched(Upstream worker, int tokens) {
        handoffTokens.labelValues(worker.name()).inc(tokens);
    }

    /**
     * A decode worker's answer begins, after the prefill worker's.
     *
     * @param ns since that
     */
    public void handedOver(Upstream worker, long ns) {
        handoff.labelValues(worker.name()).observe(ns / NANOS);
    }

    /** A request that outlives its worker makes a series anew, until the next page. */
    private void forgetAllBut(List<Upstream> servers) {
        final Set<String> names = new HashSet<>();
        servers.forEach(server -> names.add(server.name()));
        series.values().forEach(each -> each.keySet().retainAll(servers));
        byModel.forgetAllBut(servers);
        for (StatefulMetric<?, ?> metric : byWorker) {
            metric.removeIf(labels -> !names.contains(labels.getFirst()));
        }
    }

    /**
     * Adds what a router says of itself.
     *
     * @param prefix of the metrics' names
     * @param pool ends their help
     * @param router its status; null as long as there is no such router: then there is no series
     */
    private void watchRouter(
            String prefix, String pool, Function<ModelSnapshot, RouterStatus> router) {
        gauge(
                prefix + "resource_used",
                "How much of a limit is used" + pool,
                each(
                        router,
                        (status, out) ->
                                status.usages()
                                        .forEach(u -> out.call((double) u.used(), u.resource()))),
                ofModel("resource"));
        gauge(
                prefix + "resource_limit",
                "The limit; " + prefix + "resource_used beside it",
                each(
                        router,
                        (status, out) ->
                                status.usages()
                                        .forEach(u -> out.call((double) u.limit(), u.resource()))),
                ofModel("resource"));
        count(
                prefix + "refused_total",
                "What was not taken, by cause" + pool,
                each(
                        router,
                        (status, out) ->
                                status.refusals()
                                        .byCause()
                                        .forEach((cause, n) -> out.call((double) n, cause))),
                ofModel("cause"));
        count(
                prefix + "tier_refused_total",
                "What the indexes of tiers below the device did not take, by cause" + pool,
                each(
                        router,
                        (status, out) ->
                                status.tiers()
                                        .forEach(
                                                tier ->
                                                        tier.refused()
                                                                .forEach(
                                                                        (cause, n) ->
                                                                                out.call(
                                                                                        (double) n,
                                                                                        lower(
                                                                                                tier
                                                                                                        .tier()),
                                                                                        cause)))),
                ofModel("tier", "cause"));
        gauge(
                prefix + "tier_index_bytes",
                "Memory that the indexes of tiers below the device use" + pool,
                each(
                        router,
                        (status, out) ->
                                status.tiers()
                                        .forEach(
                                                tier ->
                                                        out.call(
                                                                (double) tier.usedBytes(),
                                                                lower(tier.tier())))),
                ofModel("tier"));
        count(
                prefix + "failures_total",
                "Events and bookings that could not be applied because of an error" + pool,
                each(router, (status, out) -> out.call((double) status.failures())),
                ofModel());
        count(
                prefix + "bookings_expired_total",
                "Bookings that booking-timeout-ms has ended" + pool,
                each(router, (status, out) -> out.call((double) status.expiredLeases())),
                ofModel());
        count(
                prefix + "leases_forgotten_total",
                "Bookings that were never released by the gateway: a defect of it" + pool,
                each(router, (status, out) -> out.call((double) status.forgottenLeases())),
                ofModel());
        count(
                prefix + "bookings_pathless_total",
                "Requests that count with all their blocks, because there is no room for what they"
                        + " share"
                        + pool,
                each(router, (status, out) -> out.call((double) status.pathlessBookings())),
                ofModel());
        count(
                prefix + "load_corrections_total",
                "How often a worker's load was not what is booked on it, and was corrected" + pool,
                each(router, (status, out) -> out.call((double) status.loadCorrections())),
                ofModel());
        count(
                prefix + "selection_policy_failures_total",
                "How often a part of the selection policy has failed, and the router went on"
                        + " without it"
                        + pool,
                each(
                        router,
                        (status, out) ->
                                status.policyFailures()
                                        .byPart()
                                        .forEach((part, n) -> out.call((double) n, part))),
                ofModel("part"));
        watchReplicas(
                prefix,
                pool,
                model -> {
                    final RouterStatus status = router.apply(model);
                    return status == null ? null : status.replicaOrNull();
                });
        watchSnapshots(prefix, pool, router);
        watchPlane(
                prefix,
                pool,
                model -> {
                    final RouterStatus status = router.apply(model);
                    return status == null ? null : status.planeOrNull();
                });
    }

    private void watchSnapshots(
            String prefix, String pool, Function<ModelSnapshot, RouterStatus> router) {
        count(
                prefix + "snapshots_total",
                "Snapshots of what workers hold, by what became of them" + pool,
                ofSnapshots(
                        router,
                        (status, out, kind) -> {
                            out.call((double) status.taken(), kind, "taken");
                            out.call((double) status.failed(), kind, "failed");
                        }),
                ofModel(KIND, "outcome"));
        count(
                prefix + "snapshots_abandoned_total",
                "Snapshots, or workers of one, that were given up, by cause" + pool,
                ofSnapshots(
                        router,
                        (status, out, kind) ->
                                status.abandoned()
                                        .forEach((cause, n) -> out.call((double) n, kind, cause))),
                ofModel(KIND, "cause"));
        count(
                prefix + "snapshot_seconds_total",
                "Time that snapshots took that were saved" + pool,
                ofSnapshots(
                        router, (status, out, kind) -> out.call(status.totalNs() / NANOS, kind)),
                ofModel(KIND));
        gauge(
                prefix + "snapshot_bytes",
                "Length of the last snapshot that this gateway took" + pool,
                ofSnapshots(
                        router, (status, out, kind) -> out.call((double) status.lastBytes(), kind)),
                ofModel(KIND));
        gauge(
                prefix + "snapshot_age_seconds",
                "Time since the newest snapshot that this gateway knows; absent before it" + pool,
                ofSnapshots(
                        router,
                        (status, out, kind) -> {
                            if (status.lastTakenMs() > 0) {
                                final long now = Clock.systemUTC().millis();
                                out.call((now - status.lastTakenMs()) / MILLIS, kind);
                            }
                        }),
                ofModel(KIND));
        count(
                prefix + "snapshot_restored_blocks_total",
                "Blocks of workers that were restored" + pool,
                ofSnapshots(
                        router,
                        (status, out, kind) -> out.call((double) status.restoredBlocks(), kind)),
                ofModel(KIND));
        count(
                prefix + "snapshot_restores_total",
                "Workers that were saved, by whether they could be restored" + pool,
                ofSnapshots(
                        router,
                        (status, out, kind) -> {
                            out.call((double) status.restoredWorkers(), kind, "restored");
                            out.call((double) status.restoreFailures(), kind, "failed");
                        }),
                ofModel(KIND, "outcome"));
    }

    /** Takes the points of one kind of snapshots. */
    private interface SnapshotPoints {
        void of(SnapshotStatus status, Point out, String kind);
    }

    private Consumer<Point> ofSnapshots(
            Function<ModelSnapshot, RouterStatus> router, SnapshotPoints points) {
        return each(
                router,
                (status, out) -> {
                    if (status.snapshots().ofRouterOrNull() != null) {
                        points.of(status.snapshots().ofRouterOrNull(), out, "own");
                    }
                    if (status.snapshots().ofPlaneOrNull() != null) {
                        points.of(status.snapshots().ofPlaneOrNull(), out, "shared");
                    }
                });
    }

    private void watchPlane(
            String prefix, String pool, Function<ModelSnapshot, EventPlaneStatus> plane) {
        gauge(
                prefix + "event_plane_connected",
                "1 while there is a connection to the event plane" + pool,
                each(plane, (status, out) -> out.call(status.isConnected() ? 1 : 0)),
                ofModel());
        gauge(
                prefix + "event_plane_streams",
                "Workers, ranks counted, whose events come from the event plane" + pool,
                each(plane, (status, out) -> out.call((double) status.streams())),
                ofModel());
        gauge(
                prefix + "event_plane_recovering",
                "Workers whose local indexers are asked for missing events now" + pool,
                each(plane, (status, out) -> out.call((double) status.recovering())),
                ofModel());
        gauge(
                prefix + "event_plane_lag",
                "Events that are not in the index yet, by where they wait" + pool,
                each(
                        plane,
                        (status, out) -> {
                            out.call((double) status.waiting(), "transport");
                            out.call((double) status.behind(), "ring");
                        }),
                ofModel("waiting"));
        count(
                prefix + "event_plane_events_total",
                "What came from the event plane and what became of it" + pool,
                each(
                        plane,
                        (status, out) ->
                                status.byEvent()
                                        .forEach((event, n) -> out.call((double) n, event))),
                ofModel("event"));
    }

    private void watchReplicas(
            String prefix, String pool, Function<ModelSnapshot, ReplicaStatus> replica) {
        gauge(
                prefix + "replicas",
                "Other gateways over the same workers that are heard of" + pool,
                each(replica, (status, out) -> out.call((double) status.peers())),
                ofModel());
        gauge(
                prefix + "replica_bookings",
                "Their requests that count as load here" + pool,
                each(replica, (status, out) -> out.call((double) status.peerBookings())),
                ofModel());
        count(
                prefix + "replica_events_total",
                "What replica sync has sent, applied, missed and repaired" + pool,
                each(
                        replica,
                        (status, out) ->
                                status.byEvent()
                                        .forEach((event, n) -> out.call((double) n, event))),
                ofModel("event"));
    }

    private void watchWorkers() {
        worker("active_requests", "Requests booked and not released", Worker::activeRequests);
        worker("prefill_tokens", "Tokens still to be prefilled", Worker::prefillTokens);
        worker("active_blocks", "Blocks in use by running requests", Worker::activeBlocks);
        worker("index_blocks", "Blocks the index holds for the worker", Worker::indexedBlocks);
        gauge(
                "kvasir_worker_tier_blocks",
                "Blocks the index holds for the worker below its device; absent where there are"
                        + " none",
                out -> {
                    for (Worker w : snapshot.workers) {
                        for (StorageTier tier : OF_WORKERS) {
                            final double blocks = (double) w.indexedBlocks(tier);
                            if (blocks > 0) {
                                out.call(blocks, w.name(), rank(w), lower(tier));
                            }
                        }
                    }
                },
                "worker",
                "dp_rank",
                "tier");
        worker("event_sequence", "Number of the last event applied", Worker::eventSequence);
        worker("up", "1 if requests may be sent to the worker", w -> w.available() ? 1 : 0);
        gauge(
                "kvasir_worker_index_state",
                "1 for the state that the worker's index is in",
                out -> {
                    for (Worker w : snapshot.workers) {
                        final IndexState current = w.state();
                        for (IndexState state : IndexState.values()) {
                            out.call(state == current ? 1 : 0, w.name(), rank(w), lower(state));
                        }
                    }
                },
                "worker",
                "dp_rank",
                "state");
        worker(
                "index_credit",
                "What a block counts that the worker is believed to have cached, 0 to 1",
                Worker::indexCredit);
        gauge(
                "kvasir_worker_index_cause",
                "1 for why the worker's index is not exact; absent while it is",
                out -> {
                    for (SourceStatus s : snapshot.sources) {
                        if (s.cause() != IndexCause.NONE) {
                            out.call(1, s.name(), rank(s), s.cause().spelling());
                        }
                    }
                    for (Worker w : snapshot.workers) {
                        if (w.source() == null) {
                            out.call(1, w.name(), rank(w), w.cause().spelling());
                        }
                    }
                },
                "worker",
                "dp_rank",
                "cause");
    }

    private void worker(String name, String help, ToDoubleFunction<Worker> value) {
        gauge(
                "kvasir_worker_" + name,
                help,
                out -> {
                    for (Worker w : snapshot.workers) {
                        out.call(value.applyAsDouble(w), w.name(), rank(w));
                    }
                },
                "worker",
                "dp_rank");
    }

    private void watchSources() {
        gauge(
                "kvasir_worker_event_age_seconds",
                "Time since the last live event message; absent before the first",
                out -> {
                    for (SourceStatus s : snapshot.sources) {
                        if (s.lastEventAgeNs() >= 0) {
                            out.call(s.lastEventAgeNs() / NANOS, s.name(), rank(s));
                        }
                    }
                },
                "worker",
                "dp_rank");
        source("event_messages", "Event messages received", SourceStatus::messages);
        source("lost_event_messages", "Event messages lost for good", SourceStatus::lostMessages);
        sourceBy(
                "ignored_event_messages",
                "Event messages that came too late, or twice, and were ignored",
                "cause",
                s -> Map.of("late", s.late(), "repeated", s.duplicates()));
        source("event_replays", "Replays answered to the end", SourceStatus::replays);
        source("engine_restarts", "Engines seen to have started anew", SourceStatus::restarts);
        sourceBy(
                "event_connections",
                "Changes of event connections: lost, restored, failed to open",
                "change",
                s ->
                        Map.of(
                                "lost", s.disconnects(),
                                "restored", s.reconnects(),
                                "failed", s.connectFailures()));
        sourceBy(
                "events_dropped",
                "Events that were not applied, by reason",
                "reason",
                SourceStatus::drops);
        sourceBy(
                "events_refused",
                "Stores and removals that the index did not take, by cause",
                "cause",
                s ->
                        Map.of(
                                "index-full", s.capacityRefusals(),
                                "missing-parent", s.missingParents(),
                                "evicted-block", s.evictedBlocks(),
                                "unknown-parent", s.unknownParents(),
                                "invalid-store", s.invalidStores(),
                                "unknown-removal", s.unknownRemovals(),
                                "event-ring-full", s.refused()));
    }

    private void source(String name, String help, ToLongFunction<SourceStatus> value) {
        count(
                "kvasir_" + name + "_total",
                help,
                out -> {
                    for (SourceStatus s : snapshot.sources) {
                        out.call((double) value.applyAsLong(s), s.name(), rank(s));
                    }
                },
                "worker",
                "dp_rank");
    }

    private void sourceBy(
            String name,
            String help,
            String label,
            Function<SourceStatus, Map<String, Long>> values) {
        count(
                "kvasir_" + name + "_total",
                help,
                out -> {
                    for (SourceStatus s : snapshot.sources) {
                        values.apply(s).forEach((key, n) -> out.call(n, s.name(), rank(s), key));
                    }
                },
                "worker",
                "dp_rank",
                label);
    }

    private void watchRouted(String prefix, String pool, WorkerPool of) {
        final Function<ModelSnapshot, PredictedPrefixes> routed =
                model -> {
                    final KvRouter router = model.servers.routerOrNull(of);
                    return router == null ? null : router.routedPrefixes();
                };
        gauge(
                prefix + "routed_blocks",
                "Blocks that workers without events are taken to hold" + pool,
                each(routed, (prefixes, out) -> out.call((double) prefixes.blocks())),
                ofModel());
        gauge(
                prefix + "routed_prompts",
                "Routed prompts that these blocks are of" + pool,
                each(routed, (prefixes, out) -> out.call((double) prefixes.visits())),
                ofModel());
        count(
                prefix + "routed_prompts_dropped_total",
                "Routed prompts that do not count any more: expired, pruned because the tree was"
                        + " full; or never counted: refused"
                        + pool,
                each(
                        routed,
                        (prefixes, out) -> {
                            out.call((double) prefixes.expired(), "expired");
                            out.call((double) prefixes.pruned(), "pruned");
                            out.call((double) prefixes.refused(), "refused");
                        }),
                ofModel("reason"));
    }

    private static String rank(SourceStatus source) {
        return Integer.toString(source.dpRank());
    }

    private static String rank(Worker worker) {
        return Integer.toString(worker.dpRank());
    }

    private static String lower(Enum<?> value) {
        return value.name().toLowerCase(Locale.ROOT);
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
                        Integer.toString(status),
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
        take.run();
        return formats.page(registry, accept);
    }
}
