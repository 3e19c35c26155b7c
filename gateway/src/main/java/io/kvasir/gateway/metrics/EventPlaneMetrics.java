package io.kvasir.gateway.metrics;

import io.kvasir.pipeline.source.EventPlaneStatus;
import io.kvasir.router.RouterStatus;

import java.util.function.Function;

/** How the event plane of one pool fares. */
final class EventPlaneMetrics {
    private EventPlaneMetrics() {}

    /** Adds the metrics to a page. */
    static void register(PoolSeries pool) {
        final Function<FleetSnapshot.OfModel, EventPlaneStatus> plane =
                pool.of(RouterStatus::planeOrNull);
        pool.gauge(
                "event_plane_connected",
                "1 while there is a connection to the event plane",
                plane,
                (status, out) -> out.call(status.isConnected() ? 1 : 0));
        pool.gauge(
                "event_plane_streams",
                "Workers, ranks counted, whose events come from the event plane",
                plane,
                (status, out) -> out.call((double) status.streams()));
        pool.gauge(
                "event_plane_recovering",
                "Workers whose local indexers are asked for missing events now",
                plane,
                (status, out) -> out.call((double) status.recovering()));
        pool.gauge(
                "event_plane_lag",
                "Events that are not in the index yet, by where they wait",
                plane,
                (status, out) -> {
                    out.call((double) status.waiting(), "transport");
                    out.call((double) status.behind(), "ring");
                },
                "waiting");
        pool.count(
                "event_plane_events_total",
                "What came from the event plane and what became of it",
                plane,
                (status, out) ->
                        status.byEvent().forEach((event, n) -> out.call((double) n, event)),
                "event");
    }
}
