package io.kvasir.gateway.trace;

import io.opentelemetry.sdk.common.CompletableResultCode;
import io.opentelemetry.sdk.trace.data.SpanData;
import io.opentelemetry.sdk.trace.export.SpanExporter;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.util.Collection;

/** Counts what another exporter sends, and logs the first failure of a row of them. */
final class CountedExporter implements SpanExporter {
    private static final Logger LOG = LoggerFactory.getLogger(CountedExporter.class);

    private final SpanExporter exporter;
    private final TraceCounts counts;
    private volatile boolean failing;

    CountedExporter(SpanExporter exporter, TraceCounts counts) {
        this.exporter = exporter;
        this.counts = counts;
    }

    @Override
    public CompletableResultCode export(Collection<SpanData> spans) {
        final int count = spans.size();
        final CompletableResultCode result = exporter.export(spans);
        return result.whenComplete(
                () -> {
                    if (result.isSuccess()) {
                        counts.exported(count);
                        failing = false;
                        return;
                    }
                    counts.failed(count);
                    if (!failing) {
                        LOG.warn(
                                "the collector of traces did not take {} spans, nor will others be"
                                        + " kept until it does: {}",
                                count,
                                reason(result.getFailureThrowable()));
                    }
                    failing = true;
                });
    }

    private static String reason(Throwable failure) {
        return failure == null || failure.getCause() == null
                ? "it answered with an error"
                : failure.getCause().toString();
    }

    @Override
    public CompletableResultCode flush() {
        return exporter.flush();
    }

    @Override
    public CompletableResultCode shutdown() {
        return exporter.shutdown();
    }
}
