package io.kvasir.gateway.trace;

import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.StatusCode;
import io.opentelemetry.api.trace.propagation.W3CTraceContextPropagator;
import io.opentelemetry.context.Context;

import org.eclipse.jetty.http.HttpFields;

/** The trace of one worker that is asked. Any thread. */
public final class LegTrace {
    /** That of a request which is not traced. */
    public static final LegTrace NONE = new LegTrace();

    private final Span span; // null where nothing is traced
    private final Context context; // likewise, with the span

    private LegTrace() {
        this.span = null;
        this.context = null;
    }

    LegTrace(Context request, Span span) {
        this.span = span;
        this.context = request.with(span);
    }

    /** Whether anything that is said of it comes anywhere. */
    public boolean isRecording() {
        return span != null && span.isRecording();
    }

    /** Has the worker's spans be below this one; else the client's headers stay. */
    public void putInto(HttpFields.Mutable headers) {
        if (span != null) {
            headers.remove("tracestate"); // put again, as far as it could be read
            W3CTraceContextPropagator.getInstance()
                    .inject(context, headers, HttpFields.Mutable::put);
        }
    }

    /** Says something of it. */
    public LegTrace put(String attribute, String value) {
        if (span != null) {
            span.setAttribute(attribute, value);
        }
        return this;
    }

    /** The same. */
    public LegTrace put(String attribute, long value) {
        if (span != null) {
            span.setAttribute(attribute, value);
        }
        return this;
    }

    /** The same; a number that is none is left out. */
    public LegTrace put(String attribute, double value) {
        if (span != null && !Double.isNaN(value)) {
            span.setAttribute(attribute, value);
        }
        return this;
    }

    /** Something happens to it now. */
    public void event(String name) {
        if (span != null) {
            span.addEvent(name);
        }
    }

    /**
     * It has ended; means nothing more to one that has.
     *
     * @param outcome what came of it
     * @param status of its answer; 0 for none
     * @param failed whether that is an error
     */
    public void end(String outcome, int status, boolean failed) {
        if (span == null) {
            return;
        }
        span.setAttribute("kvasir.outcome", outcome);
        if (status > 0) {
            span.setAttribute("http.response.status_code", status);
        }
        if (failed) {
            span.setAttribute("error.type", outcome);
            span.setStatus(StatusCode.ERROR);
        }
        span.end();
    }
}
