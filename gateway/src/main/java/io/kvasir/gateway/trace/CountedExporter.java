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
 * Counts what another exporter sends, and logs why it fails, again where the reason changes, and
 * once each reason for which a collector takes some spans of many.
 */
final class CountedExporter implements SpanExporter {
    private static final Logger LOG = LoggerFactory.getLogger(CountedExporter.class);
    private static final Pattern NUMBER = Pattern.compile("[0-9]+"); // another each time
    private static final int MAX_PARTS_SAID = 16; // different ones

    private final SpanExporter exporter;
    private final CollectorAnswers answers;
    private final String address;
    private final TraceCounts counts;
    private final Consumer<String> warnings;
    private final Set<String> partsSaid = ConcurrentHashMap.newKeySet();
    private volatile String fault = ""; // that was logged last; empty since some were taken

    /**
     * @param answers of that exporter
     * @param address of the collector, as the log may have it
     */
    CountedExporter(
            SpanExporter exporter, CollectorAnswers answers, String address, TraceCounts counts) {
        this(exporter, answers, address, counts, LOG::warn);
    }

    /** The same with another log. */
    CountedExporter(
            SpanExporter exporter,
            CollectorAnswers answers,
            String address,
            TraceCounts counts,
            Consumer<String> warnings) {
        this.exporter = exporter;
        this.answers = answers;
        this.address = address;
        this.counts = counts;
        this.warnings = warnings;
    }

    @Override
    public CompletableResultCode export(Collection<SpanData> spans) {
        final int count = spans.size();
        final CompletableResultCode result = exporter.export(spans);
        return result.whenComplete(
                () -> {
                    final CollectorAnswers.Answer answer = answers.last();
                    if (result.isSuccess()) {
                        taken(count, answer.part());
                        fault = "";
                    } else {
                        refused(count, answer.fault());
                    }
                });
    }

    private void refused(int count, String why) {
        counts.failed(count);
        final String now = why.isEmpty() ? "it was not asked" : why;
        if (!fault.equals(now)) {
            fault = now;
            warnings.accept(
                    "the collector of traces at "
                            + address
                            + " takes no spans: "
                            + now
                            + "; these "
                            + count
                            + " are lost, and so are those that do not fit beside 2,048 that wait");
        }
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
                    "the collector of traces at "
                            + address
                            + " took "
                            + (count - rejected)
                            + " of "
                            + count
                            + " spans: "
                            + (message.isEmpty() ? "it does not say why" : message));
        }
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
