package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.LogFormat;
import io.kvasir.gateway.openai.Json;
import io.kvasir.gateway.testing.FakeCollector;
import io.kvasir.gateway.testing.FakeEngine;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.gateway.testing.MetricsPage;
import io.kvasir.gateway.testing.RawClient;
import io.kvasir.router.queue.QueueStatus;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.testsupport.Eventually;
import io.opentelemetry.proto.trace.v1.Span;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;

/** Requests that wait for the one worker of a gateway, which answers when the test says so. */
@Order(1) // takes long: begins first, beside the others
class QueueGatewayTest {
    private static final String ANSWER = "{\"choices\":[],\"usage\":{\"prompt_tokens\":1}}";

    @TempDir private Path folder;
    private final Semaphore answers = new Semaphore(0);
    private final FakeEngine engine = new FakeEngine(this::answer);
    private GatewayServer gateway;

    private void answer(FakeEngine.Call call) throws IOException, InterruptedException {
        assertTrue(answers.tryAcquire(1, TimeUnit.MINUTES));
        call.json(200, ANSWER);
    }

    private GatewayConfig.Builder config() {
        return Gateways.config(engine.worker("w")).set(RouterSettings.QUEUE_PREFILL_TOKENS, 0L);
    }

    @BeforeEach
    void start() throws Exception {
        gateway = Gateways.started(config());
    }

    private void restart(GatewayConfig.Builder config) throws Exception {
        gateway.close();
        gateway = Gateways.started(config);
    }

    @AfterEach
    void stop() {
        answers.release(1_000);
        gateway.close();
        engine.close();
    }

    private CompletableFuture<HttpResponse<String>> ask(int token, String... headers) {
        return askWith("\"prompt\":[" + token + "]", headers);
    }

    private CompletableFuture<HttpResponse<String>> askWith(String members, String... headers) {
        return Gateways.postAsync(gateway, "/v1/completions", "{" + members + "}", headers);
    }

    /** The first request, which the worker has, and which the others wait behind. */
    private CompletableFuture<HttpResponse<String>> occupy() throws InterruptedException {
        final CompletableFuture<HttpResponse<String>> first = ask(1);
        Eventually.holds("the worker has it", () -> !engine.calls.isEmpty());
        return first;
    }

    private void awaitWaiting(int count) throws InterruptedException {
        Eventually.holds(count + " wait", () -> queue().requests() == count);
    }

    private QueueStatus queue() {
        return queueOf(gateway);
    }

    private static QueueStatus queueOf(GatewayServer gateway) {
        return gateway.queueOrNull().status();
    }

    /** Prompts in the order in which the worker got them, the first one left out. */
    private String order() {
        return engine.calls.stream()
                .skip(1)
                .map(call -> call.text().replaceAll(".*\"prompt\":\\[(\\d+)].*", "$1"))
                .collect(Collectors.joining(" "));
    }

    private static JsonNode error(HttpResponse<String> answer) throws IOException {
        return Json.MAPPER.readTree(answer.body()).get("error");
    }

    private static HttpResponse<String> get(CompletableFuture<HttpResponse<String>> answer)
            throws Exception {
        return answer.get(1, TimeUnit.MINUTES);
    }

    @Test
    void aHigherPriorityIsAnsweredFirst() throws Exception {
        final CompletableFuture<HttpResponse<String>> first = occupy();
        final var low = ask(2, "x-kvasir-priority", "-1");
        awaitWaiting(1);
        final var usual = ask(3);
        awaitWaiting(2);
        final var early = ask(4, "x-kvasir-head-start-ms", "60000");
        awaitWaiting(3);
        final var high = ask(5, "x-dynamo-request-strict-priority", "7");
        awaitWaiting(4);
        answers.release(5);
        for (var each : List.of(first, low, usual, early, high)) {
            assertEquals(200, get(each).statusCode());
        }
        assertEquals("5 4 3 2", order());
        assertEquals(0, gateway.router().activeLeases());
    }

    @Test
    void theBodysHintsCountAndTheEnginesOwnPriorityIsPassedOn() throws Exception {
        final CompletableFuture<HttpResponse<String>> first = occupy();
        final var usual = askWith("\"priority\":-100,\"prompt\":[2]");
        awaitWaiting(1);
        final String hints =
                "\"nvext\":{\"x\":[1],\"agent_hints\":{\"osl\":{},\"strict_priority\":2,"
                        + "\"priority\":1.5}},\"priority\":100,\"prompt\":[3]";
        final var hinted = askWith(hints);
        awaitWaiting(2);
        final var byHeader = askWith(hints.replace("[3]", "[4]"), "x-kvasir-priority", "3");
        awaitWaiting(3);
        answers.release(4);
        for (var each : List.of(first, usual, hinted, byHeader)) {
            assertEquals(200, get(each).statusCode());
        }
        assertEquals("4 3 2", order());
        assertTrue(engine.calls.stream().anyMatch(call -> call.text().equals("{" + hints + "}")));
    }

    @Test
    void ofCallersThatAreNotTrustedNothingOfItCounts() throws Exception {
        restart(config().set(GatewaySettings.TRUSTED_NETWORKS, List.of()));
        final CompletableFuture<HttpResponse<String>> first = occupy();
        final var one = ask(2);
        awaitWaiting(1);
        final var two = ask(3, "x-kvasir-priority", "much", "x-kvasir-max-wait-ms", "0");
        awaitWaiting(2);
        answers.release(3);
        for (var each : List.of(first, one, two)) {
            assertEquals(200, get(each).statusCode());
        }
        assertEquals("2 3", order());
    }

    @ParameterizedTest
    @CsvSource({
        "x-kvasir-priority, 1001",
        "x-kvasir-priority, 0.5",
        "x-kvasir-priority, high",
        "x-kvasir-head-start-ms, -1",
        "x-kvasir-head-start-ms, 3600001",
        "x-kvasir-max-wait-ms, NaN",
        "x-kvasir-max-wait-ms, 0",
        "x-dynamo-request-priority, 3601",
        "x-dynamo-request-strict-priority, -1001"
    })
    void whatCanNotBeReadIsRefusedByName(String header, String value) throws Exception {
        final HttpResponse<String> refused = get(ask(1, header, value));
        assertEquals(400, refused.statusCode());
        assertEquals(header, error(refused).get("param").textValue());
        assertTrue(refused.body().contains(value), refused.body());
        assertEquals(
                !header.equals("x-kvasir-max-wait-ms"),
                refused.body().contains("requests with a higher one are served first"),
                refused.body());
        assertTrue(
                refused.body()
                        .contains(
                                header.endsWith("priority")
                                                && !header.equals("x-dynamo-request-priority")
                                        ? "' must be a whole number from -1000 to 1000"
                                        : "' must be a number from "),
                refused.body());
        final HttpResponse<String> body =
                get(askWith("\"prompt\":[1],\"nvext\":{\"agent_hints\":{\"priority\":\"x\"}}"));
        assertEquals(400, body.statusCode());
        assertEquals("nvext.agent_hints.priority", error(body).get("param").textValue());
    }

    @Test
    void aRequestThatCannotBeginInTimeIsRefusedAndSaysWhenToTryAgain() throws Exception {
        final CompletableFuture<HttpResponse<String>> first = occupy();
        final HttpResponse<String> late = get(ask(2, "x-kvasir-max-wait-ms", "30"));
        assertEquals(503, late.statusCode());
        assertEquals("deadline", error(late).at("/kvasir/kind").textValue());
        assertTrue(error(late).at("/kvasir/retryable").booleanValue());
        assertFalse(error(late).get("kvasir").has("limit"));
        assertTrue(error(late).at("/kvasir/observed").longValue() >= 0);
        assertTrue(Integer.parseInt(GatewayHttpTest.header(late, "retry-after")) >= 1);
        answers.release(1);
        assertEquals(200, get(first).statusCode());
        assertEquals(1, engine.calls.size());
        final MetricsPage page = MetricsPage.of(gateway);
        assertEquals(1, page.sum("kvasir_queue_refused_total", "cause", "deadline"));
        assertEquals(1, page.sum("kvasir_requests_total", "status", "503"));
    }

    @Test
    void nobodyWaitsLongerThanTheLimitWhichTheRefusalNames() throws Exception {
        restart(config().set(RouterSettings.QUEUE_MAX_WAIT, Duration.ofMillis(40)));
        final CompletableFuture<HttpResponse<String>> first = occupy();
        final HttpResponse<String> late = get(ask(2));
        assertEquals(503, late.statusCode());
        assertEquals("waited_too_long", error(late).at("/kvasir/kind").textValue());
        assertEquals("queue-max-wait-ms", error(late).at("/kvasir/limit").textValue());
        assertEquals(40, error(late).at("/kvasir/limit_value").longValue());
        assertTrue(error(late).at("/kvasir/observed").longValue() >= 40);
        answers.release(1);
        assertEquals(200, get(first).statusCode());
    }

    @Test
    void aFullQueueRefusesAtOnceWithLimitAndValue() throws Exception {
        restart(config().set(RouterSettings.QUEUE_MAX_REQUESTS, 1));
        final CompletableFuture<HttpResponse<String>> first = occupy();
        final var second = ask(2);
        awaitWaiting(1);
        final HttpResponse<String> full = get(ask(3));
        assertEquals(429, full.statusCode());
        assertEquals("overloaded", error(full).get("code").textValue());
        assertEquals("queue_full", error(full).at("/kvasir/kind").textValue());
        assertEquals("queue-max-requests", error(full).at("/kvasir/limit").textValue());
        assertEquals(1, error(full).at("/kvasir/limit_value").longValue());
        assertEquals(1, error(full).at("/kvasir/observed").longValue());
        assertEquals(
                GatewayHttpTest.header(full, "retry-after"),
                error(full).at("/kvasir/retry_after_seconds").asText());
        final var high = ask(4, "x-kvasir-priority", "1");
        final HttpResponse<String> displaced = get(second);
        assertEquals(429, displaced.statusCode());
        assertEquals("displaced", error(displaced).at("/kvasir/kind").textValue());
        answers.release(2);
        assertEquals(200, get(first).statusCode());
        assertEquals(200, get(high).statusCode());
        assertEquals("4", order());
    }

    private void patch(String settings) throws Exception {
        final HttpResponse<String> answer =
                Gateways.send(
                        Gateways.adminRequest(gateway, "/settings")
                                .method(
                                        "PATCH",
                                        HttpRequest.BodyPublishers.ofString(
                                                "{\"settings\":" + settings + "}")));
        assertEquals(200, answer.statusCode(), answer.body());
    }

    @Test
    void aThresholdCanBeSetInARunningGatewayAndTakenBack() throws Exception {
        restart(Gateways.config(engine.worker("w")));
        assertNull(gateway.queueOrNull());
        assertEquals(0, MetricsPage.of(gateway).sum("kvasir_queue_requests"));
        patch("{\"queue-prefill-tokens\":0}");
        final CompletableFuture<HttpResponse<String>> first = occupy();
        final var second = ask(2);
        awaitWaiting(1);
        assertEquals(1, MetricsPage.of(gateway).sum("kvasir_queue_requests"));
        patch("{\"queue-prefill-tokens\":null}");
        awaitWaiting(0); // the worker has it at once
        final var third = ask(3);
        answers.release(3);
        for (var each : List.of(first, second, third)) {
            assertEquals(200, get(each).statusCode());
        }
        assertEquals(0, gateway.router().activeLeases());
    }

    @Test
    void singleFlightCanBeSwitchedOnInARunningGatewayAndOffWhileARequestFollows() throws Exception {
        restart(Gateways.config(engine.worker("w")));
        assertNull(gateway.queueOrNull());
        patch("{\"single-flight\":\"wait\",\"single-flight-tokens\":1}");
        final String prompt = "\"prompt\":[" + "7,".repeat(64) + "8]";
        final var first = askWith(prompt);
        Eventually.holds("the worker has it", () -> !engine.calls.isEmpty());
        final var second = askWith(prompt);
        awaitWaiting(1);
        assertEquals(1, MetricsPage.of(gateway).sum("kvasir_queue_following"));
        patch("{\"single-flight\":null}");
        awaitWaiting(0);
        answers.release(2);
        assertEquals(200, get(first).statusCode());
        assertEquals(200, get(second).statusCode());
        assertEquals(0, gateway.router().activeLeases());
    }

    @Test
    void limitsThatChangeHoldForWhatComesAndWhatWaitsStays() throws Exception {
        final CompletableFuture<HttpResponse<String>> first = occupy();
        final var second = ask(2);
        awaitWaiting(1);
        final var third = ask(3);
        awaitWaiting(2);
        patch("{\"queue-max-requests\":1,\"queue-policy\":\"lcfs\"}");
        final HttpResponse<String> full = get(ask(4));
        assertEquals(429, full.statusCode());
        assertEquals(1, error(full).at("/kvasir/limit_value").longValue());
        assertEquals(2, error(full).at("/kvasir/observed").longValue());
        patch("{\"queue-max-requests\":null,\"queue-max-wait-ms\":40}");
        final HttpResponse<String> late = get(ask(5));
        assertEquals("waited_too_long", error(late).at("/kvasir/kind").textValue());
        assertEquals(40, error(late).at("/kvasir/limit_value").longValue());
        assertEquals(2, queue().requests(), "those before it wait as long as they might");
        answers.release(3);
        for (var each : List.of(first, second, third)) {
            assertEquals(200, get(each).statusCode());
        }
        assertEquals("3 2", order());
    }

    @Test
    void aClientThatLeavesFreesItsRoomAndTheWorkerNeverHearsOfIt() throws Exception {
        final CompletableFuture<HttpResponse<String>> first = occupy();
        try (RawClient client = new RawClient(gateway.port())) {
            client.post("/v1/completions", "{\"prompt\":[2]}");
            awaitWaiting(1);
        }
        awaitWaiting(0);
        final var third = ask(3);
        awaitWaiting(1);
        answers.release(2);
        assertEquals(200, get(first).statusCode());
        assertEquals(200, get(third).statusCode());
        assertEquals("3", order());
        final MetricsPage page = MetricsPage.of(gateway);
        assertEquals(1, page.sum("kvasir_client_disconnects_total"));
        assertEquals(1, page.sum("kvasir_queue_refused_total", "cause", "cancelled"));
        assertEquals(0, gateway.router().activeLeases());
    }

    @Test
    void whatWaitsWhenTheGatewayEndsIsAnsweredWithThat() throws Exception {
        final CompletableFuture<HttpResponse<String>> first = occupy();
        final var waiting = ask(2);
        awaitWaiting(1);
        gateway.close();
        final HttpResponse<String> answer = get(waiting);
        assertEquals(503, answer.statusCode());
        assertEquals("draining", error(answer).at("/kvasir/kind").textValue());
        assertEquals(503, get(first).statusCode());
        assertEquals(1, engine.calls.size());
    }

    @Test
    void whatWaitsWhileTheGatewayDrainsIsServedStill() throws Exception {
        restart(config().set(GatewaySettings.DRAIN_TIMEOUT, Duration.ofMinutes(5)));
        final CompletableFuture<HttpResponse<String>> first = occupy();
        final var waiting = ask(2);
        awaitWaiting(1);
        final CompletableFuture<Void> closed = CompletableFuture.runAsync(gateway::close);
        answers.release(2);
        assertEquals(200, get(first).statusCode());
        assertEquals(200, get(waiting).statusCode());
        closed.get(1, TimeUnit.MINUTES);
    }

    @Test
    void theWaitIsInTheDecisionTheMetricsAndTheAccessLog() throws Exception {
        final Path log = folder.resolve("access.log");
        restart(
                config().set(GatewaySettings.ACCESS_LOG, log.toString())
                        .set(GatewaySettings.ACCESS_LOG_FORMAT, LogFormat.JSON));
        final CompletableFuture<HttpResponse<String>> first = occupy();
        final var second = ask(2, "x-request-id", "second");
        awaitWaiting(1);
        final MetricsPage waiting = MetricsPage.of(gateway);
        assertEquals(1, waiting.sum("kvasir_queue_requests", "pool", "main"));
        assertEquals(1, waiting.sum("kvasir_queue_tokens", "pool", "main"));
        assertEquals(
                1,
                waiting.sum(
                        "dynamo_frontend_router_queue_pending_requests",
                        "model",
                        "m",
                        "worker_type",
                        "decode"));
        answers.release(2);
        assertEquals(200, get(first).statusCode());
        assertEquals(200, get(second).statusCode());
        final JsonNode decision =
                GatewayHttpTest.json(Gateways.get(gateway, "/debug/decisions?limit=1"))
                        .at("/decisions/0");
        assertEquals("second", decision.get("request_id").textValue());
        assertTrue(decision.get("queue_wait_ms").doubleValue() > 0, decision.toString());
        final MetricsPage page = MetricsPage.of(gateway);
        assertEquals(2, page.sum("kvasir_queue_wait_seconds_count", "pool", "main"));
        assertEquals(1, page.sum("kvasir_queue_admitted_total", "waited", "yes"));
        assertEquals(1, page.sum("kvasir_queue_admitted_total", "waited", "no"));
        Eventually.holds("both are logged", () -> lines(log).size() == 2);
        final JsonNode line =
                Json.MAPPER.readTree(
                        lines(log).stream()
                                .filter(each -> each.contains("second"))
                                .findFirst()
                                .orElseThrow());
        assertTrue(line.get("queue_ms").doubleValue() > 0, line.toString());
        assertTrue(line.get("queue_ms").doubleValue() < line.get("duration_ms").doubleValue());
    }

    @Test
    void refusedRequestsAreLoggedWithTheTokensOfTheirPrompts() throws Exception {
        final Path log = folder.resolve("access.log");
        restart(
                config().set(GatewaySettings.ACCESS_LOG, log.toString())
                        .set(GatewaySettings.ACCESS_LOG_FORMAT, LogFormat.JSON)
                        .set(RouterSettings.QUEUE_MAX_REQUESTS, 1));
        final CompletableFuture<HttpResponse<String>> first = occupy();
        final CompletableFuture<HttpResponse<String>> second = ask(2);
        awaitWaiting(1);
        assertEquals(429, get(askWith("\"prompt\":[3,4,5]")).statusCode());
        answers.release(2);
        assertEquals(200, get(first).statusCode());
        assertEquals(200, get(second).statusCode());
        assertEquals(200, Gateways.workers(gateway, "POST", "/w/drain", "").statusCode());
        final HttpResponse<String> none = get(askWith("\"prompt\":[6,7,8,9]"));
        assertEquals(503, none.statusCode());
        assertEquals("no_workers", error(none).at("/kvasir/kind").textValue());
        Eventually.holds("all are logged", () -> lines(log).size() == 4);
        final Map<Integer, Integer> tokens = new TreeMap<>();
        for (String line : lines(log)) {
            final JsonNode json = Json.MAPPER.readTree(line);
            tokens.put(json.get("status").intValue(), json.get("tokens_in").asInt(-1));
        }
        assertEquals(Map.of(200, 1, 429, 3, 503, 4), tokens);
    }

    @Test
    void onlyWhatHasWaitedSaysSoWhateverBecameOfIt() throws Exception {
        final Path log = folder.resolve("access.log");
        try (FakeCollector collector = new FakeCollector()) {
            restart(
                    config().set(GatewaySettings.ACCESS_LOG, log.toString())
                            .set(GatewaySettings.ACCESS_LOG_FORMAT, LogFormat.JSON)
                            .set(
                                    GatewaySettings.OTLP_ENDPOINT,
                                    URI.create(collector.url() + "/v1/traces"))
                            .set(RouterSettings.QUEUE_MAX_REQUESTS, 1));
            final CompletableFuture<HttpResponse<String>> first = occupy();
            try (RawClient client = new RawClient(gateway.port())) {
                client.post("/v1/completions", "{\"prompt\":[2]}");
                awaitWaiting(1);
                assertEquals(429, get(ask(3)).statusCode());
            }
            awaitWaiting(0);
            answers.release(1);
            assertEquals(200, get(first).statusCode());
            Eventually.holds("all are logged", () -> lines(log).size() == 3);
            final Map<Integer, Double> waits = new TreeMap<>();
            for (String line : lines(log)) {
                final JsonNode json = Json.MAPPER.readTree(line);
                waits.put(json.get("status").intValue(), json.path("queue_ms").asDouble(-1));
            }
            assertTrue(waits.remove(499) > 0, lines(log).toString());
            assertEquals(Map.of(200, 0.0, 429, 0.0), waits);
            assertEquals(
                    0,
                    MetricsPage.of(gateway).sum("kvasir_queue_wait_seconds_sum", "pool", "main"));
            gateway.close(); // sends what is left
            final Map<String, List<Span>> spans = collector.await(3);
            assertEquals(1, spans.get("queue").size());
            final Span left =
                    spans.get("POST /v1/completions").stream()
                            .filter(span -> attribute(span, "error.type").equals("client_left"))
                            .findFirst()
                            .orElseThrow();
            assertEquals(left.getSpanId(), spans.get("queue").getFirst().getParentSpanId());
        }
    }

    private static String attribute(Span span, String name) {
        return FakeCollector.attributes(span.getAttributesList()).getOrDefault(name, "");
    }

    private static List<String> lines(Path log) {
        try {
            return Files.exists(log) ? Files.readAllLines(log) : List.of();
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
    }

    @Test
    void withoutAThresholdThereIsNoQueueAndNoSeriesOfIt() throws Exception {
        restart(Gateways.config(engine.worker("w")));
        answers.release(1);
        assertEquals(200, get(ask(1)).statusCode());
        assertTrue(MetricsPage.of(gateway).series("kvasir_queue_requests").isEmpty());
        assertTrue(
                GatewayHttpTest.json(Gateways.get(gateway, "/debug/decisions?limit=1"))
                        .at("/decisions/0/queue_wait_ms")
                        .isNull());
    }
}
