package io.kvasir.gateway.trace;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.ResourceAttributes;
import io.kvasir.router.settings.Settings;
import io.opentelemetry.api.trace.SpanKind;
import io.opentelemetry.api.trace.Tracer;
import io.opentelemetry.api.trace.propagation.W3CTraceContextPropagator;
import io.opentelemetry.common.ComponentLoader;
import io.opentelemetry.context.Context;
import io.opentelemetry.context.propagation.TextMapGetter;
import io.opentelemetry.exporter.otlp.http.trace.OtlpHttpSpanExporter;
import io.opentelemetry.exporter.otlp.http.trace.OtlpHttpSpanExporterBuilder;
import io.opentelemetry.sdk.resources.Resource;
import io.opentelemetry.sdk.resources.ResourceBuilder;
import io.opentelemetry.sdk.trace.IdGenerator;
import io.opentelemetry.sdk.trace.SdkTracerProvider;
import io.opentelemetry.sdk.trace.export.BatchSpanProcessor;

import org.eclipse.jetty.http.HttpFields;

import java.net.URI;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;

/**
 * Makes traces of requests and sends them to an OpenTelemetry collector, OTLP over HTTP, from a
 * thread of its own. Spans that do not fit into its queue are dropped: no request waits. Does
 * nothing where no collector is set. Thread-safe.
 */
public final class Tracing implements AutoCloseable {
    private static final String SCOPE = "io.kvasir.gateway";
    private static final String SERVICE_NAME = "service.name";
    private static final Duration SEND_EVERY = Duration.ofSeconds(1);
    private static final Duration LAST_SEND = Duration.ofSeconds(5);

    private final GatewayConfig config;
    private final TraceCounts counts = new TraceCounts();
    private final TrustedParentSampler sampler;
    private volatile SdkTracerProvider provider; // null where nothing is traced
    private volatile Tracer tracer; // likewise

    /** Makes what is configured; nothing is traced before {@link #start}. */
    public Tracing(GatewayConfig config) {
        this.config = config;
        sampler =
                new TrustedParentSampler(
                        config.get(GatewaySettings.TRACE_SAMPLE_RATIO),
                        IdGenerator.random()::generateTraceId);
    }

    /** The configuration has other values. */
    public void settingsChanged() {
        sampler.ratio(config.get(GatewaySettings.TRACE_SAMPLE_RATIO));
    }

    /**
     * Starts to trace, where a collector is set.
     *
     * @throws io.kvasir.gateway.config.GatewayException as {@link CollectorAccess#check}
     * @throws IllegalArgumentException likewise
     */
    public void start() {
        final URI endpoint = config.get(GatewaySettings.OTLP_ENDPOINT);
        if (endpoint != null) {
            provider = provider(endpoint);
            tracer = provider.get(SCOPE);
        }
    }

    private SdkTracerProvider provider(URI endpoint) {
        final CollectorAnswers answers =
                new CollectorAnswers(
                        ComponentLoader.forClassLoader(
                                OtlpHttpSpanExporter.class.getClassLoader()));
        final OtlpHttpSpanExporterBuilder exporter =
                OtlpHttpSpanExporter.builder()
                        .setEndpoint(endpoint.toString())
                        .setComponentLoader(answers);
        CollectorAccess.apply(config, exporter);
        return SdkTracerProvider.builder()
                .setResource(resource())
                .setSampler(sampler)
                .addSpanProcessor(new EndedSpans(counts))
                .addSpanProcessor(
                        BatchSpanProcessor.builder(
                                        new CountedExporter(
                                                exporter.build(),
                                                answers,
                                                withoutUser(endpoint),
                                                counts))
                                .setScheduleDelay(SEND_EVERY)
                                .build())
                .build();
    }

    private Resource resource() {
        final ResourceBuilder resource =
                Resource.getDefault().toBuilder()
                        .put(SERVICE_NAME, config.get(GatewaySettings.TRACE_SERVICE_NAME));
        final ResourceAttributes own = config.get(GatewaySettings.TRACE_RESOURCE_ATTRIBUTES);
        if (own != null) {
            final boolean isNamed =
                    config.settings().source(GatewaySettings.TRACE_SERVICE_NAME)
                            != Settings.Source.DEFAULT;
            own.values()
                    .forEach(
                            (name, value) -> {
                                if (!(isNamed && name.equals(SERVICE_NAME))) {
                                    resource.put(name, value);
                                }
                            });
        }
        return resource.build();
    }

    private static String withoutUser(URI endpoint) {
        return endpoint.getRawUserInfo() == null
                ? endpoint.toString()
                : endpoint.toString().replace(endpoint.getRawUserInfo() + "@", "");
    }

    /** Whether requests are traced. */
    public boolean isOn() {
        return tracer != null;
    }

    /** Spans so far. */
    public TraceCounts counts() {
        return counts;
    }

    /**
     * Begins the trace of a client's request, or continues with the client's. Only while {@link
     * #isOn}.
     *
     * @param headers the client's
     * @param trusted whether the client decides if the request is sampled
     */
    public RequestTrace begin(String method, String path, HttpFields headers, boolean trusted) {
        final Tracer spans = tracer;
        final Context parent =
                W3CTraceContextPropagator.getInstance()
                        .extract(TrustedParentSampler.in(Context.root(), trusted), headers, GETTER);
        return new RequestTrace(
                spans,
                parent,
                spans.spanBuilder(method + " " + path)
                        .setParent(parent)
                        .setSpanKind(SpanKind.SERVER)
                        .setAttribute("http.request.method", method)
                        .setAttribute("http.route", path)
                        .startSpan());
    }

    private static final TextMapGetter<HttpFields> GETTER =
            new TextMapGetter<>() {
                @Override
                public String get(HttpFields headers, String name) {
                    final List<String> values =
                            headers == null ? List.of() : headers.getValuesList(name);
                    return values.isEmpty() ? null : String.join(",", values);
                }
            };

    /** Sends what is left, for 5 s at most. */
    @Override
    public void close() {
        final SdkTracerProvider running = provider;
        if (running != null) {
            provider = null;
            running.shutdown().join(LAST_SEND.toMillis(), TimeUnit.MILLISECONDS);
        }
    }
}
