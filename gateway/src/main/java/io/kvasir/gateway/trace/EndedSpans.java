package io.kvasir.gateway.trace;

import io.opentelemetry.context.Context;
import io.opentelemetry.sdk.trace.ReadWriteSpan;
import io.opentelemetry.sdk.trace.ReadableSpan;
import io.opentelemetry.sdk.trace.SpanProcessor;

/** Counts the sampled spans that end. Thread-safe. */
record EndedSpans(TraceCounts counts) implements SpanProcessor {
    @Override
    public boolean isStartRequired() {
        return false;
    }

    @Override
    public void onStart(Context parent, ReadWriteSpan span) {}

    @Override
    public boolean isEndRequired() {
        return true;
    }

    @Override
    public void onEnd(ReadableSpan span) {
        counts.hasEnded();
    }
}
