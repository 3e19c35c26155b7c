package io.kvasir.gateway.metrics;

import io.kvasir.core.load.EngineLoad;
import io.kvasir.router.KvRouter;
import io.kvasir.router.Worker;
import io.kvasir.router.load.BusyState;
import io.kvasir.router.load.LoadCounts;
import io.kvasir.router.load.LoadOutcome;
import io.kvasir.router.load.LoadSource;
import io.kvasir.router.load.ReportedLoad;

import java.util.List;
import java.util.Objects;
import java.util.function.Supplier;
import java.util.stream.Stream;

/** What engines report of their load, what of it is others', and which workers are full. */
final class LoadMetrics {
    private static final double NANOS = 1e9;

    private final Supplier<List<Worker>> workers;

    /**
     * Adds the metrics to a page.
     *
     * @param workers of the page that is asked for
     * @param routers of all models and pools; null for those that there are not yet
     */
    LoadMetrics(
            MetricRegistry page,
            Supplier<List<Worker>> workers,
            Supplier<Stream<KvRouter>> routers) {
        this.workers = workers;
        page.gauge(
                "kvasir_worker_engine_requests",
                "Requests in the engine by its own report",
                out ->
                        each(
                                (worker, load) -> {
                                    known(out, load.load().running(), worker, "running");
                                    known(out, load.load().waiting(), worker, "waiting");
                                }),
                "worker",
                "dp_rank",
                "state");
        page.gauge(
                "kvasir_worker_engine_blocks",
                "Blocks of the engine's cache by its own report: all, and those that running"
                        + " requests use",
                out ->
                        each(
                                (worker, load) -> {
                                    known(out, load.load().usedBlocks(), worker, "used");
                                    known(out, load.load().blocks(), worker, "all");
                                }),
                "worker",
                "dp_rank",
                "part");
        page.gauge(
                "kvasir_worker_others_load",
                "Load of the worker that is not booked here, by its engine's report: requests,"
                        + " blocks, prefill-tokens",
                out ->
                        each(
                                (worker, load) -> {
                                    known(out, load.others().requests(), worker, "requests");
                                    known(out, load.others().blocks(), worker, "blocks");
                                    known(
                                            out,
                                            load.others().prefillTokens(),
                                            worker,
                                            "prefill-tokens");
                                }),
                "worker",
                "dp_rank",
                "unit");
        page.gauge(
                "kvasir_worker_load_report_age_seconds",
                "Time since the last report of the engine's load, by source; absent before the"
                        + " first",
                out -> {
                    for (Worker worker : workers.get()) {
                        for (LoadSource source : LoadSource.values()) {
                            final long ns = worker.loadSilentNs(source);
                            if (ns >= 0) {
                                out.call(
                                        ns / NANOS,
                                        worker.name(),
                                        Labels.rank(worker),
                                        source.spelling());
                            }
                        }
                    }
                },
                "worker",
                "dp_rank",
                "source");
        page.gauge(
                "kvasir_worker_busy",
                "1 for the state of a worker that may be left out because it is full",
                out -> {
                    for (Worker worker : workers.get()) {
                        final BusyState now = worker.busyState();
                        for (BusyState state : BusyState.values()) {
                            out.call(
                                    state == now ? 1 : 0,
                                    worker.name(),
                                    Labels.rank(worker),
                                    state.spelling());
                        }
                    }
                },
                "worker",
                "dp_rank",
                "state");
        page.gauge(
                "kvasir_worker_index_excess_blocks",
                "Blocks that the index holds for the worker beyond all that its engine has room"
                        + " for; absent where that is not known",
                out -> {
                    for (Worker worker : workers.get()) {
                        final long all = blocks(worker);
                        if (all > 0) {
                            out.call(
                                    (double) Math.max(0, worker.indexedBlocks() - all),
                                    worker.name(),
                                    Labels.rank(worker));
                        }
                    }
                },
                "worker",
                "dp_rank");
        page.count(
                "kvasir_load_reports_total",
                "Reports of engines' load, by source and by what became of them",
                out -> {
                    final List<LoadCounts> all =
                            routers.get()
                                    .filter(Objects::nonNull)
                                    .map(KvRouter::loadReports)
                                    .toList();
                    for (LoadSource source : LoadSource.values()) {
                        for (LoadOutcome outcome : LoadOutcome.values()) {
                            out.call(
                                    (double)
                                            all.stream()
                                                    .mapToLong(c -> c.of(source, outcome))
                                                    .sum(),
                                    source.spelling(),
                                    outcome.spelling());
                        }
                    }
                },
                "source",
                "outcome");
    }

    /** What the engine has room for: by its report, else as stated or configured; 0 if unknown. */
    private static long blocks(Worker worker) {
        final ReportedLoad reported = worker.reportedLoadOrNull();
        return reported != null && reported.load().blocks() > 0
                ? reported.load().blocks()
                : worker.kvBlocks();
    }

    private interface Reported {
        void take(Worker worker, ReportedLoad load);
    }

    private void each(Reported reported) {
        for (Worker worker : workers.get()) {
            final ReportedLoad load = worker.reportedLoadOrNull();
            if (load != null) {
                reported.take(worker, load);
            }
        }
    }

    private static void known(Point out, long value, Worker worker, String label) {
        if (value != EngineLoad.UNKNOWN) {
            out.call((double) value, worker.name(), Labels.rank(worker), label);
        }
    }
}
