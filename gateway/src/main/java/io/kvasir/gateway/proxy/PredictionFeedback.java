package io.kvasir.gateway.proxy;

import io.kvasir.gateway.metrics.GatewayMetrics;
import io.kvasir.gateway.openai.UsageReader;
import io.kvasir.gateway.routing.WorkerReservations;
import io.kvasir.gateway.upstream.Upstream;

/**
 * Compares what an answer states of cached tokens with what was predicted, and reports the result
 * to the metrics and to the router, which judges the worker by it. Thread-safe.
 */
public final class PredictionFeedback {
    private final GatewayMetrics metrics;

    /** Reports to these metrics. */
    public PredictionFeedback(GatewayMetrics metrics) {
        this.metrics = metrics;
    }

    /**
     * Takes the usage of a complete answer.
     *
     * @param usage read to the end; may state nothing
     */
    void completed(
            ProxyRequest request,
            WorkerReservations.Booking booking,
            Upstream upstream,
            UsageReader usage) {
        if (usage.promptTokens() < 0) {
            return;
        }
        final int actual = upstream.cachedTokens(usage);
        booking.decision().usage(usage.promptTokens(), actual);
        if (!request.prompt().known() || request.inference().prompts() > 1) {
            return; // usage of a batch has all prompts' tokens, but vLLM's only the last one's
            // cached
        }
        if (usage.promptTokens() != request.prompt().tokens().length) {
            metrics.tokenMismatch(upstream.name());
            return;
        }
        if (actual < 0) {
            return;
        }
        metrics.byModel().stated(upstream.model(), actual);
        if (request.inference().statesWhatWasCached()) {
            booking.lease().engineCachedTokens(actual);
            final int predicted = booking.decision().predictedCachedTokens();
            metrics.compared(upstream.name(), usage.promptTokens(), predicted, actual);
        }
    }
}
