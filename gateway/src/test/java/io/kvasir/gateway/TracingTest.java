package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.WorkerConfig;
import io.kvasir.gateway.testing.FakeCollector;
import io.kvasir.gateway.testing.FakeEngine;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.router.policy.RoutingMode;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.FreePorts;
import io.opentelemetry.proto.trace.v1.Span;
import io.opentelemetry.proto.trace.v1.Status;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.net.URI;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;

/** The traces of requests, as a collector gets them. */
@Order(1) // takes long: begins first, beside the others
class TracingTest {
    private static final String TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
    private static final String ABOVE = "00f067aa0ba902b7";
    private static final String SAMPLED = "00-" + TRACE + "-" + ABOVE + "-01";
    private static final String UNSAMPLED = "00-" + TRACE + "-" + ABOVE + "-00";
    private static final String ASK = "{\"model\":\"m\",\"prompt\":[1,2,3]}";
    private static final String ANSWER =
            "{\"choices\":[{\"text\":\"ab\"}],\"usage\":{\"prompt_tokens\":3,"
                    + "\"completion_tokens\":2,\"prompt_tokens_details\":{\"cached_tokens\":1}}}";
    private static final String PREFILLED =
            "{\"choices\":[{\"text\":\"a\"}],\"kv_transfer_params\":{\"do_remote_prefill\":true,"
                    + "\"remote_block_ids\":[[9]],\"remote_engine_id\":\"e\",\"remote_host\":\"h\","
                    + "\"remote_port\":1,\"remote_request_id\":\"r\"},"
                    + "\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":1}}";

    private FakeCollector collector = new FakeCollector();
    private final FakeEngine first = new FakeEngine(call -> call.json(200, ANSWER));
    private final FakeEngine second = new FakeEngine(call -> call.json(200, ANSWER));
    private GatewayServer gateway;

    private GatewayConfig.Builder config() {
        return Gateways.config()
                .set(GatewaySettings.OTLP_ENDPOINT, URI.create(collector.url() + "/v1/traces"));
    }

    private void start(GatewayConfig.Builder config, String... workers) throws Exception {
        for (String worker : workers) {
            config.worker(WorkerConfig.parse(worker));
        }
        gateway = Gateways.started(config);
    }

    @AfterEach
    void stop() {
        if (gateway != null) {
            gateway.close();
        }
        first.close();
        second.close();
        collector.close();
    }

    private HttpResponse<String> ask(String... headers) throws Exception {
        return Gateways.post(gateway, "/v1/completions", ASK, headers);
    }

    /** That an engine was sent this span as the one above its own. */
    private static void assertSent(Span span, FakeEngine engine) {
        final String sent = engine.calls.getFirst().headers.get("traceparent");
        final String ids =
                "00-"
                        + FakeCollector.hex(span.getTraceId())
                        + "-"
                        + FakeCollector.hex(span.getSpanId())
                        + "-";
        assertTrue(sent.startsWith(ids), sent);
        assertEquals(1, Integer.parseInt(sent.substring(ids.length()), 16) & 1, "sampled");
    }

    private static void assertBelow(Span above, Span span) {
        assertEquals(above.getTraceId(), span.getTraceId());
        assertEquals(above.getSpanId(), span.getParentSpanId());
        assertTrue(span.getStartTimeUnixNano() <= span.getEndTimeUnixNano(), span.toString());
    }

    @Test
    void aRequestIsASpanWithOneBelowItThatItsWorkerGoesOn() throws Exception {
        start(config(), first.url() + ",name=w");
        ask("traceparent", SAMPLED, "tracestate", "vendor=1", "x-request-id", "r-1");
        final Map<String, List<Span>> spans = collector.await(3);
        final Span request = spans.get("POST /v1/completions").getFirst();
        assertEquals(TRACE, FakeCollector.hex(request.getTraceId()));
        assertEquals(ABOVE, FakeCollector.hex(request.getParentSpanId()));
        assertEquals(Span.SpanKind.SPAN_KIND_SERVER, request.getKind());
        assertEquals(
                Map.of(
                        "http.request.method", "POST",
                        "http.route", "/v1/completions",
                        "http.response.status_code", "200",
                        "kvasir.request_id", "r-1",
                        "kvasir.mode", "kv",
                        "gen_ai.request.model", "m",
                        "gen_ai.usage.input_tokens", "3",
                        "gen_ai.usage.output_tokens", "2"),
                without(request, "kvasir.prompt_wait_us"));
        assertBelow(request, spans.get("tokenize").getFirst());
        final Span leg = spans.get("generate").getFirst();
        assertBelow(request, leg);
        assertEquals(Span.SpanKind.SPAN_KIND_CLIENT, leg.getKind());
        assertEquals(
                Map.ofEntries(
                        Map.entry("kvasir.worker", "w"),
                        Map.entry("kvasir.dp_rank", "0"),
                        Map.entry("kvasir.attempt", "1"),
                        Map.entry("kvasir.mode", "kv"),
                        Map.entry("kvasir.prompt_tokens", "3"),
                        Map.entry("kvasir.overlap_blocks", "0"),
                        Map.entry("kvasir.predicted_cached_tokens", "0"),
                        Map.entry("kvasir.engine_cached_tokens", "1"),
                        Map.entry("kvasir.active_requests", "0"),
                        Map.entry("kvasir.index_state", "degraded"),
                        Map.entry("kvasir.candidates", "1"),
                        Map.entry("kvasir.regret", "0.0"),
                        Map.entry("kvasir.outcome", "ok"),
                        Map.entry("http.response.status_code", "200")),
                without(leg, "kvasir.cost", "kvasir.settings"));
        assertSent(leg, first);
        assertEquals("vendor=1", first.calls.getFirst().headers.get("tracestate"));
        assertEquals(
                "kvasir",
                FakeCollector.attributes(
                                collector.batches.getFirst().getResource().getAttributesList())
                        .get("service.name"));
    }

    @ParameterizedTest
    @CsvSource({
        ", kvasir-a",
        "OTEL_SERVICE_NAME, router",
    })
    void theGatewayIsKnownByWhatTheEnvironmentSaysOfIt(String nameVariable, String name)
            throws Exception {
        final Map<String, String> environment = new TreeMap<>();
        environment.put(
                "OTEL_RESOURCE_ATTRIBUTES",
                "service.name=kvasir-a,k8s.pod.name=gw-0, zone = a%2Cb c+d,,");
        if (nameVariable != null) {
            environment.put(nameVariable, "router");
        }
        start(config().environment(environment), first.url() + ",name=w");
        ask();
        collector.await(3);
        final Map<String, String> resource =
                FakeCollector.attributes(
                        collector.batches.getFirst().getResource().getAttributesList());
        assertEquals(name, resource.get("service.name"));
        assertEquals("gw-0", resource.get("k8s.pod.name"));
        assertEquals("a,b c+d", resource.get("zone"));
        assertEquals("java", resource.get("telemetry.sdk.language"));
    }

    /** The attributes of a span but for some, which are there and say something. */
    private static Map<String, String> without(Span span, String... names) {
        final Map<String, String> all =
                new TreeMap<>(FakeCollector.attributes(span.getAttributesList()));
        for (String name : names) {
            assertFalse(all.remove(name).isEmpty(), name);
        }
        return all;
    }

    @Test
    void aDecisionIsInItsSpanWithWhatItWasChosenBeside() throws Exception {
        start(
                config().set(RouterSettings.MODE, RoutingMode.ROUND_ROBIN),
                first.url() + ",name=a",
                second.url() + ",name=b");
        ask();
        ask();
        final List<Span> legs = collector.await(6).get("generate");
        final Set<String> pairs = new TreeSet<>();
        for (Span leg : legs) {
            final Map<String, String> said = FakeCollector.attributes(leg.getAttributesList());
            pairs.add(said.get("kvasir.worker") + " before " + said.get("kvasir.runner_up"));
            assertEquals("2", said.get("kvasir.candidates"));
            assertEquals(RoutingMode.ROUND_ROBIN.spelling(), said.get("kvasir.mode"));
            assertEquals(
                    Double.parseDouble(said.get("kvasir.regret")),
                    Math.max(
                            0,
                            Double.parseDouble(said.get("kvasir.cost"))
                                    - Double.parseDouble(said.get("kvasir.runner_up_cost"))));
        }
        assertEquals(Set.of("a before b/0", "b before a/0"), pairs);
    }

    @Test
    void thePageOfTracesNamesEveryAttributeOfOurs() throws Exception {
        first.script = call -> call.json(200, PREFILLED);
        second.script = FakeEngine.chatStream(3, 0);
        start(config(), first.url() + ",name=p,role=prefill", second.url() + ",name=d,role=decode");
        Gateways.post(
                gateway,
                "/v1/chat/completions",
                "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],"
                        + "\"stream\":true}");
        final String page =
                Files.readString(
                        Path.of(System.getProperty("kvasir.root"), "docs/operations/tracing.md"));
        for (List<Span> spans : collector.await(5).values()) {
            for (Span span : spans) {
                for (String name : FakeCollector.attributes(span.getAttributesList()).keySet()) {
                    assertTrue(page.contains('`' + name + '`'), name);
                }
            }
        }
    }

    @Test
    void bothLegsAndTheHandoffAreInOneTrace() throws Exception {
        first.script = call -> call.json(200, PREFILLED);
        second.script = FakeEngine.chatStream(3, 0);
        start(config(), first.url() + ",name=p,role=prefill", second.url() + ",name=d,role=decode");
        Gateways.post(
                gateway,
                "/v1/chat/completions",
                "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],"
                        + "\"stream\":true}");
        final Map<String, List<Span>> spans = collector.await(5);
        final Span request = spans.get("POST /v1/chat/completions").getFirst();
        final Span prefill = spans.get("prefill").getFirst();
        final Span handoff = spans.get("handoff").getFirst();
        final Span decode = spans.get("decode").getFirst();
        for (Span each : List.of(prefill, handoff, decode)) {
            assertBelow(request, each);
        }
        assertEquals(
                "p", FakeCollector.attributes(prefill.getAttributesList()).get("kvasir.worker"));
        assertEquals(
                "d", FakeCollector.attributes(decode.getAttributesList()).get("kvasir.worker"));
        assertSent(prefill, first);
        assertSent(decode, second);
        assertEquals("first_token", decode.getEvents(0).getName());
        assertTrue(prefill.getEndTimeUnixNano() <= decode.getEndTimeUnixNano());
    }

    @Test
    void aPrefillSaysWhatItsEngineTookFromItsCache() throws Exception {
        final String plain = "\"prompt_tokens\":3";
        first.script =
                call ->
                        call.json(
                                200,
                                PREFILLED.replace(
                                        plain,
                                        plain
                                                + ",\"prompt_tokens_details\":"
                                                + "{\"cached_tokens\":2}"));
        start(config(), first.url() + ",name=p,role=prefill", second.url() + ",name=d,role=decode");
        assertEquals(200, ask().statusCode());
        final Span prefill = collector.await(5).get("prefill").getFirst();
        final Map<String, String> said = FakeCollector.attributes(prefill.getAttributesList());
        assertEquals("2", said.get("kvasir.engine_cached_tokens"));
        assertEquals("ok", said.get("kvasir.outcome"));
    }

    @Test
    void aWorkerThatFailsIsASpanOfItsOwn() throws Exception {
        first.script = call -> call.json(500, "{}");
        second.script = call -> call.json(500, "{}");
        start(
                config().set(GatewaySettings.RETRIES, 1),
                first.url() + ",name=a",
                second.url() + ",name=b");
        assertEquals(500, ask().statusCode());
        final Map<String, List<Span>> spans = collector.await(4);
        final List<Span> legs = spans.get("generate");
        assertEquals(2, legs.size());
        for (Span leg : legs) {
            assertBelow(spans.get("POST /v1/completions").getFirst(), leg);
        }
        assertEquals(Status.StatusCode.STATUS_CODE_ERROR, legs.getFirst().getStatus().getCode());
        assertEquals(
                "2",
                FakeCollector.attributes(legs.getLast().getAttributesList()).get("kvasir.attempt"));
        final Span request = spans.get("POST /v1/completions").getFirst();
        assertEquals(Status.StatusCode.STATUS_CODE_ERROR, request.getStatus().getCode());
    }

    @Test
    void aRequestThatIsRefusedIsASpanWithoutAnError() throws Exception {
        start(config(), first.url() + ",name=w");
        assertEquals(400, Gateways.post(gateway, "/v1/completions", "{").statusCode());
        final Span request = collector.await(1).get("POST /v1/completions").getFirst();
        assertEquals(
                "400",
                FakeCollector.attributes(request.getAttributesList())
                        .get("http.response.status_code"));
        assertEquals(Status.StatusCode.STATUS_CODE_UNSET, request.getStatus().getCode());
    }

    @Test
    void aClientThatLeavesEndsAllSpans() throws Exception {
        first.script = call -> call.awaitClientGone(60);
        start(config(), first.url() + ",name=w");
        final CompletableFuture<?> asked = Gateways.postAsync(gateway, "/v1/completions", ASK);
        Eventually.holds("it is asked", () -> first.inFlight.get() == 1);
        asked.cancel(true);
        final Map<String, List<Span>> spans = collector.await(3);
        final Map<String, String> leg =
                FakeCollector.attributes(spans.get("generate").getFirst().getAttributesList());
        assertEquals("client_left", leg.get("kvasir.outcome"));
        final Span request = spans.get("POST /v1/completions").getFirst();
        assertEquals(
                "client_left",
                FakeCollector.attributes(request.getAttributesList()).get("error.type"));
        assertEquals(Status.StatusCode.STATUS_CODE_UNSET, request.getStatus().getCode());
    }

    @Test
    void onlyTrustedClientsDecideWhetherTheyAreSampled() throws Exception {
        start(
                config().set(GatewaySettings.TRUSTED_NETWORKS, List.of("192.0.2.1"))
                        .set(GatewaySettings.TRACE_SAMPLE_RATIO, 0.0),
                first.url() + ",name=w");
        ask("traceparent", SAMPLED);
        final String sent = first.calls.getFirst().headers.get("traceparent");
        assertTrue(sent.startsWith("00-" + TRACE + "-") && sent.endsWith("-00"), sent);
        assertNotEquals(UNSAMPLED, sent);
        gateway.close();
        start(config().set(GatewaySettings.TRACE_SAMPLE_RATIO, 0.0), first.url() + ",name=w");
        ask("traceparent", UNSAMPLED);
        ask();
        ask("traceparent", SAMPLED);
        assertEquals(3, collector.await(3).values().stream().mapToInt(List::size).sum());
        assertEquals(TRACE, FakeCollector.hex(collector.spans.getFirst().getTraceId()));
    }

    @Test
    void headersThatCannotBeReadBeginATrace() throws Exception {
        start(config(), first.url() + ",name=w");
        ask("traceparent", "00-xyz", "tracestate", "a=1");
        final Span request = collector.await(3).get("POST /v1/completions").getFirst();
        assertEquals(0, request.getParentSpanId().size());
        assertEquals(null, first.calls.getFirst().headers.get("tracestate"));
        assertTrue(
                first.calls
                        .getFirst()
                        .headers
                        .get("traceparent")
                        .startsWith("00-" + FakeCollector.hex(request.getTraceId())));
    }

    @Test
    void aCollectorThatRefusesOrIsNotThereCostsNoRequest() throws Exception {
        collector.close();
        collector = new FakeCollector(FreePorts.run(1)); // bound again below
        collector.status = 400;
        start(config(), first.url() + ",name=w");
        assertEquals(200, ask().statusCode());
        awaitSpans("failed", 3);
        collector.status = 200;
        assertEquals(200, ask().statusCode());
        awaitSpans("exported", 3);
        final int port = collector.port();
        collector.close();
        assertEquals(200, ask().statusCode());
        awaitSpans("ended", 9);
        collector = new FakeCollector(port); // a gateway that closes waits seconds for one
    }

    private void awaitSpans(String result, int count) throws Exception {
        final String line = "kvasir_trace_spans_total{result=\"" + result + "\"} " + count + ".0";
        Eventually.holds(
                line,
                () -> {
                    try {
                        return Gateways.admin(gateway, "/metrics").body().contains(line);
                    } catch (Exception e) {
                        throw new IllegalStateException(e);
                    }
                });
    }

    @Test
    void whatIsLeftIsSentBeforeTheGatewayEnds() throws Exception {
        start(config(), first.url() + ",name=w");
        for (int i = 0; i < 40; i++) {
            ask();
        }
        gateway.close();
        assertEquals(120, collector.spans.size());
    }
}
