package io.kvasir.gateway.metrics;

import io.kvasir.router.RouterStatus;
import io.kvasir.router.replica.ReplicaStatus;

import java.util.function.Function;

/** What gateways over the same workers say to each other. */
final class ReplicaMetrics {
    private ReplicaMetrics() {}

    /** Adds the metrics to a page. */
    static void register(PoolSeries pool) {
        final Function<FleetSnapshot.OfModel, ReplicaStatus> replica =
                pool.of(RouterStatus::replicaOrNull);
        pool.gauge(
                "replica_sync_connected",
                "1 while bookings can be shared with other gateways, as far as is known",
                replica,
                (status, out) -> out.call(status.isConnected() ? 1 : 0));
        pool.gauge(
                "replicas",
                "Other gateways over the same workers whose messages arrive",
                replica,
                (status, out) -> out.call((double) status.peers()));
        pool.gauge(
                "replica_bookings",
                "Their requests that count as load here",
                replica,
                (status, out) -> out.call((double) status.peerBookings()));
        pool.count(
                "replica_events_total",
                "What replica sync has sent, applied, missed and repaired",
                replica,
                (status, out) ->
                        status.byEvent().forEach((event, n) -> out.call((double) n, event)),
                "event");
    }
}
