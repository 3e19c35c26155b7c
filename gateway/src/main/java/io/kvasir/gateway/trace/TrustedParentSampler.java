package io.kvasir.gateway.trace;

import io.opentelemetry.api.common.Attributes;
import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.SpanContext;
import io.opentelemetry.api.trace.SpanKind;
import io.opentelemetry.context.Context;
import io.opentelemetry.context.ContextKey;
import io.opentelemetry.sdk.trace.data.LinkData;
import io.opentelemetry.sdk.trace.samplers.Sampler;
import io.opentelemetry.sdk.trace.samplers.SamplingResult;

import java.util.List;
import java.util.function.Supplier;

/**
 * Samples what the span above is sampled by, and a share of what has none. A client that is not
 * trusted cannot have its requests sampled: theirs are as if there were no span above.
 */
final class TrustedParentSampler implements Sampler {
    private static final ContextKey<Boolean> TRUSTED = ContextKey.named("kvasir-trusted");

    private final Supplier<String> randomIds;
    private volatile Sampler share;

    /**
     * @param ratio of traces, 0 to 1
     * @param randomIds drawn from where the trace is a client's that is not trusted; thread-safe
     */
    TrustedParentSampler(double ratio, Supplier<String> randomIds) {
        this.randomIds = randomIds;
        ratio(ratio);
    }

    /** Has another share be sampled from now on. */
    final void ratio(double ratio) {
        share = Sampler.traceIdRatioBased(ratio);
    }

    /** A context that says whether spans from outside decide. */
    static Context in(Context context, boolean trusted) {
        return context.with(TRUSTED, trusted);
    }

    @Override
    public SamplingResult shouldSample(
            Context parent,
            String traceId,
            String name,
            SpanKind kind,
            Attributes attributes,
            List<LinkData> links) {
        final SpanContext above = Span.fromContext(parent).getSpanContext();
        final boolean decided =
                above.isValid() && (!above.isRemote() || Boolean.TRUE.equals(parent.get(TRUSTED)));
        if (decided) {
            return above.isSampled() ? SamplingResult.recordAndSample() : SamplingResult.drop();
        }
        final String drawn = above.isValid() ? randomIds.get() : traceId; // not the client's choice
        return share.shouldSample(parent, drawn, name, kind, attributes, links);
    }

    @Override
    public String getDescription() {
        return "TrustedParent{" + share.getDescription() + "}";
    }
}
