package io.kvasir.gateway.metrics;

import io.kvasir.core.index.StorageTier;
import io.kvasir.gateway.metrics.FleetSnapshot.OfWorker;
import io.kvasir.pipeline.source.IndexCause;
import io.kvasir.pipeline.source.IndexState;
import io.kvasir.router.Worker;

import java.util.List;
import java.util.function.ToDoubleFunction;

/** The workers of the page's snapshot. */
final class WorkerMetrics {
    private static final List<StorageTier> TIERS = List.of(StorageTier.HOST, StorageTier.DISK);

    private final MetricRegistry page;
    private final ModelPoints models;

    /** Adds the metrics to a page. */
    WorkerMetrics(MetricRegistry page, ModelPoints models) {
        this.page = page;
        this.models = models;
        worker("active_requests", "Requests booked and not released", Worker::activeRequests);
        worker("prefill_tokens", "Tokens still to be prefilled", Worker::prefillTokens);
        worker("active_blocks", "Blocks in use by running requests", Worker::activeBlocks);
        worker("index_blocks", "Blocks the index holds for the worker", Worker::indexedBlocks);
        page.gauge(
                "kvasir_worker_tier_blocks",
                "Blocks the index holds for the worker below its device; absent where there are"
                        + " none",
                out -> {
                    for (Worker w : models.snapshot().workers()) {
                        for (StorageTier tier : TIERS) {
                            final double blocks = (double) w.indexedBlocks(tier);
                            if (blocks > 0) {
                                out.call(blocks, w.name(), Labels.rank(w), Labels.lower(tier));
                            }
                        }
                    }
                },
                "worker",
                "dp_rank",
                "tier");
        worker("event_sequence", "Number of the last event applied", Worker::eventSequence);
        worker("up", "1 if requests may be sent to the worker", w -> w.available() ? 1 : 0);
        page.gauge(
                "kvasir_worker_index_state",
                "1 for the state that the worker's index is in",
                out -> {
                    for (OfWorker view : models.snapshot().views()) {
                        for (IndexState state : IndexState.values()) {
                            out.call(
                                    state == view.state() ? 1 : 0,
                                    view.worker().name(),
                                    Labels.rank(view.worker()),
                                    Labels.lower(state));
                        }
                    }
                },
                "worker",
                "dp_rank",
                "state");
        page.gauge(
                "kvasir_worker_index_credit",
                "What a block counts that the worker is believed to have cached, 0 to 1",
                out -> {
                    for (OfWorker view : models.snapshot().views()) {
                        out.call(view.credit(), view.worker().name(), Labels.rank(view.worker()));
                    }
                },
                "worker",
                "dp_rank");
        page.gauge(
                "kvasir_worker_index_cause",
                "1 for why the worker's index is not exact; absent while it is",
                out -> {
                    for (OfWorker view : models.snapshot().views()) {
                        if (view.cause() != IndexCause.NONE) {
                            out.call(
                                    1,
                                    view.worker().name(),
                                    Labels.rank(view.worker()),
                                    view.cause().spelling());
                        }
                    }
                },
                "worker",
                "dp_rank",
                "cause");
    }

    private void worker(String name, String help, ToDoubleFunction<Worker> value) {
        page.gauge(
                "kvasir_worker_" + name,
                help,
                out -> {
                    for (Worker w : models.snapshot().workers()) {
                        out.call(value.applyAsDouble(w), w.name(), Labels.rank(w));
                    }
                },
                "worker",
                "dp_rank");
    }
}
