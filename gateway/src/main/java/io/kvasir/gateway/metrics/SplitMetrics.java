package io.kvasir.gateway.metrics;

import io.kvasir.gateway.config.HandoffProtocol;
import io.kvasir.gateway.upstream.Upstream;
import io.kvasir.router.disagg.FallbackPolicy;
import io.kvasir.router.disagg.LegFailure;
import io.kvasir.router.disagg.SplitEvent;
import io.prometheus.metrics.core.metrics.Counter;
import io.prometheus.metrics.core.metrics.Histogram;

/** What becomes of requests between prefill and decode workers. Thread-safe. */
public final class SplitMetrics {
    private static final double NANOS = 1e9;

    private final Counter splits;
    private final Counter wholes;
    private final Counter legFailures;
    private final Counter stranded;
    private final Histogram prefillLeg;
    private final Histogram handoff;
    private final Counter handoffTokens;

    /** Adds the metrics to a page. */
    SplitMetrics(MetricRegistry page, double[] latency) {
        splits =
                page.counter(
                        "kvasir_split_requests_total",
                        "Requests that were split between a prefill and a decode worker",
                        "handoff");
        wholes =
                page.counter(
                        "kvasir_whole_requests_total",
                        "Requests that one worker was to do all of although there are prefill"
                                + " workers, by reason",
                        "reason");
        legFailures =
                page.counter(
                        "kvasir_leg_failures_total",
                        "Failures of one of the two workers of a split request, and what followed:"
                                + " decode-only, other-prefill, fail",
                        "leg",
                        "kind",
                        "fallback");
        stranded =
                page.counter(
                        "kvasir_prefills_stranded_total",
                        "Prefills without a decode whose engine has no call to free the blocks, or"
                                + " whose answer does not say which they are",
                        "handoff");
        prefillLeg =
                page.histogram(
                        "kvasir_prefill_leg_seconds",
                        "Time from the prefill worker's request to its answer",
                        latency,
                        "worker");
        handoff =
                page.histogram(
                        "kvasir_handoff_seconds",
                        "Time from the prefill worker's answer to the first bytes of the decode"
                                + " worker's: transfer and wait",
                        latency,
                        "worker");
        handoffTokens =
                page.counter(
                        "kvasir_handoff_tokens_total",
                        "Tokens whose blocks the decode worker did not hold and had to fetch",
                        "worker");
    }

    /** A request is split. */
    public void split(HandoffProtocol protocol) {
        splits.labelValues(protocol.spelling()).inc();
    }

    /** One worker does all of a request. */
    public void notSplit(String reason) {
        wholes.labelValues(reason).inc();
    }

    /** One leg of a split request has failed, and something follows. */
    public void legFailed(LegFailure failure, SplitEvent next) {
        legFailures
                .labelValues(
                        failure.leg().spelling(),
                        failure.kind(),
                        switch (next) {
                            case DECODE_ALONE -> FallbackPolicy.DECODE_ONLY.spelling();
                            case PREFILL_AGAIN -> FallbackPolicy.OTHER_PREFILL.spelling();
                            default -> FallbackPolicy.FAIL.spelling();
                        })
                .inc();
    }

    /** The blocks of a prefill are left to its engine. */
    public void stranded(HandoffProtocol protocol) {
        stranded.labelValues(protocol.spelling()).inc();
    }

    /** A prefill worker has answered. */
    public void prefilled(Upstream worker, long ns) {
        prefillLeg.labelValues(worker.name()).observe(ns / NANOS);
    }

    /**
     * A decode worker's answer begins.
     *
     * @param tokens of the prompt that it did not hold
     */
    public void fetched(Upstream worker, int tokens) {
        handoffTokens.labelValues(worker.name()).inc(tokens);
    }

    /**
     * A decode worker's answer begins, after the prefill worker's.
     *
     * @param ns since that
     */
    public void handedOver(Upstream worker, long ns) {
        handoff.labelValues(worker.name()).observe(ns / NANOS);
    }
}
