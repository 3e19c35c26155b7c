package io.kvasir.gateway.metrics;

import io.kvasir.router.RouterStatus;
import io.kvasir.router.state.SnapshotStatus;

import java.util.function.BiConsumer;

/** What becomes of the snapshots of what the workers of one pool hold. */
final class SnapshotMetrics {
    private static final double NANOS = 1e9;
    private static final double MILLIS = 1e3;
    private static final String KIND = "kind";

    private SnapshotMetrics() {}

    /** Adds the metrics to a page. */
    static void register(PoolSeries pool) {
        pool.count(
                "snapshots_total",
                "Snapshots of what workers hold, by what became of them",
                pool.router(),
                of(
                        (status, out, kind) -> {
                            out.call((double) status.taken(), kind, "taken");
                            out.call((double) status.failed(), kind, "failed");
                        }),
                KIND,
                "outcome");
        pool.gauge(
                "snapshot_last_failures",
                "Snapshots, or workers of one, that failed when the last one was tried",
                pool.router(),
                of((status, out, kind) -> out.call((double) status.lastFailed(), kind)),
                KIND);
        pool.count(
                "snapshots_abandoned_total",
                "Snapshots, or workers of one, that were given up, by cause",
                pool.router(),
                of(
                        (status, out, kind) ->
                                status.abandoned()
                                        .forEach((cause, n) -> out.call((double) n, kind, cause))),
                KIND,
                "cause");
        pool.count(
                "snapshot_seconds_total",
                "Time that snapshots took that were saved",
                pool.router(),
                of((status, out, kind) -> out.call(status.totalNs() / NANOS, kind)),
                KIND);
        pool.gauge(
                "snapshot_bytes",
                "Length of the last snapshot that this gateway took",
                pool.router(),
                of((status, out, kind) -> out.call((double) status.lastBytes(), kind)),
                KIND);
        pool.gauge(
                "snapshot_age_seconds",
                "Time since the newest snapshot that this gateway knows; absent before it",
                pool.router(),
                of(
                        (status, out, kind) -> {
                            if (status.lastAgeMs() >= 0) {
                                out.call(status.lastAgeMs() / MILLIS, kind);
                            }
                        }),
                KIND);
        pool.count(
                "snapshot_restored_blocks_total",
                "Blocks of workers that were restored",
                pool.router(),
                of((status, out, kind) -> out.call((double) status.restoredBlocks(), kind)),
                KIND);
        pool.count(
                "snapshot_restores_total",
                "Workers that were saved, by whether they could be restored",
                pool.router(),
                of(
                        (status, out, kind) -> {
                            out.call((double) status.restoredWorkers(), kind, "restored");
                            out.call((double) status.restoreFailures(), kind, "failed");
                        }),
                KIND,
                "outcome");
    }

    /** Takes the points of one kind of snapshots. */
    private interface Points {
        void of(SnapshotStatus status, Point out, String kind);
    }

    private static BiConsumer<RouterStatus, Point> of(Points points) {
        return (status, out) -> {
            if (status.snapshots().ofRouterOrNull() != null) {
                points.of(status.snapshots().ofRouterOrNull(), out, "own");
            }
            if (status.snapshots().ofPlaneOrNull() != null) {
                points.of(status.snapshots().ofPlaneOrNull(), out, "shared");
            }
        };
    }
}
