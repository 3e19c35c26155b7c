package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.abort;

import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.WorkerConfig;
import io.kvasir.gateway.openai.Json;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.gateway.testing.SimFleet;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.sim.config.SimHandoff;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.OtelCollector;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The traces of requests of simulated engines, as a real collector writes them. */
@Tag("integration") // starts a collector, where one is at hand
class OtelCollectorTest {
    private static final Pattern ROW =
            Pattern.compile("(?m)^\\| (`[^|]+) \\| [^|]+ \\| [^|]+ \\|$");
    private static final Pattern NAME = Pattern.compile("`([a-z_.]+)`");
    private static final Set<String> DOUBLES =
            Set.of("kvasir.cost", "kvasir.runner_up_cost", "kvasir.regret");
    private static final Set<String> STRINGS =
            Set.of(
                    "http.request.method",
                    "http.route",
                    "gen_ai.request.model",
                    "kvasir.request_id",
                    "kvasir.mode",
                    "kvasir.worker",
                    "kvasir.index_state",
                    "kvasir.runner_up",
                    "kvasir.settings",
                    "kvasir.outcome",
                    "error.type");

    private static final String ASK =
            "{\"model\":\"m\",\"stream\":true,\"max_tokens\":4,\"prompt\":["
                    + "7,".repeat(255)
                    + "7]}";
    private static final String REQUEST = "request";

    /** Spans that wait at most. */
    private static final int KEPT = 2_048;

    /** Spans that are sent together. */
    private static final int BATCH = 512;

    @TempDir Path folder;

    private OtelCollector collector;
    private SimFleet fleet;
    private GatewayServer gateway;

    @BeforeEach
    void start() throws Exception {
        try {
            collector = OtelCollector.in(OtelCollector.program(), folder);
            collector.start();
        } catch (IOException e) {
            abort("skipped: no collector: " + e.getMessage());
        }
        fleet = new SimFleet(SimHandoff.VLLM);
        gateway =
                GatewayServer.start(
                        Gateways.config(fleet.workers(SimHandoff.VLLM).toArray(WorkerConfig[]::new))
                                .set(GatewaySettings.OTLP_ENDPOINT, collector.endpoint())
                                .set(RouterSettings.QUEUE_PREFILL_TOKENS, 100_000L)
                                .build());
        Gateways.awaitContact(gateway);
    }

    @AfterEach
    void stop() {
        if (gateway != null) {
            gateway.close();
        }
        if (fleet != null) {
            fleet.close();
        }
        if (collector != null) {
            collector.close();
        }
    }

    private int ask(String id) throws Exception {
        final HttpResponse<String> answer =
                Gateways.post(gateway, "/v1/completions", ASK, "x-request-id", id);
        return answer.statusCode();
    }

    private List<JsonNode> spans() {
        final List<JsonNode> spans = new ArrayList<>();
        try {
            for (String batch : collector.batches()) {
                for (JsonNode resource : Json.MAPPER.readTree(batch).path("resourceSpans")) {
                    resource.path("scopeSpans")
                            .forEach(scope -> scope.path("spans").forEach(spans::add));
                }
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        return spans;
    }

    private static JsonNode attribute(JsonNode span, String name) {
        for (JsonNode each : span.path("attributes")) {
            if (each.path("key").asText().equals(name)) {
                return each.path("value");
            }
        }
        return Json.MAPPER.missingNode();
    }

    /**
     * The spans of a request by their names, that of its client as request; once these are there.
     */
    private Map<String, JsonNode> trace(String id, String... wanted) throws InterruptedException {
        final Map<String, JsonNode> trace = new TreeMap<>();
        Eventually.holds(
                id + " has " + List.of(wanted),
                () -> {
                    trace.clear();
                    collect(id, trace);
                    return trace.containsKey(REQUEST)
                            && trace.keySet().containsAll(List.of(wanted));
                });
        return trace;
    }

    private void collect(String id, Map<String, JsonNode> trace) {
        final List<JsonNode> spans = spans();
        for (JsonNode span : spans) {
            if (attribute(span, "kvasir.request_id").path("stringValue").asText().equals(id)) {
                trace.put(REQUEST, span);
            }
        }
        for (JsonNode span : spans) {
            if (trace.containsKey(REQUEST)
                    && !span.equals(trace.get(REQUEST))
                    && span.path("traceId").equals(trace.get(REQUEST).path("traceId"))) {
                trace.put(span.path("name").asText(), span);
            }
        }
    }

    /** Names in the first column of the page's table. */
    private static Set<String> documented() throws IOException {
        final Set<String> names = new TreeSet<>(Set.of("error.type"));
        final Matcher row =
                ROW.matcher(
                        Files.readString(
                                Path.of(
                                        System.getProperty("kvasir.root"),
                                        "docs/operations/tracing.md")));
        while (row.find()) {
            NAME.matcher(row.group(1)).results().forEach(name -> names.add(name.group(1)));
        }
        return names;
    }

    @Test
    void bothLegsAreInOneTraceAndEveryDocumentedAttributeHasItsType() throws Exception {
        assertEquals(200, ask("split"));
        final Map<String, JsonNode> split =
                trace("split", "tokenize", "queue", "prefill", "handoff", "decode");
        final String request = split.get(REQUEST).path("spanId").asText();
        for (String leg : List.of("prefill", "handoff", "decode")) {
            assertEquals(request, split.get(leg).path("parentSpanId").asText(), leg);
        }
        assertEquals("first_token", split.get("decode").at("/events/0/name").asText());
        fleet.prefills.forEach(engine -> engine.faults().failRequests(500, 1));
        ask("failing");
        trace("failing", "prefill");
        final Map<String, String> types = new TreeMap<>();
        for (JsonNode span : spans()) {
            for (JsonNode each : span.path("attributes")) {
                final String type = each.path("value").fieldNames().next();
                final String before = types.put(each.path("key").asText(), type);
                assertTrue(before == null || before.equals(type), each::toString);
            }
        }
        for (String name : documented()) {
            final String expected =
                    DOUBLES.contains(name)
                            ? "doubleValue"
                            : STRINGS.contains(name) ? "stringValue" : "intValue";
            assertEquals(expected, types.remove(name), name);
        }
        assertEquals(Map.of(), types, "not documented");
    }

    @Test
    void aCollectorThatHangsDiesOrStartsAgainCostsNoRequest() throws Exception {
        assertEquals(200, ask("before"));
        trace("before", "prefill", "decode");
        collector.hang();
        do { // until some were dropped
            askMany(100);
        } while (spanCount("ended") - spanCount("exported") - spanCount("failed") <= KEPT + BATCH);
        final double exported = spanCount("exported");
        collector.goOn();
        Eventually.holds("it takes them again", () -> spanCount("exported") >= exported + BATCH);
        assertEquals(200, ask("goes-on"));
        trace("goes-on", "prefill", "decode");
        collector.stop();
        askMany(40);
        collector.start();
        assertEquals(200, ask("again"));
        trace("again", "prefill", "decode");
    }

    private void askMany(int requests) throws Exception {
        final List<CompletableFuture<HttpResponse<String>>> answers = new ArrayList<>();
        for (int i = 0; i < requests; i++) {
            answers.add(Gateways.postAsync(gateway, "/v1/completions", ASK));
        }
        for (CompletableFuture<HttpResponse<String>> each : answers) {
            assertEquals(200, each.get(5, TimeUnit.MINUTES).statusCode());
        }
    }

    private double spanCount(String result) {
        final String name = "kvasir_trace_spans_total{result=\"" + result + "\"} ";
        try {
            return Gateways.admin(gateway, "/metrics")
                    .body()
                    .lines()
                    .filter(line -> line.startsWith(name))
                    .mapToDouble(line -> Double.parseDouble(line.substring(name.length())))
                    .sum();
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }
}
