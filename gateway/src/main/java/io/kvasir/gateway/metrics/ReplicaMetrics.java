package io.kvasir.gateway.metrics;

import io.kvasir.router.replica.ReplicaStatus;

import java.util.function.Function;

/** What gateways over the same workers tell each other. */
final class ReplicaMetrics {
    private ReplicaMetrics() {}

    /** Adds the metrics to a page; see {@link RouterMetrics}. */
    static void register(
            MetricRegistry page,
            ModelPoints models,
            String prefix,
            String pool,
            Function<FleetSnapshot.OfModel, ReplicaStatus> replica) {
        page.gauge(
                prefix + "replicas",
                "Other gateways over the same workers that are heard of" + pool,
                models.each(replica, (status, out) -> out.call((double) status.peers())),
                models.labels());
        page.gauge(
                prefix + "replica_bookings",
                "Their requests that count as load here" + pool,
                models.each(replica, (status, out) -> out.call((double) status.peerBookings())),
                models.labels());
        page.count(
                prefix + "replica_events_total",
                "What replica sync has sent, applied, missed and repaired" + pool,
                models.each(
                        replica,
                        (status, out) ->
                                status.byEvent()
                                        .forEach((event, n) -> out.call((double) n, event))),
                models.labels("event"));
    }
}
