package io.kvasir.gateway.metrics;

import io.kvasir.gateway.upstream.UpstreamRegistry;
import io.kvasir.gateway.upstream.WorkerPool;
import io.kvasir.router.KvRouter;

import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.BiConsumer;

/** How the shadow policies of models do beside those that choose. */
final class ShadowMetrics {
    private final MetricRegistry page;
    private final ModelPoints models;
    private final List<UpstreamRegistry> registries;
    private final Map<String, ShadowPolicy> shadows = new ConcurrentHashMap<>(); // by model

    /** Adds the metrics to a page. */
    ShadowMetrics(MetricRegistry page, ModelPoints models, List<UpstreamRegistry> registries) {
        this.page = page;
        this.models = models;
        this.registries = registries;
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

    /** Before a page: judges what has been decided since the last one. */
    void update() {
        registries.forEach(this::follow);
        shadows.values().forEach(ShadowPolicy::update);
    }

    /** Another weight is another policy, which begins now. */
    private void follow(UpstreamRegistry model) {
        final KvRouter router = model.routerOrNull(WorkerPool.MAIN);
        final double weight = model.shadowOverlapWeight();
        final ShadowPolicy now = shadows.get(model.model());
        if (weight < 0 || router.journal() == null) {
            shadows.remove(model.model());
        } else if (now == null || now.weight() != weight) {
            shadows.put(model.model(), new ShadowPolicy(router.journal(), weight));
        }
    }

    private void countOfShadows(
            String name, String help, BiConsumer<ShadowPolicy, Point> points, String... labels) {
        page.count(
                name,
                help,
                models.each(model -> shadows.get(model.servers().model()), points),
                models.labels(labels));
    }
}
