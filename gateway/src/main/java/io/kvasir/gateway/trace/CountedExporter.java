package io.kvasir.gateway.trace;

import io.opentelemetry.sdk.common.CompletableResultCode;
import io.opentelemetry.sdk.trace.data.SpanData;
import io.opentelemetry.sdk.trace.export.SpanExporter;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.util.Collection;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Consumer;
import java.util.regex.Pattern;

/**
 * Counts what another exporter sends, and logs the first failure of a row of them, and once each
 * reason for which a collector takes some spans of many.
 */
final class CountedExporter implements SpanExporter {
    private static final Logger LOG = LoggerFactory.getLogger(CountedExporter.class);
    private static final Pattern NUMBER = Pattern.compile("[0-9]+"); // another each time
    private static final int MAX_PARTS_SAID = 16; // different ones

    private final SpanExporter exporter;
    private final CollectorAnswers answers;
    private final TraceCounts counts;
    private final Consumer<String> warnings;
    private final Set<String> partsSaid = ConcurrentHashMap.newKeySet();
    private volatile boolean failing;

    /**
     * @param answers of that exporter
     */
    CountedExporter(SpanExporter exporter, CollectorAnswers answers, TraceCounts counts) {
        this(exporter, answers, counts, LOG::warn);
    }

    /** The same with another log. */
    CountedExporter(
            SpanExporter exporter,
            CollectorAnswers answers,
            TraceCounts counts,
            Consumer<String> warnings) {
        this.exporter = exporter;
        this.answers = answers;
        this.counts = counts;
        this.warnings = warnings;
    }

    @Override
    public CompletableResultCode export(Collection<SpanData> spans) {
        final int count = spans.size();
        final CompletableResultCode result = exporter.export(spans);
        return result.whenComplete(
                () -> {
                    if (result.isSuccess()) {
                        taken(count, answers.last());
                        failing = false;
                        return;
                    }
                    counts.failed(count);
                    if (!failing) {
                        warnings.accept(
                                "the collector of traces did not take "
                                        + count
                                        + " spans, nor will others be kept until it does: "
                                        + reason(result.getFailureThrowable()));
                    }
                    failing = true;
                });
    }

    private void taken(int count, PartialSuccess answer) {
        final int rejected = (int) Math.min(count, answer.rejectedSpans());
        counts.exported(count - rejected);
        counts.failed(rejected);
        final String message = answer.message();
        if ((rejected > 0 || !message.isEmpty())
                && partsSaid.size() < MAX_PARTS_SAID
                && partsSaid.add(NUMBER.matcher(message).replaceAll("#"))) {
            warnings.accept(
                    "the collector of traces took "
                            + (count - rejected)
                            + " of "
                            + count
                            + " spans: "
                            + (message.isEmpty() ? "it does not say why" : message));
        }
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
