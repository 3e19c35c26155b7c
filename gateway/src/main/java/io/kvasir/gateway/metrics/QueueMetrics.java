package io.kvasir.gateway.metrics;

import io.kvasir.gateway.upstream.WorkerPool;
import io.kvasir.router.queue.QueueStatus;

import java.util.function.Consumer;
import java.util.function.ToDoubleFunction;

/** What waits for a worker; no series where nothing can. */
final class QueueMetrics {
    private static final double NANOS = 1e9;

    private final MetricRegistry page;
    private final ModelPoints models;

    /** Adds the metrics to a page. */
    QueueMetrics(MetricRegistry page, ModelPoints models) {
        this.page = page;
        this.models = models;
        gauge("kvasir_queue_requests", "Requests that wait for a worker", QueueStatus::requests);
        gauge("kvasir_queue_tokens", "Tokens of the prompts of these", QueueStatus::tokens);
        gauge(
                "kvasir_queue_following",
                "Those of them that wait for another one's prompt to be computed",
                QueueStatus::following);
        gauge(
                "kvasir_queue_oldest_seconds",
                "How long the one has waited that came first",
                status -> status.oldestNs() / NANOS);
        page.count(
                "kvasir_queue_admitted_total",
                "Requests that were booked: at once, or after a wait",
                ofQueues(
                        (status, out, pool) -> {
                            out.call((double) status.admitted() - status.waited(), pool, "no");
                            out.call((double) status.waited(), pool, "yes");
                        }),
                models.labels("pool", "waited"));
        page.count(
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
                models.labels("pool", "cause"));
        page.count(
                "kvasir_single_flight_total",
                "Prompts that others could follow (led) or could not, as there were too many"
                        + " (not_led), and requests that followed one",
                ofQueues(
                        (status, out, pool) -> {
                            out.call((double) status.led(), pool, "led");
                            out.call((double) status.notLed(), pool, "not_led");
                            out.call((double) status.followed(), pool, "followed");
                        }),
                models.labels("pool", "event"));
        page.gauge(
                "dynamo_frontend_router_queue_pending_requests",
                "The same as kvasir_queue_requests",
                ofDynamo(QueueStatus::requests),
                "model",
                "worker_type");
        page.gauge(
                "dynamo_frontend_router_queue_pending_isl_tokens",
                "The same as kvasir_queue_tokens",
                ofDynamo(QueueStatus::tokens),
                "model",
                "worker_type");
    }

    private void gauge(String name, String help, ToDoubleFunction<QueueStatus> value) {
        page.gauge(
                name,
                help,
                ofQueues((status, out, pool) -> out.call(value.applyAsDouble(status), pool)),
                models.labels("pool"));
    }

    /** Takes the points of the queue of one pool. */
    private interface Points {
        void of(QueueStatus status, Point out, String pool);
    }

    private Consumer<Point> ofQueues(Points points) {
        return models.each(
                FleetSnapshot.OfModel::queues,
                (queues, out) ->
                        queues.forEach((pool, status) -> points.of(status, out, pool.spelling())));
    }

    private Consumer<Point> ofDynamo(ToDoubleFunction<QueueStatus> value) {
        return out -> {
            for (FleetSnapshot.OfModel model : models.snapshot().models()) {
                model.queues()
                        .forEach(
                                (pool, status) ->
                                        out.call(
                                                value.applyAsDouble(status),
                                                model.servers().model(),
                                                pool == WorkerPool.MAIN ? "decode" : "prefill"));
            }
        };
    }
}
