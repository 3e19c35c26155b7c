package io.kvasir.gateway.testing;

import com.sun.net.httpserver.HttpServer;
import com.sun.net.httpserver.HttpsConfigurator;
import com.sun.net.httpserver.HttpsParameters;
import com.sun.net.httpserver.HttpsServer;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.testsupport.Eventually;
import io.opentelemetry.proto.collector.trace.v1.ExportTraceServiceRequest;
import io.opentelemetry.proto.collector.trace.v1.ExportTraceServiceResponse;
import io.opentelemetry.proto.common.v1.AnyValue;
import io.opentelemetry.proto.common.v1.KeyValue;
import io.opentelemetry.proto.trace.v1.ResourceSpans;
import io.opentelemetry.proto.trace.v1.Span;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.stream.Collectors;

import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLParameters;

/** Takes traces as an OpenTelemetry collector does: OTLP, protobuf over HTTP. */
public final class FakeCollector implements AutoCloseable {
    private final HttpServer server;
    public final List<Span> spans = new CopyOnWriteArrayList<>();
    public final List<ResourceSpans> batches = new CopyOnWriteArrayList<>();
    public final List<String> keys = new CopyOnWriteArrayList<>(); // x-api-key of each request
    public volatile int status = 200;
    public volatile byte[] answer = ExportTraceServiceResponse.getDefaultInstance().toByteArray();

    public FakeCollector() {
        this(0);
    }

    /** One on a given port. */
    public FakeCollector(int port) {
        this(
                () ->
                        HttpServer.create(
                                new InetSocketAddress(InetAddress.getLoopbackAddress(), port), 0));
    }

    /** One that speaks TLS alone, to clients with a certificate that it trusts. */
    public FakeCollector(SSLContext tls) {
        this(
                () -> {
                    final HttpsServer made =
                            HttpsServer.create(
                                    new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
                    made.setHttpsConfigurator(
                            new HttpsConfigurator(tls) {
                                @Override
                                public void configure(HttpsParameters connection) {
                                    final SSLParameters own = tls.getDefaultSSLParameters();
                                    own.setNeedClientAuth(true);
                                    connection.setSSLParameters(own);
                                }
                            });
                    return made;
                });
    }

    private interface Opening {
        HttpServer open() throws IOException;
    }

    private FakeCollector(Opening opening) {
        try {
            server = opening.open();
        } catch (IOException e) {
            throw new AssertionError(e);
        }
        server.createContext(
                "/v1/traces",
                exchange -> {
                    final ExportTraceServiceRequest request =
                            ExportTraceServiceRequest.parseFrom(exchange.getRequestBody());
                    keys.add(String.valueOf(exchange.getRequestHeaders().getFirst("x-api-key")));
                    final byte[] sent = answer;
                    if (status == 200) {
                        for (ResourceSpans batch : request.getResourceSpansList()) {
                            batches.add(batch);
                            batch.getScopeSpansList()
                                    .forEach(scope -> spans.addAll(scope.getSpansList()));
                        }
                    }
                    exchange.getResponseHeaders().add("content-type", "application/x-protobuf");
                    exchange.sendResponseHeaders(status, sent.length == 0 ? -1 : sent.length);
                    exchange.getResponseBody().write(sent);
                    exchange.close();
                });
        server.start();
    }

    /** Has a gateway send its traces here. */
    public GatewayConfig.Builder asked(GatewayConfig.Builder config) {
        return config.set(GatewaySettings.OTLP_ENDPOINT, URI.create(url() + "/v1/traces"));
    }

    public int port() {
        return server.getAddress().getPort();
    }

    public String url() {
        return "http://127.0.0.1:" + port();
    }

    /** Waits for so many spans, and returns them by their names. */
    public Map<String, List<Span>> await(int count) throws InterruptedException {
        Eventually.holds(count + " spans, so far " + names(), () -> spans.size() >= count);
        return spans.stream().collect(Collectors.groupingBy(Span::getName));
    }

    private List<String> names() {
        return spans.stream().map(Span::getName).toList();
    }

    /** As {@code traceparent} writes ids. */
    public static String hex(com.google.protobuf.ByteString id) {
        return HexFormat.of().formatHex(id.toByteArray());
    }

    /** The attributes of a span as texts. */
    public static Map<String, String> attributes(List<KeyValue> attributes) {
        return attributes.stream()
                .collect(Collectors.toMap(KeyValue::getKey, each -> text(each.getValue())));
    }

    private static String text(AnyValue value) {
        return value.hasIntValue()
                ? Long.toString(value.getIntValue())
                : value.hasDoubleValue()
                        ? Double.toString(value.getDoubleValue())
                        : value.getStringValue();
    }

    @Override
    public void close() {
        server.stop(0);
    }
}
