package io.kvasir.gateway.trace;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.gateway.testing.FakeCollector;
import io.opentelemetry.common.ComponentLoader;
import io.opentelemetry.exporter.otlp.http.trace.OtlpHttpSpanExporter;
import io.opentelemetry.proto.collector.trace.v1.ExportTracePartialSuccess;
import io.opentelemetry.proto.collector.trace.v1.ExportTraceServiceResponse;
import io.opentelemetry.sdk.trace.SdkTracerProvider;
import io.opentelemetry.sdk.trace.export.SimpleSpanProcessor;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;

class CountedExporterTest {
    private final FakeCollector collector = new FakeCollector();
    private final TraceCounts counts = new TraceCounts();
    private final List<String> warnings = new CopyOnWriteArrayList<>();
    private final CollectorAnswers answers =
            new CollectorAnswers(
                    ComponentLoader.forClassLoader(OtlpHttpSpanExporter.class.getClassLoader()));
    private final SdkTracerProvider provider =
            SdkTracerProvider.builder()
                    .addSpanProcessor(
                            SimpleSpanProcessor.create(
                                    new CountedExporter(
                                            OtlpHttpSpanExporter.builder()
                                                    .setEndpoint(collector.url() + "/v1/traces")
                                                    .setRetryPolicy(null)
                                                    .setComponentLoader(answers)
                                                    .build(),
                                            answers,
                                            "http://c:4318",
                                            counts,
                                            warnings::add)))
                    .build();

    @AfterEach
    void close() {
        provider.close();
        collector.close();
    }

    private void send() {
        provider.get("test").spanBuilder("a").startSpan().end();
        assertTrue(provider.forceFlush().join(1, TimeUnit.MINUTES).isDone());
    }

    private static byte[] partial(long rejected, String message) {
        return ExportTraceServiceResponse.newBuilder()
                .setPartialSuccess(
                        ExportTracePartialSuccess.newBuilder()
                                .setRejectedSpans(rejected)
                                .setErrorMessage(message))
                .build()
                .toByteArray();
    }

    @Test
    void whatTheCollectorRejectsOfManySpansHasFailedAndIsSaidOnce() {
        send();
        assertEquals(1, counts.exported());
        for (int i = 0; i < 3; i++) {
            collector.answer = partial(1, "quota of " + i + " spans");
            send();
        }
        assertEquals(3, counts.failed());
        assertEquals(1, counts.exported());
        assertEquals(1, warnings.size(), warnings::toString);
        assertTrue(warnings.getFirst().contains("took 0 of 1 spans: quota of 0 spans"));
        collector.answer = partial(0, "deprecated");
        send();
        assertEquals(2, counts.exported());
        assertTrue(warnings.getLast().contains("took 1 of 1 spans: deprecated"));
        collector.answer = partial(Long.MAX_VALUE, "");
        send();
        assertEquals(4, counts.failed());
        assertTrue(warnings.getLast().contains("took 0 of 1 spans"));
        assertEquals(3, warnings.size(), warnings::toString);
    }

    @Test
    void whyACollectorTakesNothingIsSaidInWordsAndAgainWhenTheReasonChanges() {
        collector.status = 401;
        send();
        send();
        collector.status = 503;
        send();
        collector.status = 200;
        send();
        collector.status = 503;
        send();
        collector.close();
        send();
        send();
        assertEquals(6, counts.failed());
        assertEquals(4, warnings.size(), warnings::toString);
        final String begin = "the collector of traces at http://c:4318 takes no spans: ";
        final List<String> reasons =
                List.of(
                        "it answered 401",
                        "it answered 503",
                        "it answered 503",
                        "the connection was refused");
        for (int i = 0; i < reasons.size(); i++) {
            assertTrue(warnings.get(i).startsWith(begin + reasons.get(i)), warnings::toString);
        }
        assertTrue(warnings.getFirst().contains("2,048"), warnings::toString);
    }

    @Test
    void anAnswerThatIsNoMessageOfOtlpSaysNothing() {
        final byte[] whole = partial(1, "quota");
        for (int length = 1; length < whole.length; length++) {
            final byte[] cut = Arrays.copyOf(whole, length);
            assertEquals(PartialSuccess.WHOLE, PartialSuccess.read(cut));
        }
        for (String text : List.of("{}", "OK", "<html>", "\n\u007f", "\u000b", "\b\u0001\u0012")) {
            final byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
            assertEquals(PartialSuccess.WHOLE, PartialSuccess.read(bytes), text);
        }
        assertEquals(PartialSuccess.WHOLE, PartialSuccess.read(partial(-1, "")));
        collector.answer = new byte[] {'O', 'K'};
        send();
        assertEquals(1, counts.exported());
        assertEquals(List.of(), warnings);
    }
}
