package io.kvasir.gateway.metrics;

import io.kvasir.gateway.upstream.Fleet;
import io.kvasir.gateway.upstream.UpstreamRegistry;
import io.kvasir.gateway.upstream.WorkerPool;
import io.kvasir.pipeline.source.IndexCause;
import io.kvasir.pipeline.source.IndexState;
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

/**
 * What all metrics of one page are read from.
 *
 * @param workers those of {@code views}
 * @param sources those of {@code views}, of workers that have events
 */
record FleetSnapshot(
        List<OfModel> models,
        List<OfWorker> views,
        List<Worker> workers,
        List<SourceStatus> sources) {
    static FleetSnapshot of(Fleet fleet) {
        final List<OfWorker> views =
                fleet.upstreams().stream()
                        .flatMap(u -> u.ranks().stream())
                        .map(OfWorker::of)
                        .toList();
        return new FleetSnapshot(
                fleet.registries().stream().map(OfModel::of).toList(),
                views,
                views.stream().map(OfWorker::worker).toList(),
                views.stream().map(OfWorker::sourceOrNull).filter(Objects::nonNull).toList());
    }

    /**
     * How well the index is for one worker.
     *
     * @param sourceOrNull null where the worker has no events
     * @param state of one moment with the cause
     * @param credit what a block counts that it is believed to have cached
     */
    record OfWorker(
            Worker worker,
            SourceStatus sourceOrNull,
            IndexState state,
            IndexCause cause,
            double credit) {
        static OfWorker of(Worker worker) {
            final SourceStatus source = worker.sourceStatus();
            return new OfWorker(
                    worker,
                    source,
                    source == null ? worker.state() : source.state(),
                    source == null ? worker.cause() : source.cause(),
                    worker.indexCredit());
        }
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
