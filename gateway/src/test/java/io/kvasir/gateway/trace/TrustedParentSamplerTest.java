package io.kvasir.gateway.trace;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.opentelemetry.api.common.Attributes;
import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.SpanContext;
import io.opentelemetry.api.trace.SpanKind;
import io.opentelemetry.api.trace.TraceFlags;
import io.opentelemetry.api.trace.TraceState;
import io.opentelemetry.context.Context;
import io.opentelemetry.sdk.trace.samplers.SamplingDecision;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.util.List;

class TrustedParentSamplerTest {
    private static final String LOW = "4bf92f3577b34da60000000000000001";
    private static final String HIGH = "4bf92f3577b34da67ffffffffffffffe";

    private static Context below(String traceId, boolean sampled, boolean trusted) {
        final SpanContext above =
                SpanContext.createFromRemoteParent(
                        traceId,
                        "00f067aa0ba902b7",
                        sampled ? TraceFlags.getSampled() : TraceFlags.getDefault(),
                        TraceState.getDefault());
        return TrustedParentSampler.in(Context.root().with(Span.wrap(above)), trusted);
    }

    private static boolean samples(TrustedParentSampler sampler, Context parent, String traceId) {
        return sampler.shouldSample(
                                parent,
                                traceId,
                                "POST /v1/completions",
                                SpanKind.SERVER,
                                Attributes.empty(),
                                List.of())
                        .getDecision()
                == SamplingDecision.RECORD_AND_SAMPLE;
    }

    @ParameterizedTest
    @CsvSource({
        LOW + ", false, " + LOW + ", true",
        LOW + ", true, " + HIGH + ", false",
        HIGH + ", true, " + LOW + ", true",
        HIGH + ", false, " + HIGH + ", false"
    })
    void theTraceOfAClientThatIsNotTrustedDecidesNothing(
            String traceId, boolean flagged, String drawn, boolean sampled) {
        final TrustedParentSampler sampler = new TrustedParentSampler(0.001, () -> drawn);
        assertEquals(sampled, samples(sampler, below(traceId, flagged, false), traceId));
    }

    @ParameterizedTest
    @CsvSource({LOW + ", false", HIGH + ", true"})
    void aTrustedClientDecidesByItsFlag(String traceId, boolean flagged) {
        final TrustedParentSampler sampler = new TrustedParentSampler(0.001, () -> LOW);
        assertEquals(flagged, samples(sampler, below(traceId, flagged, true), traceId));
    }

    @ParameterizedTest
    @CsvSource({LOW + ", true", HIGH + ", false"})
    void aTraceThatBeginsHereIsSampledByItsOwnId(String traceId, boolean sampled) {
        final TrustedParentSampler sampler = new TrustedParentSampler(0.001, () -> HIGH);
        assertEquals(sampled, samples(sampler, Context.root(), traceId));
    }
}
