package io.kvasir.gateway.metrics;

import io.kvasir.gateway.upstream.Fleet;
import io.kvasir.gateway.upstream.Upstream;
import io.kvasir.gateway.upstream.UpstreamRegistry;
import io.kvasir.gateway.upstream.WorkerPool;
import io.kvasir.router.settings.RouterSettings;

import java.util.Arrays;
import java.util.List;

/** What is read from routers and workers when the page is asked for, all of one snapshot. */
final class FleetMetrics {
    private final MetricRegistry page;
    private final Fleet servers;
    private final ModelPoints models;
    private final ShadowMetrics shadows;

    /** Adds the metrics to a page. */
    FleetMetrics(MetricRegistry page, Fleet servers) {
        this.page = page;
        this.servers = servers;
        final List<UpstreamRegistry> registries = servers.registries();
        this.models = new ModelPoints(registries.size());
        this.shadows = new ShadowMetrics(page, models, registries);
        update();
        final PoolSeries main =
                new PoolSeries(page, models, "kvasir_", "", FleetSnapshot.OfModel::router);
        final PoolSeries prefill =
                new PoolSeries(
                        page,
                        models,
                        "kvasir_prefill_pool_",
                        "; prefill workers",
                        FleetSnapshot.OfModel::prefillOrNull);
        new RouterMetrics(main);
        new RouterMetrics(prefill);
        if (registries.stream()
                .anyMatch(m -> m.routerOrNull(WorkerPool.MAIN).routedPrefixes() != null)) {
            PredictedPrefixMetrics.register(main, WorkerPool.MAIN);
            PredictedPrefixMetrics.register(prefill, WorkerPool.PREFILL);
        }
        new QueueMetrics(page, models);
        new WorkerMetrics(page, models);
        new SourceMetrics(page, models);
        new LoadMetrics(
                page,
                () -> models.snapshot().workers(),
                () ->
                        registries.stream()
                                .flatMap(
                                        model ->
                                                Arrays.stream(WorkerPool.values())
                                                        .map(model::routerOrNull)));
        registerServers();
        registerModels();
    }

    /** Before a page. */
    void update() {
        models.take(FleetSnapshot.of(servers));
        shadows.update();
    }

    private void registerServers() {
        page.gauge(
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
        page.gauge(
                "kvasir_worker_draining",
                "1 while the worker gets no new request because operators or discovery want it so",
                out -> {
                    for (Upstream u : servers.upstreams()) {
                        out.call(u.draining() ? 1 : 0, u.name());
                    }
                },
                "worker");
        page.count(
                "kvasir_discovery_failures_total",
                "How often a source of workers could not be read or named one that cannot be used",
                out ->
                        servers.failures()
                                .forEach((source, n) -> out.call((double) n.get(), source)),
                "source");
        page.gauge(
                "kvasir_worker_role",
                "1 for the worker's role, pool and protocol of hand-off",
                out -> {
                    for (Upstream u : servers.upstreams()) {
                        models.of(u.model(), out)
                                .call(
                                        1,
                                        u.name(),
                                        u.role().spelling(),
                                        u.pool().spelling(),
                                        u.handoff().spelling());
                    }
                },
                models.labels("worker", "role", "pool", "handoff"));
    }

    private void registerModels() {
        page.gauge(
                "kvasir_load_balance_score",
                "Standard deviation of the available workers' load (blocks in use and to prefill)"
                        + " as a part of its mean; 0 = all alike",
                models.each(
                        FleetSnapshot.OfModel::servers,
                        (model, out) ->
                                out.call(
                                        LoadBalance.score(
                                                model.workers(WorkerPool.MAIN),
                                                model.routerOrNull(WorkerPool.MAIN)
                                                        .settings()
                                                        .get(RouterSettings.BLOCK_SIZE)))),
                models.labels());
        page.gauge(
                "kvasir_disagg_active",
                "1 while requests can be split between prefill and decode workers",
                models.each(
                        FleetSnapshot.OfModel::servers,
                        (model, out) -> out.call(model.canSplit() ? 1 : 0)),
                models.labels());
    }
}
