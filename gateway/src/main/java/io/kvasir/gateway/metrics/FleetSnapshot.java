package io.kvasir.gateway.metrics;

import io.kvasir.gateway.upstream.Fleet;
import io.kvasir.gateway.upstream.UpstreamRegistry;
import io.kvasir.gateway.upstream.WorkerPool;
import io.kvasir.pipeline.source.SourceStatus;
import io.kvasir.router.KvRouter;
import io.kvasir.router.RouterStatus;
import io.kvasir.router.Worker;
import io.kvasir.router.queue.QueueStatus;
import io.kvasir.router.queue.RouterQueue;

import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/** What all metrics of one page are read from. */
record FleetSnapshot(List<OfModel> models, List<Worker> workers, List<SourceStatus> sources) {
    static FleetSnapshot of(Fleet fleet) {
        final List<Worker> workers =
                fleet.upstreams().stream().flatMap(u -> u.ranks().stream()).toList();
        return new FleetSnapshot(
                fleet.registries().stream().map(OfModel::of).toList(),
                workers,
                workers.stream().map(Worker::sourceStatus).filter(Objects::nonNull).toList());
    }

    /** What of a page is read from the routers of one model. */
    record OfModel(
            UpstreamRegistry servers,
            RouterStatus router,
            RouterStatus prefillOrNull,
            Map<WorkerPool, QueueStatus> queues) {
        static OfModel of(UpstreamRegistry servers) {
            final KvRouter prefill = servers.routerOrNull(WorkerPool.PREFILL);
            final Map<WorkerPool, QueueStatus> queues = new EnumMap<>(WorkerPool.class);
            for (WorkerPool pool : WorkerPool.values()) {
                final RouterQueue queue = servers.queueOrNull(pool);
                if (queue != null) {
                    queues.put(pool, queue.status());
                }
            }
            return new OfModel(
                    servers,
                    servers.routerOrNull(WorkerPool.MAIN).status(),
                    prefill == null ? null : prefill.status(),
                    queues);
        }
    }
}
