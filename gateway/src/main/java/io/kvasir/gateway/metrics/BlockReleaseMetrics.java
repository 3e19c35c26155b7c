package io.kvasir.gateway.metrics;

import io.kvasir.gateway.disagg.BlockRelease;
import io.kvasir.gateway.disagg.BlockReleaseCounts;

/** What becomes of the blocks that prefill workers hold. */
final class BlockReleaseMetrics {
    private final BlockRelease release;
    private volatile BlockReleaseCounts prefills;

    /**
     * Adds the metrics to a page.
     *
     * @param release asked once for each page
     */
    BlockReleaseMetrics(MetricRegistry page, BlockRelease release) {
        this.release = release;
        update();
        page.gauge(
                "kvasir_prefills_held",
                "Finished prefills whose blocks a prefill worker still holds",
                out -> out.call((double) prefills.held()));
        page.count(
                "kvasir_prefills_fetched_total",
                "Finished prefills whose blocks a decode worker has fetched",
                out -> out.call((double) prefills.fetched()));
        page.count(
                "kvasir_prefills_released_total",
                "Finished prefills without a decode whose worker was notified to free the blocks",
                out -> out.call((double) prefills.released()));
        page.count(
                "kvasir_prefills_left_total",
                "Finished prefills without a decode whose blocks are left to the worker's lease",
                out -> prefills.left().forEach((why, n) -> out.call((double) n, why.spelling())),
                "reason");
        page.count(
                "kvasir_prefill_heartbeats_total",
                "Leases of prefills that were prolonged",
                out -> out.call((double) prefills.heartbeats()));
    }

    /** Before a page. */
    void update() {
        prefills = release.counts();
    }
}
