package io.kvasir.gateway.metrics;

import io.kvasir.router.RouterStatus;
import io.kvasir.router.state.SnapshotStatus;

import java.time.Clock;
import java.util.function.Consumer;
import java.util.function.Function;

/** What becomes of the snapshots of what the workers of one pool hold. */
final class SnapshotMetrics {
    private static final double NANOS = 1e9;
    private static final double MILLIS = 1e3;
    private static final String KIND = "kind";

    private final ModelPoints models;
    private final Function<FleetSnapshot.OfModel, RouterStatus> router;

    /** Adds the metrics to a page; see {@link RouterMetrics}. */
    SnapshotMetrics(
            MetricRegistry page,
            ModelPoints models,
            String prefix,
            String pool,
            Function<FleetSnapshot.OfModel, RouterStatus> router) {
        this.models = models;
        this.router = router;
        page.count(
                prefix + "snapshots_total",
                "Snapshots of what workers hold, by what became of them" + pool,
                ofSnapshots(
                        (status, out, kind) -> {
                            out.call((double) status.taken(), kind, "taken");
                            out.call((double) status.failed(), kind, "failed");
                        }),
                models.labels(KIND, "outcome"));
        page.count(
                prefix + "snapshots_abandoned_total",
                "Snapshots, or workers of one, that were given up, by cause" + pool,
                ofSnapshots(
                        (status, out, kind) ->
                                status.abandoned()
                                        .forEach((cause, n) -> out.call((double) n, kind, cause))),
                models.labels(KIND, "cause"));
        page.count(
                prefix + "snapshot_seconds_total",
                "Time that snapshots took that were saved" + pool,
                ofSnapshots((status, out, kind) -> out.call(status.totalNs() / NANOS, kind)),
                models.labels(KIND));
        page.gauge(
                prefix + "snapshot_bytes",
                "Length of the last snapshot that this gateway took" + pool,
                ofSnapshots((status, out, kind) -> out.call((double) status.lastBytes(), kind)),
                models.labels(KIND));
        page.gauge(
                prefix + "snapshot_age_seconds",
                "Time since the newest snapshot that this gateway knows; absent before it" + pool,
                ofSnapshots(
                        (status, out, kind) -> {
                            if (status.lastTakenMs() > 0) {
                                final long now = Clock.systemUTC().millis();
                                out.call((now - status.lastTakenMs()) / MILLIS, kind);
                            }
                        }),
                models.labels(KIND));
        page.count(
                prefix + "snapshot_restored_blocks_total",
                "Blocks of workers that were restored" + pool,
                ofSnapshots(
                        (status, out, kind) -> out.call((double) status.restoredBlocks(), kind)),
                models.labels(KIND));
        page.count(
                prefix + "snapshot_restores_total",
                "Workers that were saved, by whether they could be restored" + pool,
                ofSnapshots(
                        (status, out, kind) -> {
                            out.call((double) status.restoredWorkers(), kind, "restored");
                            out.call((double) status.restoreFailures(), kind, "failed");
                        }),
                models.labels(KIND, "outcome"));
    }

    /** Takes the points of one kind of snapshots. */
    private interface Points {
        void of(SnapshotStatus status, Point out, String kind);
    }

    private Consumer<Point> ofSnapshots(Points points) {
        return models.each(
                router,
                (status, out) -> {
                    if (status.snapshots().ofRouterOrNull() != null) {
                        points.of(status.snapshots().ofRouterOrNull(), out, "own");
                    }
                    if (status.snapshots().ofPlaneOrNull() != null) {
                        points.of(status.snapshots().ofPlaneOrNull(), out, "shared");
                    }
                });
    }
}
