package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.WorkerConfig;
import io.kvasir.gateway.openai.InferenceRequest;
import io.kvasir.gateway.openai.Json;
import io.kvasir.gateway.testing.FakeEngine;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.gateway.testing.MetricsPage;
import io.kvasir.prompt.chat.SimModel;
import io.kvasir.router.Worker;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.sim.SimEngine;
import io.kvasir.sim.config.SimConfig;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.io.IOException;
import java.net.http.HttpResponse;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/**
 * What engines answer beside completions: the Responses API, the Messages API, and endpoints that
 * generate nothing.
 */
class OtherApisHttpTest {
    private static final String MESSAGES = "/v1/messages";
    private static final String RESPONSES = "/v1/responses";
    private static final String GENERATE = "/generate";
    private static final String TOKENS = "/inference/v1/generate";
    private static final String ASK_MESSAGES =
            "{\"model\":\"m\",\"max_tokens\":8,\"stream\":true,"
                    + "\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}";
    private static final String ASK_RESPONSES =
            "{\"model\":\"m\",\"input\":\"hi\",\"stream\":true}";

    private static final String FIRST_MESSAGES =
            event(
                            "message_start",
                            "\"message\":{\"id\":\"x\",\"usage\":{\"input_tokens\":40,\"output_tokens\":0}}")
                    + event(
                            "content_block_start",
                            "\"index\":0,\"content_block\":{\"type\":\"text\"}")
                    + event("content_block_delta", "\"index\":0,\"delta\":{\"text\":\"a\"}");
    private static final String REST_MESSAGES =
            event("content_block_delta", "\"index\":0,\"delta\":{\"text\":\"b\"}")
                    + event(
                            "message_delta",
                            "\"usage\":{\"input_tokens\":8,\"output_tokens\":2,\"cache_read_input_tokens\":32}")
                    + event("message_stop", null);

    private static final String FIRST_RESPONSES =
            event("response.created", "\"response\":{\"id\":\"x\",\"usage\":null}")
                    + event("response.output_text.delta", "\"delta\":\"a\"");
    private static final String REST_RESPONSES =
            event("response.output_text.delta", "\"delta\":\"b\"")
                    + event(
                            "response.completed",
                            "\"response\":{\"id\":\"x\",\"usage\":{\"input_tokens\":40,\"output_tokens\":2,"
                                + "\"input_tokens_details\":{\"cached_tokens\":32}}}");

    private static String event(String type, String membersOrNull) {
        return "event: "
                + type
                + "\ndata: {\"type\":\""
                + type
                + '"'
                + (membersOrNull == null ? "" : ',' + membersOrNull)
                + "}\n\n";
    }

    private static String first(String path) {
        return path.equals(MESSAGES) ? FIRST_MESSAGES : FIRST_RESPONSES;
    }

    private static String rest(String path) {
        return path.equals(MESSAGES) ? REST_MESSAGES : REST_RESPONSES;
    }

    private static String ask(String path) {
        return path.equals(MESSAGES) ? ASK_MESSAGES : ASK_RESPONSES;
    }

    /** Streams both parts and leaves the connection open: the last event says that it is over. */
    private static void stream(FakeEngine.Call call) throws IOException {
        call.beginEvents();
        call.chunk(first(call.path));
        call.chunk(rest(call.path));
    }

    @ParameterizedTest
    @ValueSource(strings = {MESSAGES, RESPONSES})
    void aStreamIsPassedOnAndEndsWithItsLastEvent(String path) throws Exception {
        try (FakeEngine engine =
                        new FakeEngine(
                                call -> {
                                    stream(call);
                                    assertTrue(call.awaitClientGone(60), "the gateway ends it");
                                });
                GatewayServer gateway =
                        GatewayServer.start(Gateways.config(engine.worker("w")).build())) {
            final HttpResponse<String> answer = Gateways.post(gateway, path, ask(path));
            assertEquals(200, answer.statusCode(), answer.body());
            assertEquals(first(path) + rest(path), answer.body());
            assertEquals(ask(path), engine.calls.getFirst().text(), "as the client sent it");
            final String label = path.substring("/v1/".length());
            final MetricsPage page = MetricsPage.of(gateway);
            assertEquals(2, page.sum("kvasir_output_tokens_total"));
            assertEquals(1, page.sum("kvasir_time_to_first_token_seconds_count", "route", label));
        }
    }

    /** SGLang's own API knows no header of a rank. */
    @ParameterizedTest
    @ValueSource(
            strings = {
                "{\"input_ids\":[1,2,3],\"x\":1.0e0",
                "{\"input_ids\":[1,2,3],\"routed_dp_rank\":0",
                "{\"input_ids\":[1,2,3],\"top_k\":1,\"top_k\":2"
            })
    void generateSaysTheRankInItsBody(String body) throws Exception {
        try (FakeEngine engine = new FakeEngine(call -> call.json(200, "{\"text\":\"a\"}"));
                GatewayServer gateway =
                        GatewayServer.start(
                                Gateways.config(WorkerConfig.parse(engine.url() + ",name=w,dp=2"))
                                        .set(GatewaySettings.TRUSTED_NETWORKS, List.of("127.0.0.1"))
                                        .build())) {
            for (int rank = 0; rank < 2; rank++) {
                final HttpResponse<String> answer =
                        Gateways.post(
                                gateway, GENERATE, body + '}', "x-kvasir-worker", "w/" + rank);
                assertEquals(200, answer.statusCode(), answer.body());
                final FakeEngine.Call call = engine.calls.get(rank);
                assertEquals(Integer.toString(rank), call.headers.get("x-data-parallel-rank"));
                final JsonNode sent = Json.MAPPER.readTree(call.text());
                assertEquals(rank, sent.path("routed_dp_rank").asInt(-1), call.text());
                assertEquals(3, sent.path("input_ids").size());
            }
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {MESSAGES, RESPONSES})
    void aStreamThatBreaksOffEndsWithAnErrorOfItsApi(String path) throws Exception {
        try (FakeEngine engine =
                        new FakeEngine(
                                call -> {
                                    call.beginEvents();
                                    call.chunk(first(path));
                                    call.endChunks();
                                });
                GatewayServer gateway =
                        GatewayServer.start(Gateways.config(engine.worker("w")).build())) {
            final String body = Gateways.post(gateway, path, ask(path)).body();
            assertTrue(body.startsWith(first(path) + "event: error\ndata: {"), body);
            final JsonNode error =
                    Json.MAPPER.readTree(body.substring(body.lastIndexOf("data: ") + 6));
            assertEquals("error", error.path("type").textValue(), body);
            assertEquals("protocol", error.at("/error/kvasir/kind").textValue(), body);
            assertEquals(
                    path.equals(MESSAGES) ? "api_error" : "server_error",
                    error.at("/error/type").textValue());
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {MESSAGES, RESPONSES})
    void aWorkerThatAnswersAnErrorFirstIsReplaced(String path) throws Exception {
        final String error =
                event("error", "\"error\":{\"type\":\"internal_error\",\"message\":\"m\"}");
        try (FakeEngine bad =
                        new FakeEngine(
                                call -> {
                                    call.beginEvents();
                                    call.chunk(error);
                                    call.endChunks();
                                });
                FakeEngine good = new FakeEngine(OtherApisHttpTest::stream);
                GatewayServer gateway =
                        GatewayServer.start(
                                Gateways.config(bad.worker("bad"), good.worker("good")).build())) {
            for (int i = 0; i < 4; i++) {
                assertEquals(
                        first(path) + rest(path), Gateways.post(gateway, path, ask(path)).body());
            }
        }
    }

    /** SGLang's own endpoint: each event has all of the answer, and counts of its own. */
    @Test
    void generateIsRoutedByItsTokensLikeACompletion() throws Exception {
        final String ids =
                "["
                        + IntStream.range(0, 64)
                                .mapToObj(Integer::toString)
                                .collect(Collectors.joining(","))
                        + "]";
        final FakeEngine.Script script =
                call -> {
                    if (call.path.equals(GENERATE)) {
                        call.beginEvents();
                        call.chunk(generated("a", 1, 0) + generated("ab", 2, 0));
                        call.chunk("data: [DONE]\n\n");
                    } else {
                        call.json(200, "{\"choices\":[],\"usage\":{\"prompt_tokens\":64}}");
                    }
                };
        try (FakeEngine one = new FakeEngine(script);
                FakeEngine two = new FakeEngine(script);
                GatewayServer gateway =
                        Gateways.started(
                                Gateways.config(one.worker("one"), two.worker("two"))
                                        .set(RouterSettings.APPROXIMATE, true))) {
            final String asked =
                    "{\"input_ids\":" + ids + ", \"stream\":true,\"sampling_params\":{\"n\":1}}";
            final HttpResponse<String> first = Gateways.post(gateway, GENERATE, asked);
            assertEquals(200, first.statusCode(), first.body());
            assertEquals(
                    generated("a", 1, 0) + generated("ab", 2, 0) + "data: [DONE]\n\n",
                    first.body());
            final FakeEngine taken = one.calls.isEmpty() ? two : one;
            assertEquals(asked, taken.calls.getFirst().text(), "as the client sent it");
            for (int i = 0; i < 4; i++) {
                Eventually.holds(
                        "applied", () -> gateway.router().bookingPipeline().backlog() == 0);
                Gateways.post(gateway, "/v1/completions", "{\"prompt\":" + ids + "}");
            }
            assertEquals(5, taken.calls.size(), "what it holds of them is known");
            final MetricsPage page = MetricsPage.of(gateway);
            assertEquals(2, page.sum("kvasir_output_tokens_total"));
            assertEquals(
                    1, page.sum("kvasir_time_to_first_token_seconds_count", "route", "generate"));
        }
    }

    private static String generated(String text, int output, int cached) {
        return "data: {\"text\":\""
                + text
                + "\",\"meta_info\":{\"finish_reason\":null,\"prompt_tokens\":64,"
                + "\"completion_tokens\":"
                + output
                + ",\"cached_tokens\":"
                + cached
                + "}}\n\n";
    }

    @Test
    void errorsHaveTheFormOfTheirApi() throws Exception {
        try (FakeEngine engine = new FakeEngine(OtherApisHttpTest::stream);
                GatewayServer gateway =
                        GatewayServer.start(Gateways.config(engine.worker("w")).build())) {
            final Map<String, String> types =
                    Map.of("{", "invalid_request_error", "{\"model\":\"x\"}", "not_found_error");
            for (Map.Entry<String, String> wrong : types.entrySet()) {
                final HttpResponse<String> answer =
                        Gateways.post(gateway, MESSAGES, wrong.getKey());
                final JsonNode error = GatewayHttpTest.json(answer);
                assertEquals("error", error.path("type").textValue(), answer.body());
                assertEquals(wrong.getValue(), error.at("/error/type").textValue());
            }
            for (String kept :
                    new String[] {"\"previous_response_id\":\"r\"", "\"background\":true"}) {
                final HttpResponse<String> answer =
                        Gateways.post(gateway, RESPONSES, "{\"input\":\"hi\"," + kept + "}");
                assertEquals(400, answer.statusCode());
                final JsonNode error = GatewayHttpTest.json(answer);
                assertTrue(kept.contains(error.at("/error/param").textValue()), answer.body());
                assertEquals(error.at("/error/message"), error.get("message"));
            }
            assertTrue(engine.calls.isEmpty(), "refused before a worker is asked");
        }
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "/v1/embeddings",
                "/pooling",
                "/classify",
                "/score",
                "/v1/score",
                "/rerank",
                "/v1/rerank",
                "/v2/rerank",
                "/detokenize",
                "/v1/messages/count_tokens"
            })
    void whatGeneratesNothingIsPassedToAWorkerAsItIs(String path) throws Exception {
        final String answer =
                "{\"object\":\"list\",\"data\":[],\"usage\":{\"prompt_tokens\":3,\"total_tokens\":3}}";
        try (FakeEngine engine = new FakeEngine(call -> call.json(200, answer));
                GatewayServer gateway =
                        GatewayServer.start(
                                Gateways.config(engine.worker("w"))
                                        .set(GatewaySettings.TOKENIZER, SimModel.files())
                                        .build())) {
            final String asked = "{ \"model\":\"m\", \"n\":[1,{}], \"input\":[\"a\"] }";
            final HttpResponse<String> got = Gateways.post(gateway, path, asked);
            assertEquals(200, got.statusCode(), got.body());
            assertEquals(answer, got.body());
            assertEquals(path, engine.calls.getFirst().path);
            assertEquals(asked, engine.calls.getFirst().text());
            assertFalse(
                    Gateways.admin(gateway, "/metrics")
                            .body()
                            .contains("kvasir_untokenized_prompts_total{"),
                    "no prompt that should have been known");
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {MESSAGES, RESPONSES, GENERATE, TOKENS, "/v1/embeddings"})
    void theyAreNotSplit(String path) throws Exception {
        final String asked =
                "{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}],\"input\":\"hi\","
                        + "\"text\":\"hi\",\"token_ids\":[1]}";
        try (FakeEngine prefill = new FakeEngine(call -> call.json(500, "{}"));
                FakeEngine decode = new FakeEngine(call -> call.json(200, "{}"))) {
            final String first = prefill.url() + ",name=p,role=prefill,handoff=";
            final String second = decode.url() + ",name=d,role=decode,handoff=";
            try (GatewayServer gateway =
                    GatewayServer.start(
                            Gateways.config(
                                            WorkerConfig.parse(first + "vllm"),
                                            WorkerConfig.parse(second + "vllm"))
                                    .build())) {
                assertEquals(200, Gateways.post(gateway, path, asked).statusCode());
            }
            try (GatewayServer gateway =
                    GatewayServer.start(
                            Gateways.config(
                                            WorkerConfig.parse(
                                                    first + "sglang,bootstrap=127.0.0.1:1"),
                                            WorkerConfig.parse(second + "sglang"))
                                    .build())) {
                final HttpResponse<String> refused = Gateways.post(gateway, path, asked);
                assertEquals(400, refused.statusCode(), refused.body());
                assertEquals(
                        InferenceRequest.Route.ofOrNull(path).prompt,
                        GatewayHttpTest.json(refused).at("/error/param").textValue());
            }
            assertTrue(prefill.calls.isEmpty());
            assertEquals(1, decode.calls.size());
        }
    }

    @Test
    void aConversationIsFoundInTheCacheWhateverTheApi() throws Exception {
        final String system = "You are a careful assistant. ".repeat(5);
        final String chat =
                "{\"model\":\"m\",\"max_tokens\":2,\"messages\":[{\"role\":\"system\",\"content\":\""
                        + system
                        + "\"},{\"role\":\"user\",\"content\":\"hi\"}]}";
        try (SimEngine engine =
                        SimEngine.start(
                                SimConfig.builder().model("m").blocks(256).speedUp(50).build());
                GatewayServer gateway =
                        GatewayServer.start(
                                Gateways.config(
                                                WorkerConfig.parse(
                                                        engine.url()
                                                                + ",name=w,events="
                                                                + engine.eventsEndpoint(0)
                                                                + ",replay="
                                                                + engine.replayEndpoint(0)))
                                        .set(GatewaySettings.TOKENIZER, SimModel.files())
                                        .build())) {
            final Worker worker = gateway.router().workers().getFirst();
            assertEquals(200, Gateways.post(gateway, "/v1/chat/completions", chat).statusCode());
            Eventually.holds("events", () -> worker.indexedBlocks() == engine.heldBlocks(0).size());
            final String cached = predicted(gateway, "/v1/chat/completions", chat);
            assertTrue(Integer.parseInt(cached) > 0, cached);
            final String messages =
                    "{\"model\":\"m\",\"max_tokens\":2,\"system\":[{\"type\":\"text\",\"text\":\""
                            + system
                            + "\"}],\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}";
            assertEquals(cached, predicted(gateway, MESSAGES, messages));
            stated(gateway, MESSAGES, messages, cached);

            // the prompts of this API begin with the BOS that the tokenizer adds: others
            final String responses =
                    "{\"model\":\"m\",\"max_output_tokens\":2,\"instructions\":\""
                            + system
                            + "\",\"input\":[{\"role\":\"user\",\"content\":\"hi\"}]}";
            assertEquals("0", predicted(gateway, RESPONSES, responses));
            Eventually.holds("events", () -> worker.indexedBlocks() == engine.heldBlocks(0).size());
            stated(gateway, RESPONSES, responses, predicted(gateway, RESPONSES, responses));
            assertEquals(0, MetricsPage.of(gateway).sum("kvasir_prompt_token_mismatch_total"));
        }
    }

    @Test
    void usageOfTheirAnswersIsComparedWithTheForecast() throws Exception {
        final String messages = "\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]";
        try (FakeEngine engine = new FakeEngine(call -> call.json(404, "{}"));
                GatewayServer gateway =
                        GatewayServer.start(
                                Gateways.config(engine.worker("w"))
                                        .set(GatewaySettings.TOKENIZER, SimModel.files())
                                        .build())) {
            final int tokens =
                    GatewayHttpTest.json(Gateways.post(gateway, "/tokenize", "{" + messages + "}"))
                            .path("count")
                            .intValue();
            engine.script =
                    call ->
                            call.json(
                                    200,
                                    "{\"usage\":{\"output_tokens\":1,\"input_tokens\":"
                                            + (call.path.equals(MESSAGES)
                                                    ? "0,\"cache_read_input_tokens\":" + tokens
                                                    : tokens
                                                            + 1 // BOS
                                                            + ",\"input_tokens_details\":{"
                                                            + "\"cached_tokens\":0}")
                                            + "}}");
            final String input = "\"input\":\"hi\"";
            Gateways.post(gateway, RESPONSES, "{" + input + "}");
            assertEquals(1, MetricsPage.of(gateway).sum("kvasir_cache_prediction_total"));
            Gateways.post(gateway, MESSAGES, "{" + messages + "}");
            final MetricsPage page = MetricsPage.of(gateway);
            assertEquals(2, page.sum("kvasir_cache_prediction_total"));
            assertEquals(tokens, page.sum("kvasir_engine_cached_tokens_total"));
            Gateways.post(gateway, RESPONSES, "{\"extra_key\":\"t\"," + input + "}");
            assertEquals(
                    2,
                    MetricsPage.of(gateway).sum("kvasir_cache_prediction_total"),
                    "SGLang keeps these blocks apart");
        }
    }

    /** Whole and streamed, an answer states the cached tokens that were predicted. */
    private static void stated(GatewayServer gateway, String path, String asked, String predicted)
            throws Exception {
        assertTrue(Integer.parseInt(predicted) > 0, predicted);
        final String details =
                path.equals(MESSAGES)
                        ? "/cache_read_input_tokens"
                        : "/input_tokens_details/cached_tokens";
        final JsonNode whole = GatewayHttpTest.json(Gateways.post(gateway, path, asked));
        assertEquals(predicted, whole.at("/usage" + details).asText(), whole.toString());
        final String events =
                Gateways.post(gateway, path, "{\"stream\":true," + asked.substring(1)).body();
        final String member = details.substring(details.lastIndexOf('/') + 1);
        assertTrue(events.contains(member + "\":" + predicted), events);
    }

    private static String predicted(GatewayServer gateway, String path, String body)
            throws Exception {
        return GatewayHttpTest.header(
                Gateways.post(gateway, path, body), "x-kvasir-predicted-cached-tokens");
    }
}
