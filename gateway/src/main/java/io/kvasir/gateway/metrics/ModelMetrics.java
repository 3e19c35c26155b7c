package io.kvasir.gateway.metrics;

import io.kvasir.gateway.upstream.Fleet;
import io.kvasir.gateway.upstream.Upstream;
import io.kvasir.gateway.upstream.UpstreamRegistry;
import io.kvasir.gateway.upstream.WorkerPool;
import io.kvasir.pipeline.source.IndexCause;
import io.kvasir.pipeline.source.IndexState;
import io.kvasir.router.Worker;
import io.kvasir.router.settings.RouterSettings;
import io.prometheus.metrics.core.datapoints.CounterDataPoint;
import io.prometheus.metrics.core.datapoints.DistributionDataPoint;
import io.prometheus.metrics.core.metrics.Counter;
import io.prometheus.metrics.core.metrics.Histogram;

import java.util.EnumSet;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BiConsumer;
import java.util.function.Function;
import java.util.function.ToDoubleFunction;
import java.util.function.ToLongFunction;

/**
 * What is counted by model, and the names that dashboards of Dynamo ask for as far as there is
 * something true to show by them. A model has one series of each, however many workers serve it;
 * workers have a gauge of each kind. Series are looked up once: what is recorded allocates nothing.
 * Thread-safe.
 */
public final class ModelMetrics {
    private static final double NANOS = 1e9;
    private static final Set<IndexState> SUSPECT =
            EnumSet.of(IndexState.STALE, IndexState.DEGRADED);
    private static final Set<IndexCause> MISMATCHES =
            EnumSet.of(
                    IndexCause.SILENT,
                    IndexCause.NO_STORES,
                    IndexCause.FOREIGN_RANK,
                    IndexCause.BLOCK_SIZE,
                    IndexCause.UNUSABLE_EVENTS,
                    IndexCause.FORECASTS);
    private static final String MODEL = "model";
    private static final String FRONTEND = "dynamo_frontend_";
    private static final String ROUTER = "dynamo_component_router_";
    private static final double[] TOKENS = {
        16, 32, 64, 128, 256, 512, 1_024, 2_048, 4_096, 8_192, 16_384, 32_768, 65_536, 131_072,
        262_144, 524_288, 1_048_576
    };
    private static final double[] BLOCKS = {0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_024, 4_096};

    private final MetricRegistry page;
    private final Map<String, Series> series = new ConcurrentHashMap<>();
    private final Map<Worker, Last> lasts = new ConcurrentHashMap<>();
    private final Counter requests;
    private final Counter started;
    private final Counter outputTokens;
    private final Counter reusedTokens;
    private final Counter bestTokens;
    private final Counter selectedTokens;
    private final Counter otherThanBest;
    private final Histogram lostBlocks;
    private final Histogram duration;
    private final Histogram firstToken;
    private final Histogram interToken;
    private final Histogram inputLength;
    private final Histogram outputLength;
    private final Histogram cached;

    /** What requests of one model write to. */
    private static final class Series {
        private final AtomicInteger inFlight = new AtomicInteger();
        private final CounterDataPoint started;
        private final CounterDataPoint outputTokens;
        private final CounterDataPoint reusedTokens;
        private final DistributionDataPoint duration;
        private final DistributionDataPoint firstToken;
        private final DistributionDataPoint interToken;
        private final DistributionDataPoint inputLength;
        private final DistributionDataPoint outputLength;
        private final DistributionDataPoint cached;

        Series(ModelMetrics all, String model) {
            started = all.started.labelValues(model);
            outputTokens = all.outputTokens.labelValues(model);
            reusedTokens = all.reusedTokens.labelValues(model);
            duration = all.duration.labelValues(model);
            firstToken = all.firstToken.labelValues(model);
            interToken = all.interToken.labelValues(model);
            inputLength = all.inputLength.labelValues(model);
            outputLength = all.outputLength.labelValues(model);
            cached = all.cached.labelValues(model);
        }
    }

    /** What was seen last of a worker; NaN before. Benign races: each value is one that was. */
    private static final class Last {
        private volatile double firstTokenSeconds = Double.NaN;
        private volatile double interTokenSeconds = Double.NaN;
        private volatile double inputTokens = Double.NaN;
    }

    /**
     * One decision, beside the best one by cached blocks alone.
     *
     * @param tokens of the prompt; 0 where they are unknown
     * @param bestTokens of it that some worker that could be chosen was taken to hold
     * @param selectedTokens of it that the chosen one was
     * @param prefillPool whether it was made among prefill workers
     * @param blockSize tokens of a block
     */
    public record Choice(
            int tokens, int bestTokens, int selectedTokens, boolean prefillPool, int blockSize) {
        private String workerType() {
            return prefillPool ? "prefill" : "decode";
        }
    }

    /**
     * Registers everything that requests write to.
     *
     * @param latency bounds of histograms of times
     * @param perToken the same for times between tokens
     */
    ModelMetrics(MetricRegistry page, double[] latency, double[] perToken) {
        this.page = page;
        requests =
                page.counter(
                        FRONTEND + "requests_total",
                        "Requests that a worker was looked for and that have ended",
                        MODEL,
                        "endpoint",
                        "request_type",
                        "status");
        started =
                page.counter(
                        ROUTER + "requests_started_total",
                        "Requests that a worker was looked for",
                        MODEL);
        outputTokens =
                page.counter(FRONTEND + "output_tokens_total", "Output tokens generated", MODEL);
        reusedTokens =
                page.counter(
                        ROUTER + "kv_worker_reused_tokens_total",
                        "Prompt tokens that engines stated as cached",
                        MODEL);
        bestTokens =
                page.counter(
                        ROUTER + "kv_best_eligible_cached_prefix_tokens_total",
                        "Prompt tokens that the worker with most of them held, of those that could"
                                + " be chosen",
                        "phase",
                        MODEL);
        selectedTokens =
                page.counter(
                        ROUTER + "kv_selected_cached_prefix_tokens_total",
                        "Prompt tokens that the chosen worker held",
                        "phase",
                        MODEL);
        otherThanBest =
                page.counter(
                        ROUTER + "non_max_overlap_selections_total",
                        "Decisions for a worker that held less of the prompt than another one",
                        "worker_type");
        lostBlocks =
                page.histogram(
                        ROUTER + "overlap_blocks_lost",
                        "Blocks that the worker with most of the prompt held beyond the chosen"
                                + " one's",
                        BLOCKS,
                        "worker_type");
        duration =
                page.histogram(
                        FRONTEND + "request_duration_seconds",
                        "Time from a request's headers to the end of its answer",
                        latency,
                        MODEL);
        firstToken =
                page.histogram(
                        FRONTEND + "time_to_first_token_seconds",
                        "Time from a request's headers to its first output token; streams only",
                        latency,
                        MODEL);
        interToken =
                page.histogram(
                        "kvasir_inter_token_seconds",
                        "Time between two events with tokens of a stream of one answer",
                        perToken,
                        MODEL);
        inputLength =
                page.histogram(
                        "kvasir_input_sequence_tokens",
                        "Prompt tokens of a request, where they are known",
                        TOKENS,
                        MODEL);
        outputLength =
                page.histogram(
                        "kvasir_output_sequence_tokens",
                        "Output tokens of an answer that is complete",
                        TOKENS,
                        MODEL);
        cached =
                page.histogram(
                        "kvasir_cached_tokens",
                        "Prompt tokens that the engine stated as cached",
                        TOKENS,
                        MODEL);
        page.alsoAs(interToken, FRONTEND + "inter_token_latency_seconds");
        page.alsoAs(interToken, ROUTER + "inter_token_latency_seconds");
        page.alsoAs(firstToken, ROUTER + "time_to_first_token_seconds");
        page.alsoAs(inputLength, FRONTEND + "input_sequence_tokens");
        page.alsoAs(inputLength, ROUTER + "input_sequence_tokens");
        page.alsoAs(outputLength, FRONTEND + "output_sequence_tokens");
        page.alsoAs(outputLength, ROUTER + "output_sequence_tokens");
        page.alsoAs(cached, FRONTEND + "cached_tokens");
    }

    /**
     * Adds what is read when the page is asked for: models as they are set up, workers as they are.
     */
    void watch(Fleet fleet) {
        page.gauge(
                FRONTEND + "inflight_requests",
                "Requests that a worker is looked for or that get an answer",
                out -> series.forEach((model, each) -> out.call(each.inFlight.get(), model)),
                MODEL);
        model(
                fleet,
                "kv_cache_block_size",
                "Tokens of a block",
                each -> OptionalLong.of(blockSize(each)));
        model(
                fleet,
                "total_kv_blocks",
                "KV blocks of all workers, as far as they are known",
                each -> sum(each, Worker::kvBlocks));
        model(
                fleet,
                "max_num_seqs",
                "Requests that a worker runs at once, the least of those that are known",
                each -> least(each, Worker::requestSlots));
        model(
                fleet,
                "max_num_batched_tokens",
                "Tokens of one step of a worker, the least of those that are known",
                each -> least(each, Worker::batchTokens));
        model(
                fleet,
                "context_length",
                "Longest context of a worker, the least of those that are known",
                each ->
                        each.upstreams(WorkerPool.MAIN).stream()
                                .mapToLong(Upstream::maxModelLength)
                                .filter(length -> length > 0)
                                .min());
        worker(
                fleet,
                FRONTEND + "worker_active_decode_blocks",
                "Blocks in use by running requests",
                Worker::activeBlocks);
        worker(
                fleet,
                FRONTEND + "worker_active_prefill_tokens",
                "Tokens still to be prefilled",
                Worker::prefillTokens);
        worker(
                fleet,
                FRONTEND + "worker_last_time_to_first_token_seconds",
                "Time to the first token of the last stream",
                worker -> last(worker, each -> each.firstTokenSeconds));
        worker(
                fleet,
                FRONTEND + "worker_last_inter_token_latency_seconds",
                "Time between the last two events with tokens",
                worker -> last(worker, each -> each.interTokenSeconds));
        worker(
                fleet,
                FRONTEND + "worker_last_input_sequence_tokens",
                "Prompt tokens of the last stream",
                worker -> last(worker, each -> each.inputTokens));
        page.gauge(
                ROUTER + "worker_registered",
                "1 for each registered worker",
                out -> eachWorker(fleet, (upstream, worker) -> out.call(1, ids(upstream, worker))),
                "router_worker_id",
                "dp_rank",
                "worker_type");
        page.gauge(
                ROUTER + "kv_event_source_mismatch_workers",
                "Workers whose events, or the lack of them, do not fit what they serve",
                out -> out.call(mismatches(fleet)));
        page.count(
                ROUTER + "requests_total",
                "Requests that a worker was looked for and that have ended",
                out ->
                        series.forEach(
                                (model, each) ->
                                        out.call((double) each.duration.getCount(), model)),
                MODEL);
    }

    private void model(
            Fleet fleet, String name, String help, Function<UpstreamRegistry, OptionalLong> value) {
        page.gauge(
                FRONTEND + "model_" + name,
                help,
                out ->
                        fleet.registries()
                                .forEach(
                                        each ->
                                                value.apply(each)
                                                        .ifPresent(
                                                                known ->
                                                                        out.call(
                                                                                (double) known,
                                                                                each.model()))),
                MODEL);
    }

    private static int blockSize(UpstreamRegistry model) {
        return model.routerOrNull(WorkerPool.MAIN).settings().get(RouterSettings.BLOCK_SIZE);
    }

    private static OptionalLong sum(UpstreamRegistry model, ToLongFunction<Worker> value) {
        final long sum = model.workers(WorkerPool.MAIN).stream().mapToLong(value).sum();
        return sum > 0 ? OptionalLong.of(sum) : OptionalLong.empty();
    }

    private static OptionalLong least(UpstreamRegistry model, ToLongFunction<Worker> value) {
        return model.workers(WorkerPool.MAIN).stream()
                .mapToLong(value)
                .filter(known -> known > 0)
                .min();
    }

    private void worker(Fleet fleet, String name, String help, ToDoubleFunction<Worker> value) {
        page.gauge(
                name,
                help,
                out ->
                        eachWorker(
                                fleet,
                                (upstream, worker) -> {
                                    final double now = value.applyAsDouble(worker);
                                    if (!Double.isNaN(now)) {
                                        out.call(now, ids(upstream, worker));
                                    }
                                }),
                "worker_id",
                "dp_rank",
                "worker_type");
    }

    private static void eachWorker(Fleet fleet, BiConsumer<Upstream, Worker> to) {
        for (Upstream upstream : fleet.upstreams()) {
            for (Worker worker : upstream.ranks()) {
                to.accept(upstream, worker);
            }
        }
    }

    private static String[] ids(Upstream upstream, Worker worker) {
        return new String[] {
            upstream.name(),
            Integer.toString(worker.dpRank()),
            upstream.pool() == WorkerPool.PREFILL ? "prefill" : "decode"
        };
    }

    private static int mismatches(Fleet fleet) {
        int count = 0;
        for (Upstream upstream : fleet.upstreams()) {
            for (Worker worker : upstream.ranks()) {
                if (SUSPECT.contains(worker.state()) && MISMATCHES.contains(worker.cause())) {
                    count++;
                }
            }
        }
        return count;
    }

    private double last(Worker worker, ToDoubleFunction<Last> value) {
        final Last found = lasts.get(worker);
        return found == null ? Double.NaN : value.applyAsDouble(found);
    }

    /** Forgets workers that are not there any more. */
    void forgetAllBut(List<Upstream> servers) {
        final Set<Worker> there = new HashSet<>();
        servers.forEach(each -> there.addAll(each.ranks()));
        lasts.keySet().retainAll(there);
    }

    private Series of(String model) {
        final Series found = series.get(model);
        return found != null
                ? found
                : series.computeIfAbsent(model, name -> new Series(this, name));
    }

    private Last of(Worker worker) {
        final Last found = lasts.get(worker);
        return found != null ? found : lasts.computeIfAbsent(worker, _ -> new Last());
    }

    /** A worker is looked for. */
    public void started(String model) {
        final Series all = of(model);
        all.started.inc();
        all.inFlight.incrementAndGet();
    }

    /** One that was {@link #started} is over, whatever came of it. */
    public void over(String model) {
        of(model).inFlight.decrementAndGet();
    }

    /** A worker was chosen. */
    public void routed(String model, Choice choice) {
        final String type = choice.workerType();
        if (choice.tokens() > 0) {
            bestTokens.labelValues(type, model).inc(choice.bestTokens());
            selectedTokens.labelValues(type, model).inc(choice.selectedTokens());
        }
        final int lost = (choice.bestTokens() - choice.selectedTokens()) / choice.blockSize();
        lostBlocks.labelValues(type).observe(lost);
        if (lost > 0) {
            otherThanBest.labelValues(type).inc();
        }
    }

    /** The first token of a stream has come. */
    public void firstToken(String model, Worker worker, int promptTokens, long sinceStartNs) {
        of(model).firstToken.observe(sinceStartNs / NANOS);
        final Last last = of(worker);
        last.firstTokenSeconds = sinceStartNs / NANOS;
        if (promptTokens > 0) {
            last.inputTokens = promptTokens;
        }
    }

    /**
     * Further events with tokens have come of a stream.
     *
     * @param events how many, at once
     * @param ns since those before them
     */
    public void nextTokens(String model, Worker worker, int events, long ns) {
        final double seconds = ns / NANOS / events;
        final DistributionDataPoint times = of(model).interToken;
        for (int i = 0; i < events; i++) {
            times.observe(seconds);
        }
        of(worker).interTokenSeconds = seconds;
    }

    /**
     * An answer is complete.
     *
     * @param promptTokens that the worker or the gateway has counted; below 1 where neither has
     * @param generated output tokens; below 1 where they are unknown
     */
    public void answered(String model, int promptTokens, int generated) {
        final Series all = of(model);
        if (promptTokens > 0) {
            all.inputLength.observe(promptTokens);
        }
        if (generated > 0) {
            all.outputLength.observe(generated);
        }
    }

    /** Output tokens have come, of an answer that is complete or will never be. */
    void generated(String model, int tokens) {
        of(model).outputTokens.inc(tokens);
    }

    /** An engine has stated its cached tokens. */
    public void stated(String model, int tokens) {
        final Series all = of(model);
        all.cached.observe(tokens);
        all.reusedTokens.inc(tokens);
    }

    /** A request has ended for which a worker was looked for. */
    void finished(String model, String endpoint, boolean stream, boolean failed, long ns) {
        final Series all = of(model);
        all.duration.observe(ns / NANOS);
        requests.labelValues(
                        model, endpoint, stream ? "stream" : "unary", failed ? "error" : "success")
                .inc();
    }
}
