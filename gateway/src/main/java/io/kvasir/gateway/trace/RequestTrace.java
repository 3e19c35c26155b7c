package io.kvasir.gateway.trace;

import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.SpanKind;
import io.opentelemetry.api.trace.StatusCode;
import io.opentelemetry.api.trace.Tracer;
import io.opentelemetry.context.Context;

import java.time.Instant;

/** The trace of one client's request. Any thread. */
public final class RequestTrace {
    /** That of a request which is not traced. */
    public static final RequestTrace NONE = new RequestTrace();

    private final Tracer tracer; // null where nothing is traced
    private final Span span; // likewise
    private final Context context; // likewise, with the span

    private RequestTrace() {
        this.tracer = null;
        this.span = null;
        this.context = null;
    }

    RequestTrace(Tracer tracer, Context parent, Span span) {
        this.tracer = tracer;
        this.span = span;
        this.context = parent.with(span);
    }

    /** Whether anything that is said of the request comes anywhere. */
    public boolean isRecording() {
        return span != null && span.isRecording();
    }

    /**
     * A worker is asked.
     *
     * @param name what for: a part of a split request, or all of it
     * @return ends by itself
     */
    public LegTrace leg(String name) {
        return span == null
                ? LegTrace.NONE
                : new LegTrace(
                        context,
                        tracer.spanBuilder(name)
                                .setParent(context)
                                .setSpanKind(SpanKind.CLIENT)
                                .startSpan());
    }

    /** Something went on between two moments, the second of which is now. */
    public void step(String name, long durationNs) {
        if (isRecording()) {
            final Instant now = Instant.now();
            tracer.spanBuilder(name)
                    .setParent(context)
                    .setStartTimestamp(now.minusNanos(durationNs))
                    .startSpan()
                    .end(now);
        }
    }

    /** Says something of the request. */
    public void put(String attribute, String value) {
        if (isRecording() && value != null) {
            span.setAttribute(attribute, value);
        }
    }

    /** The same. */
    public void put(String attribute, long value) {
        if (isRecording()) {
            span.setAttribute(attribute, value);
        }
    }

    /**
     * It has ended.
     *
     * @param status what it came to
     * @param error the kind of what went wrong; null where nothing did
     */
    public void end(int status, String error) {
        if (span == null) {
            return;
        }
        span.setAttribute("http.response.status_code", status);
        if (error != null) {
            span.setAttribute("error.type", error);
        }
        if (status >= 500) {
            span.setStatus(StatusCode.ERROR);
        }
        span.end();
    }
}
