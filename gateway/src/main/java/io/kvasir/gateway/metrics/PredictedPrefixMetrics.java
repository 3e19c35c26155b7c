package io.kvasir.gateway.metrics;

import io.kvasir.core.load.PredictedPrefixes;
import io.kvasir.gateway.upstream.WorkerPool;
import io.kvasir.router.KvRouter;

import java.util.function.Function;

/** What workers without events are taken to hold. */
final class PredictedPrefixMetrics {
    private PredictedPrefixMetrics() {}

    /** Adds the metrics of one pool to a page. */
    static void register(PoolSeries pool, WorkerPool of) {
        final Function<FleetSnapshot.OfModel, PredictedPrefixes> routed =
                model -> {
                    final KvRouter router = model.servers().routerOrNull(of);
                    return router == null ? null : router.routedPrefixes();
                };
        pool.gauge(
                "routed_blocks",
                "Blocks that workers without events are taken to hold",
                routed,
                (prefixes, out) -> out.call((double) prefixes.blocks()));
        pool.gauge(
                "routed_prompts",
                "Routed prompts that these blocks are of",
                routed,
                (prefixes, out) -> out.call((double) prefixes.visits()));
        pool.count(
                "routed_prompts_dropped_total",
                "Routed prompts that do not count any more: expired, pruned because the tree was"
                        + " full; or never counted: refused",
                routed,
                (prefixes, out) -> {
                    out.call((double) prefixes.expired(), "expired");
                    out.call((double) prefixes.pruned(), "pruned");
                    out.call((double) prefixes.refused(), "refused");
                },
                "reason");
    }
}
