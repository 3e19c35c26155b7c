package io.kvasir.gateway.metrics;

import io.kvasir.core.load.PredictedPrefixes;
import io.kvasir.gateway.upstream.WorkerPool;
import io.kvasir.router.KvRouter;

import java.util.function.Function;

/** What workers without events are taken to hold. */
final class PredictedPrefixMetrics {
    private PredictedPrefixMetrics() {}

    /** Adds the metrics of one pool to a page; see {@link RouterMetrics}. */
    static void register(
            MetricRegistry page, ModelPoints models, String prefix, String pool, WorkerPool of) {
        final Function<FleetSnapshot.OfModel, PredictedPrefixes> routed =
                model -> {
                    final KvRouter router = model.servers().routerOrNull(of);
                    return router == null ? null : router.routedPrefixes();
                };
        page.gauge(
                prefix + "routed_blocks",
                "Blocks that workers without events are taken to hold" + pool,
                models.each(routed, (prefixes, out) -> out.call((double) prefixes.blocks())),
                models.labels());
        page.gauge(
                prefix + "routed_prompts",
                "Routed prompts that these blocks are of" + pool,
                models.each(routed, (prefixes, out) -> out.call((double) prefixes.visits())),
                models.labels());
        page.count(
                prefix + "routed_prompts_dropped_total",
                "Routed prompts that do not count any more: expired, pruned because the tree was"
                        + " full; or never counted: refused"
                        + pool,
                models.each(
                        routed,
                        (prefixes, out) -> {
                            out.call((double) prefixes.expired(), "expired");
                            out.call((double) prefixes.pruned(), "pruned");
                            out.call((double) prefixes.refused(), "refused");
                        }),
                models.labels("reason"));
    }
}
