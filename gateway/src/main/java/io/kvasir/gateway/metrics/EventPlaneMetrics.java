package io.kvasir.gateway.metrics;

import io.kvasir.pipeline.source.EventPlaneStatus;

import java.util.function.Function;

/** How the event plane of one pool fares. */
final class EventPlaneMetrics {
    private EventPlaneMetrics() {}

    /** Adds the metrics to a page; see {@link RouterMetrics}. */
    static void register(
            MetricRegistry page,
            ModelPoints models,
            String prefix,
            String pool,
            Function<FleetSnapshot.OfModel, EventPlaneStatus> plane) {
        page.gauge(
                prefix + "event_plane_connected",
                "1 while there is a connection to the event plane" + pool,
                models.each(plane, (status, out) -> out.call(status.isConnected() ? 1 : 0)),
                models.labels());
        page.gauge(
                prefix + "event_plane_streams",
                "Workers, ranks counted, whose events come from the event plane" + pool,
                models.each(plane, (status, out) -> out.call((double) status.streams())),
                models.labels());
        page.gauge(
                prefix + "event_plane_recovering",
                "Workers whose local indexers are asked for missing events now" + pool,
                models.each(plane, (status, out) -> out.call((double) status.recovering())),
                models.labels());
        page.gauge(
                prefix + "event_plane_lag",
                "Events that are not in the index yet, by where they wait" + pool,
                models.each(
                        plane,
                        (status, out) -> {
                            out.call((double) status.waiting(), "transport");
                            out.call((double) status.behind(), "ring");
                        }),
                models.labels("waiting"));
        page.count(
                prefix + "event_plane_events_total",
                "What came from the event plane and what became of it" + pool,
                models.each(
                        plane,
                        (status, out) ->
                                status.byEvent()
                                        .forEach((event, n) -> out.call((double) n, event))),
                models.labels("event"));
    }
}
