package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.WorkerConfig;
import io.kvasir.gateway.openai.Json;
import io.kvasir.gateway.testing.FakeEngine;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.gateway.testing.RawClient;
import io.kvasir.router.Worker;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

import java.net.http.HttpResponse;
import java.util.List;
import java.util.concurrent.CountDownLatch;

@Order(1) // takes long: begins first, beside the others
class GatewayHttpTest {
    private static final String ANSWER =
            "{ \"id\":\"x\",  \"choices\":[{\"text\":\"ä\"}],\n"
                + "\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":1,\"prompt_tokens_details\":{\"cached_tokens\":0}}"
                + " }\n";

    private final FakeEngine engine = new FakeEngine(call -> call.json(200, ANSWER));
    private GatewayServer gateway;

    private GatewayServer start(GatewayConfig.Builder config) {
        gateway = GatewayServer.start(config.build());
        return gateway;
    }

    private GatewayServer start() {
        return start(Gateways.config(engine.worker("w1")));
    }

    @AfterEach
    void stop() {
        if (gateway != null) {
            gateway.close();
        }
        engine.close();
    }

    @Test
    void requestsBeyondTheLimitOfBookingsGet429() throws Exception {
        final CountDownLatch answered = new CountDownLatch(1);
        engine.script =
                call -> {
                    answered.await();
                    call.json(200, ANSWER);
                };
        start(Gateways.config(engine.worker("w1")).set(RouterSettings.MAX_ACTIVE_REQUESTS, 1));
        try (RawClient first = new RawClient(gateway.port())) {
            first.post("/v1/completions", "{\"prompt\":[1]}");
            Eventually.holds("booked", () -> gateway.router().activeLeases() == 1);
            final HttpResponse<String> refused =
                    Gateways.post(gateway, "/v1/completions", "{\"prompt\":[2]}");
            assertError(refused, 429, "overloaded", "try again later");
            assertFalse(refused.body().contains("lease"), refused.body());
            assertEquals("1", header(refused, "retry-after"));
            answered.countDown();
            first.readUntil("choices");
        }
        final String page = Gateways.get(gateway, "/metrics").body();
        assertTrue(page.contains("status=\"429\"} 1.0"), page);
        assertTrue(page.contains("kvasir_bookings_pathless_total 0.0"), page);
    }

    @Test
    void aRequestWhoseBlocksDoNotFitIsAnsweredAndCounted() throws Exception {
        start(
                Gateways.config(engine.worker("w1"))
                        .set(RouterSettings.MAX_BLOCKS, 16L)
                        .set(RouterSettings.MAX_HELD_BLOCKS, 16L));
        final CountDownLatch answered = new CountDownLatch(1);
        engine.script =
                call -> {
                    answered.await();
                    call.json(200, ANSWER);
                };
        final String ids = "[" + "7,".repeat(20 * 16) + "7]";
        try (RawClient client = new RawClient(gateway.port())) {
            client.post("/v1/completions", "{\"prompt\":" + ids + "}");
            // a booking that is released before it was applied is none
            Eventually.holds("it is booked", () -> metrics().contains("_pathless_total 1.0"));
            answered.countDown();
            client.readUntil("choices");
        }
        final Worker worker = gateway.router().workers().get(0);
        Eventually.holds("no load", () -> worker.activeRequests() == 0);
        final String page = metrics();
        assertTrue(page.contains("kvasir_bookings_pathless_total 1.0"), page);
        assertTrue(page.contains("kvasir_load_corrections_total 0.0"), page);
    }

    private String metrics() {
        try {
            return Gateways.get(gateway, "/metrics").body();
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }

    @Test
    void aBatchHasNoForecastOfCachedTokens() throws Exception {
        start();
        for (String batch : List.of("[[1,2,3],[4,5]]", "[\"a\",\"b\"]")) {
            final HttpResponse<String> answer =
                    Gateways.post(
                            gateway,
                            "/v1/completions",
                            "{\"model\":\"m\",\"prompt\":" + batch + "}");
            assertEquals(200, answer.statusCode());
            assertEquals("w1", header(answer, "x-kvasir-worker"));
            assertEquals(List.of(), answer.headers().allValues("x-kvasir-predicted-cached-tokens"));
        }
    }

    @Test
    void anAnswerPassesByteForByteWithTheDecisionInItsHeaders() throws Exception {
        start();
        final HttpResponse<String> answer =
                Gateways.post(gateway, "/v1/completions", "{\"model\":\"m\",\"prompt\":[1,2,3]}");
        assertEquals(200, answer.statusCode());
        assertEquals(ANSWER, answer.body());
        assertEquals("fake", header(answer, "x-engine"));
        assertEquals("w1", header(answer, "x-kvasir-worker"));
        assertEquals("0", header(answer, "x-kvasir-dp-rank"));
        assertEquals("0", header(answer, "x-kvasir-overlap-blocks"));
        assertEquals("0", header(answer, "x-kvasir-predicted-cached-tokens"));
        assertEquals("-1", header(answer, "x-kvasir-event-sequence"));
        assertTrue(header(answer, "x-kvasir-request-id").startsWith("kv-"));
        assertEquals(List.of(), answer.headers().allValues("transfer-encoding"));
    }

    @Test
    void aRequestPassesByteForByteWithItsHeaders() throws Exception {
        start();
        final String body = "{ \"prompt\" : [1,2,3] ,\"temperature\":1.0e0, \"x\":\"\\u00e4\" }";
        Gateways.post(
                gateway,
                "/v1/completions?a=b",
                body,
                "Authorization",
                "Bearer secret",
                "X-Request-Id",
                "mine",
                "X-Data-Parallel-Rank",
                "7",
                "x-kvasir-mode",
                "random",
                "Accept-Encoding",
                "gzip");
        final FakeEngine.Call call = engine.calls.getFirst();
        assertEquals("/v1/completions?a=b", call.path);
        assertEquals(body, call.text());
        assertEquals("Bearer secret", call.headers.get("authorization"));
        assertEquals("mine", call.headers.get("x-request-id"));
        assertEquals("application/json", call.headers.get("content-type"));
        assertNull(call.headers.get("x-data-parallel-rank"), "one rank: nothing to pin");
        assertNull(call.headers.get("x-kvasir-mode"));
        assertNull(call.headers.get("accept-encoding"), "the gateway has to read the answer");
    }

    @Test
    void noWorkerIsAskedToAnnounceTheBlocksOfItsHitsAgain() throws Exception {
        start();
        final String body = "{ \"vllm_xargs\":{%s\"a\":1.0e0} ,\"prompt\" : [1,2,3], \"x\":1e2}";
        Gateways.post(
                gateway, "/v1/completions", body.formatted("\"kv_cache_report_mode\":\"full\", "));
        assertEquals(body.formatted(""), engine.calls.getFirst().text());
    }

    @Test
    void aQueryThatIsNoUriPassesAsItIs() throws Exception {
        start();
        try (RawClient client = new RawClient(gateway.port())) {
            client.post("/v1/completions?a=|{b}%20", "{\"prompt\":[1]}").readUntil("prompt_tokens");
        }
        assertEquals("/v1/completions?a=|{b}%20", engine.calls.getFirst().path);
    }

    @Test
    void aServerBehindAPathPrefixIsReachedThere() throws Exception {
        start(Gateways.config(WorkerConfig.parse(engine.url() + "/llm,name=w1")));
        Gateways.post(gateway, "/v1/completions", "{\"prompt\":[1]}");
        assertTrue(engine.calls.stream().anyMatch(call -> call.path.equals("/llm/v1/completions")));
    }

    @Test
    void anEngineLearnsTheGatewaysRequestIdWhenTheClientGaveNone() throws Exception {
        start();
        final HttpResponse<String> answer =
                Gateways.post(gateway, "/v1/completions", "{\"prompt\":[1]}");
        assertEquals(
                header(answer, "x-kvasir-request-id"),
                engine.calls.getFirst().headers.get("x-request-id"));
    }

    @Test
    void usageIsAskedForAndKeptFromTheClientThatDidNotAsk() throws Exception {
        engine.script = FakeEngine.chatStream(2, 0);
        start();
        final String body =
                "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}],\"stream\":true}";
        final String events = Gateways.post(gateway, "/v1/chat/completions", body).body();
        assertEquals(
                body.replaceFirst("\\{", "{\"stream_options\":{\"include_usage\":true},"),
                engine.calls.getFirst().text());
        assertFalse(events.contains("usage"), events);
        assertTrue(events.contains("t0 ") && events.endsWith("data: [DONE]\n\n"), events);

        final String asking =
                body.replaceFirst("\\{", "{\"stream_options\":{\"include_usage\":true}, ");
        final String all = Gateways.post(gateway, "/v1/chat/completions", asking).body();
        assertEquals(asking, engine.calls.get(1).text());
        assertTrue(all.contains(FakeEngine.usageEvent(3, 2, 0)), all);
    }

    @Test
    void usageIsNotAskedForWhenTheGatewayIsToldNotTo() throws Exception {
        engine.script = FakeEngine.chatStream(1, 0);
        start(Gateways.config(engine.worker("w1")).set(GatewaySettings.INCLUDE_USAGE, false));
        final String body = "{\"prompt\":[1],\"stream\":true}";
        Gateways.post(gateway, "/v1/completions", body);
        assertEquals(body, engine.calls.getFirst().text());
    }

    @Test
    void eventsArriveWhenTheEngineSendsThem() throws Exception {
        final CountDownLatch read = new CountDownLatch(1);
        engine.script =
                call -> {
                    call.beginEvents();
                    call.chunk(FakeEngine.event("{\"index\":0,\"text\":\"one\"}"));
                    read.await();
                    call.chunk("data: [DONE]\n\n");
                    call.endChunks();
                };
        start();
        try (RawClient client = new RawClient(gateway.port())) {
            client.post("/v1/completions", "{\"prompt\":[1],\"stream\":true}").readUntil("one");
            read.countDown(); // the engine sends no more before the first event has come
            client.readUntil("[DONE]");
        }
    }

    @Test
    void aBodyBeyondTheLimitIsRefusedWithTheLimit() throws Exception {
        start(Gateways.config(engine.worker("w1")).set(GatewaySettings.MAX_BODY_BYTES, 1000));
        final HttpResponse<String> answer =
                Gateways.post(
                        gateway,
                        "/v1/completions",
                        "{\"prompt\":\"" + "x".repeat(3_000_000) + "\"}");
        assertError(
                answer,
                413,
                "request_too_large",
                "limit of 1000; shorten it or raise max-body-bytes");
        try (RawClient client = new RawClient(gateway.port())) {
            client.send(
                    "POST /v1/completions HTTP/1.1\r\nHost: g\r\nTransfer-Encoding: chunked\r\n\r\n"
                            + "7d0\r\n"
                            + "y".repeat(2000)
                            + "\r\n0\r\n\r\n");
            assertTrue(client.readUntil("}}").contains("HTTP/1.1 413"));
        }
        assertEquals(0, engine.calls.size());
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "/v1/completions      | {                         | 400 | not valid JSON",
                "/v1/chat/completions | []                        | 400 | must be a JSON object",
                "/v1/chat/completions | {\"messages\":\"hi\"}     | 400 | 'messages' must be a"
                        + " list",
                "/v1/completions      | {\"prompt\":[-1]}         | 400 | is no token id",
                "/v1/completions      | {\"prompt\":[0.5]}        | 400 | must be a token id",
                "/v1/completions      | {\"prompt\":[4294967295]} | 400 | is no token id",
                "/v1/completions      | {\"prompt\":[]}           | 400 | is empty",
                "/v1/completions      | {\"prompt\":[1],\"model\":\"gpt\"} | 404 | `gpt` does not"
                        + " exist",
                "/v1/images           | {}                        | 404 | no endpoint"
                        + " /v1/images",
                "/v1/models           | {}                        | 405 | answers GET, HEAD, not"
                        + " POST",
            })
    void whatIsWrongIsRefusedInOpenAisShape(String path, String body, int status, String message)
            throws Exception {
        start();
        final JsonNode error =
                assertError(Gateways.post(gateway, path, body), status, null, message);
        assertEquals("invalid_request_error", error.get("type").textValue());
        assertEquals("client", error.get("kvasir").get("leg").textValue());
        assertFalse(error.get("kvasir").get("retryable").booleanValue());
        assertEquals(0, engine.calls.size());
    }

    @Test
    void aClientThatAsksFirstMaySendItsBody() throws Exception {
        start();
        try (RawClient client = new RawClient(gateway.port())) {
            client.send(
                    String.join(
                            "\r\n",
                            "POST /v1/completions HTTP/1.1",
                            "Host: g",
                            "Content-Length: 14",
                            "Expect: 100-continue",
                            "",
                            ""));
            client.readUntil("100 Continue\r\n\r\n");
            client.send("{\"prompt\":[1]}").readUntil("prompt_tokens");
        }
        assertNull(engine.calls.getFirst().headers.get("expect"));
    }

    @Test
    void badHttpIsRefusedInTheSameShape() throws Exception {
        start();
        try (RawClient client = new RawClient(gateway.port())) {
            final String answer = client.send("POST /v1/completions HTTP/1.1\r\n\r\n").readAll();
            assertTrue(answer.startsWith("HTTP/1.1 400"), answer);
            assertTrue(answer.contains("{\"error\":{\"message\":"), answer);
        }
    }

    @ParameterizedTest
    @CsvSource({
        "x-kvasir-mode, fast, unknown routing mode 'fast'",
        "x-kvasir-temperature, -1, must be a finite number",
        "x-kvasir-overlap-weight, NaN, must be a finite number",
        "x-kvasir-worker, w9, no worker is named 'w9'",
    })
    void anOverrideThatIsWrongNamesItsHeader(String name, String value, String message)
            throws Exception {
        start();
        final JsonNode error =
                assertError(
                        Gateways.post(gateway, "/v1/completions", "{\"prompt\":[1]}", name, value),
                        400,
                        null,
                        message);
        assertEquals(name, error.get("param").textValue());
    }

    @Test
    void headersChooseModeWeightTemperatureAndWorker() throws Exception {
        try (FakeEngine other = new FakeEngine(call -> call.json(200, ANSWER))) {
            start(Gateways.config(engine.worker("w1"), other.worker("w2")));
            for (int i = 0; i < 4; i++) {
                final HttpResponse<String> answer =
                        Gateways.post(
                                gateway,
                                "/v1/completions",
                                "{\"prompt\":[1]}",
                                "x-kvasir-worker",
                                "w2",
                                "x-kvasir-overlap-weight",
                                "2.5",
                                "x-kvasir-temperature",
                                "0.5");
                assertEquals("w2", header(answer, "x-kvasir-worker"));
            }
            final JsonNode pinned =
                    json(Gateways.get(gateway, "/debug/decisions?limit=1")).at("/decisions/0");
            assertEquals(2.5, pinned.get("overlap_weight").doubleValue());
            assertEquals(0.5, pinned.get("temperature").doubleValue());
            assertEquals("not_pinned", pinned.at("/candidates/0/excluded").textValue());
            for (int i = 0; i < 6; i++) {
                Gateways.post(
                        gateway,
                        "/v1/completions",
                        "{\"prompt\":[1]}",
                        "x-kvasir-mode",
                        "round-robin");
            }
            assertEquals(3, engine.calls.size());
            assertEquals(7, other.calls.size());
        }
    }

    @Test
    void decisionsAreShownNewestFirstWithEveryCandidateAndTheOutcome() throws Exception {
        start(Gateways.config(engine.worker("w1")).set(GatewaySettings.DECISION_LOG_SIZE, 3));
        for (int i = 1; i <= 5; i++) {
            Gateways.post(
                    gateway, "/v1/completions", "{\"prompt\":[" + "7,".repeat(16 * i) + "7]}");
        }
        final JsonNode all = json(Gateways.get(gateway, "/debug/decisions")).get("decisions");
        assertEquals(3, all.size(), "as many as are kept");
        final JsonNode newest =
                json(Gateways.get(gateway, "/debug/decisions?limit=1")).at("/decisions/0");
        assertEquals(all.get(0), newest);
        assertEquals(1, newest.get("prompts").intValue());
        assertEquals(81, newest.get("tokens").intValue());
        assertEquals(5, newest.get("blocks").intValue());
        assertEquals("w1", newest.get("worker").textValue());
        assertEquals("ok", newest.get("outcome").textValue());
        assertEquals(200, newest.get("status").intValue());
        assertEquals(0, newest.get("engine_cached_tokens").intValue());
        assertEquals(3, newest.get("engine_prompt_tokens").intValue());
        assertEquals(1, newest.get("candidates").size());
        assertEquals(0, newest.at("/candidates/0/overlap_blocks").intValue());
        assertTrue(newest.at("/candidates/0/cost").isNumber());
        assertError(Gateways.get(gateway, "/debug/decisions?limit=x"), 400, null, "not a number");
    }

    @Test
    void aDecisionSaysOfHowManyPromptsItsTokensAre() throws Exception {
        start(Gateways.config(engine.worker("w1")));
        Gateways.post(gateway, "/v1/completions", "{\"prompt\":[[1,2,3],[1,2,4],[1,2,5]]}");
        final JsonNode batch =
                json(Gateways.get(gateway, "/debug/decisions?limit=1")).at("/decisions/0");
        assertEquals(3, batch.path("prompts").intValue(), batch.toString());
        assertEquals(5, batch.path("tokens").intValue(), "what they have in common counts once");
    }

    @Test
    void modelsAreTheConfiguredOnes() throws Exception {
        start(Gateways.config(engine.worker("w1")).set(GatewaySettings.LORA, List.of("m-fr")));
        final JsonNode page = json(Gateways.get(gateway, "/v1/models"));
        assertEquals("list", page.get("object").textValue());
        assertEquals("m", page.at("/data/0/id").textValue());
        assertEquals("m-fr", page.at("/data/1/id").textValue());
        assertEquals("m", page.at("/data/1/parent").textValue());
        assertEquals(page.at("/data/0"), json(Gateways.get(gateway, "/v1/models/m")));
        assertEquals(page.at("/data/1"), json(Gateways.get(gateway, "/v1/models/m-fr")));
        assertEquals(page.at("/data/1"), json(Gateways.get(gateway, "/v1/models/m%2Dfr")));
        assertError(
                Gateways.get(gateway, "/v1/models/n"), 404, "model_not_found", "does not exist");
        assertEquals(
                200,
                Gateways.post(gateway, "/v1/completions", "{\"prompt\":[1],\"model\":\"m-fr\"}")
                        .statusCode());
    }

    @Test
    void healthIsGoodAsLongAsOneWorkerCanBeUsed() throws Exception {
        final FakeEngine dead = new FakeEngine(call -> call.json(200, ANSWER));
        start(Gateways.config(engine.worker("w1"), dead.worker("w2")));
        dead.close();
        Eventually.holds(
                "the dead one is out", () -> !gateway.router().workers().get(1).available());
        final HttpResponse<String> half = Gateways.admin(gateway, "/health");
        assertEquals(200, half.statusCode());
        assertEquals("down", json(half).at("/workers/1/health").textValue());
        assertTrue(json(half).at("/workers/1/last_error").textValue().contains("GET /health"));
        engine.close();
        Eventually.holds("both are out", () -> !gateway.router().workers().get(0).available());
        assertEquals(503, Gateways.admin(gateway, "/health").statusCode());
        assertError(
                Gateways.post(gateway, "/v1/completions", "{\"prompt\":[1]}"),
                503,
                "service_unavailable",
                "no worker can serve requests at this moment");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "/v1/completions",
                "/admin/../v1/completions",
                "/v1/load_lora_adapter;/../completions",
                "/v1/completions;a=b",
                "/v1/./completions",
                "/v1/%63ompletions",
                "/x/%2e%2e/v1/completions",
                "//v1//completions",
                "/v1%2Fcompletions",
                "/v1/completions/../completions?a=%0d%0ab&c=/../d"
            })
    void aWorkerIsAskedForTheEndpointNeverForWhatTheClientWrote(String path) throws Exception {
        start(Gateways.config(engine.worker("w1")));
        try (RawClient client = new RawClient(gateway.port())) {
            client.post(path, "{\"prompt\":[1]}", "Connection: close");
            final String answer = client.readAll();
            assertTrue(answer.matches("(?s)HTTP/1.1 (200|400|404) .*"), answer);
        }
        for (FakeEngine.Call call : engine.calls) {
            assertTrue(
                    call.path.equals("/v1/completions")
                            || call.path.equals("/v1/completions?a=%0d%0ab&c=/../d"),
                    call.path);
        }
    }

    @Test
    void metricsCountWhatHappened() throws Exception {
        start();
        Gateways.awaitContact(gateway);
        Gateways.post(gateway, "/v1/completions", "{\"prompt\":[1,2,3]}");
        Gateways.post(gateway, "/v1/completions", "{\"prompt\":[1,2]}");
        Gateways.post(gateway, "/v1/completions", "{");
        final Worker worker = gateway.router().workers().getFirst();
        Eventually.holds("no load", () -> worker.activeRequests() == 0);
        final String page = metrics();
        for (String line :
                new String[] {
                    "kvasir_requests_total{mode=\"kv\",model=\"m\",route=\"completions\",status=\"200\"}"
                        + " 2.0",
                    "kvasir_requests_total{mode=\"none\",model=\"none\",route=\"completions\",status=\"400\"}"
                        + " 1.0",
                    "kvasir_upstream_attempts_total{outcome=\"ok\",worker=\"w1\"} 2.0",
                    "kvasir_prompt_token_mismatch_total{worker=\"w1\"} 1.0",
                    "kvasir_cache_prediction_total{result=\"exact\",worker=\"w1\"} 1.0",
                    "kvasir_worker_active_requests{dp_rank=\"0\",worker=\"w1\"} 0.0",
                    "kvasir_worker_up{dp_rank=\"0\",worker=\"w1\"} 1.0",
                    "kvasir_worker_index_state{dp_rank=\"0\",state=\"degraded\",worker=\"w1\"} 1.0",
                    "router_kv_hit_rate_count 2",
                    "dynamo_kv_hit_rate{worker=\"w1\"} 0.0",
                    "kvasir_load_balance_score 0.0",
                    "dynamo_routing_latency_seconds_count 2",
                }) {
            assertTrue(page.contains(line + "\n"), line + " is not in\n" + page);
        }
    }

    @Test
    void anEngineWithOtherBlocksIsNamed() throws Exception {
        engine.metricsPage =
                "vllm:cache_config_info{_block_size_resolved=\"True\",block_size=\"32\",hash_block_size=\"None\",num_gpu_blocks=\"128\"}"
                    + " 1.0\n";
        start();
        Eventually.holds(
                "learned",
                () -> {
                    try {
                        final JsonNode worker =
                                json(Gateways.get(gateway, "/debug/workers")).at("/workers/0");
                        return worker.get("engine_block_size").intValue() == 32
                                && worker.get("engine_blocks").intValue() == 128;
                    } catch (Exception e) {
                        throw new IllegalStateException(e);
                    }
                });
    }

    @Test
    void tokenizeAnswersInTheEnginesForm() throws Exception {
        start();
        final JsonNode page = json(Gateways.post(gateway, "/tokenize", "{\"prompt\":[5,6]}"));
        assertEquals(2, page.get("count").intValue());
        assertEquals(6, page.at("/tokens/1").intValue());
        assertError(
                Gateways.post(gateway, "/tokenize", "{\"prompt\":\"text\"}"),
                501,
                "no_tokenizer",
                "tokenizer");
    }

    @Test
    void tokenizeRefusesSeveralPrompts() throws Exception {
        start();
        for (String prompts : new String[] {"[[5,6],[7]]", "[\"a\",\"b\"]"}) {
            assertError(
                    Gateways.post(gateway, "/tokenize", "{\"prompt\":" + prompts + "}"),
                    400,
                    null,
                    "one prompt");
        }
    }

    static JsonNode assertError(
            HttpResponse<String> answer, int status, String code, String message) throws Exception {
        assertEquals(status, answer.statusCode(), answer.body());
        assertEquals("application/json", header(answer, "content-type"));
        final JsonNode error = json(answer).get("error");
        for (String member : new String[] {"message", "type", "param", "code"}) {
            assertTrue(error.has(member), answer.body());
        }
        assertTrue(error.get("message").textValue().contains(message), answer.body());
        if (code != null) {
            assertEquals(code, error.get("code").textValue());
        }
        return error;
    }

    static JsonNode json(HttpResponse<String> answer) throws Exception {
        return Json.MAPPER.readTree(answer.body());
    }

    static String header(HttpResponse<String> answer, String name) {
        return answer.headers().firstValue(name).orElse(null);
    }
}
