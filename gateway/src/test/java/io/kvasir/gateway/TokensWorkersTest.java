package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.WorkerConfig;
import io.kvasir.gateway.openai.Json;
import io.kvasir.gateway.testing.FakeEngine;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.gateway.testing.MetricsPage;
import io.kvasir.gateway.testing.RawClient;
import io.kvasir.host.EngineHost;
import io.kvasir.prompt.chat.SimModel;
import io.kvasir.registry.InstanceId;
import io.kvasir.registry.MemoryStore;
import io.kvasir.registry.ModelInput;
import io.kvasir.registry.Registration;
import io.kvasir.router.Worker;
import io.kvasir.sim.SimEngine;
import io.kvasir.sim.config.SimConfig;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.stream.Collectors;

/** Workers that take token ids, as clients of the gateway see them: not at all. */
class TokensWorkersTest {
    private static final String CHAT = "/v1/chat/completions";
    private static final String COMPLETIONS = "/v1/completions";
    private static final String HI = "\"messages\":[{\"role\":\"user\",\"content\":\"hi ä🙂\"}]";
    private static final String CALLS =
            "{" + HI + ",\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\"}}]}";
    private static final String DEEP =
            "{" + HI + ",\"x\":" + "[".repeat(300) + "]".repeat(300) + "}";
    private static final String LONG =
            "\"messages\":[{\"role\":\"system\",\"content\":\""
                    + "You are a careful ä🙂 assistant. ".repeat(4)
                    + "\"},{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"hi\"}]}]";
    private static final String ANSWER =
            "{\"id\":\"cmpl-1\",\"object\":\"text_completion\",\"created\":1,\"model\":\"m\","
                    + "\"choices\":[{\"index\":0,\"text\":\"ä\",\"finish_reason\":\"stop\"}],"
                    + "\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":1}}";
    private static final String CHUNK =
            "data: {\"id\":\"cmpl-1\",\"object\":\"text_completion\",\"choices\":[{\"index\":0,"
                    + "\"text\":\"a\",\"finish_reason\":null}]}\n\n";

    private static final InstanceId HOST = new InstanceId("ns", "c", "e", "hosted");

    private static WorkerConfig tokens(String url, String name) {
        return WorkerConfig.parse(url + ",name=" + name + ",input=tokens");
    }

    private static GatewayServer gateway(WorkerConfig... workers) throws InterruptedException {
        return Gateways.started(
                Gateways.config(workers).set(GatewaySettings.TOKENIZER, SimModel.files()));
    }

    private static SimEngine engine() {
        return SimEngine.start(SimConfig.builder().model("m").blocks(512).speedUp(50).build());
    }

    private static WorkerConfig of(SimEngine engine, String input) {
        return WorkerConfig.parse(
                engine.url()
                        + ",name=w,input="
                        + input
                        + ",events="
                        + engine.eventsEndpoint(0)
                        + ",replay="
                        + engine.replayEndpoint(0));
    }

    private static String[] events(String body) {
        return body.strip().split("\n\n", -1);
    }

    /** What an answer says, whole or streamed: texts and ends by choice, and the usage. */
    private static String said(HttpResponse<String> answer) throws Exception {
        assertEquals(200, answer.statusCode(), answer.body());
        final List<JsonNode> parts = new ArrayList<>();
        if (answer.body().startsWith("data:")) {
            assertTrue(answer.body().endsWith("data: [DONE]\n\n"), answer.body());
            for (String event : events(answer.body())) {
                if (!event.equals("data: [DONE]")) {
                    parts.add(Json.MAPPER.readTree(event.substring("data: ".length())));
                }
            }
        } else {
            parts.add(GatewayHttpTest.json(answer));
        }
        final TreeMap<Integer, String> texts = new TreeMap<>();
        JsonNode usage = null;
        for (JsonNode part : parts) {
            usage = part.hasNonNull("usage") ? part.get("usage") : usage;
            for (JsonNode choice : part.get("choices")) {
                final JsonNode message =
                        choice.has("delta") ? choice.get("delta") : choice.path("message");
                texts.merge(
                        choice.get("index").intValue(),
                        message.path("role").asText()
                                + choice.path("text").asText()
                                + message.path("content").asText()
                                + (choice.hasNonNull("finish_reason")
                                        ? "|" + choice.get("finish_reason").textValue()
                                        : ""),
                        String::concat);
            }
        }
        return parts.getFirst().get("object") + " " + texts + " " + usage;
    }

    @Test
    void answersAreThoseOfAWorkerThatTakesTextAndPrefixesAreHitAsPredicted() throws Exception {
        try (SimEngine ofText = engine();
                SimEngine ofTokens = engine();
                GatewayServer text = gateway(of(ofText, "text"));
                GatewayServer tokens = gateway(of(ofTokens, "tokens"))) {
            final Worker worker = tokens.router().workers().getFirst();
            int request = 0;
            for (String body :
                    new String[] {
                        "{\"model\":\"m\"," + LONG + ",\"max_tokens\":7}",
                        "{" + LONG + ",\"max_completion_tokens\":20,\"n\":3}",
                        "{"
                                + LONG
                                + ",\"stream\":true,\"stream_options\":{\"include_usage\":true}}",
                        "{" + LONG + ",\"stream\":true,\"n\":2,\"stop\":[\"e\"]}",
                        "{" + LONG + ",\"min_tokens\":17}",
                        "{\"prompt\":\"" + "Once upon a time ".repeat(6) + "\"}",
                        "{\"prompt\":[\"one ä\",\"two\",\"one ä and more\"],\"n\":2}",
                        "{\"prompt\":[[40,41],[42]],\"stream\":true}",
                        "{\"prompt\":\"x\",\"stream\":true,\"max_tokens\":20}",
                    }) {
                final String path = body.contains("messages") ? CHAT : COMPLETIONS;
                assertEquals(
                        said(Gateways.post(text, path, body)),
                        said(Gateways.post(tokens, path, body)),
                        body);
                for (SimEngine engine : List.of(ofText, ofTokens)) {
                    final GatewayServer gateway = engine == ofText ? text : tokens;
                    final Worker indexed = gateway.router().workers().getFirst();
                    Eventually.holds(
                            "events of request " + request,
                            () ->
                                    indexed.indexedBlocks() == engine.heldBlocks(0).size()
                                            && gateway.router().activeLeases() == 0);
                }
                request++;
            }
            final HttpResponse<String> again =
                    Gateways.post(tokens, CHAT, "{" + LONG + ",\"max_tokens\":2}");
            final int cached =
                    GatewayHttpTest.json(again)
                            .at("/usage/prompt_tokens_details/cached_tokens")
                            .intValue();
            assertTrue(cached > 0, again.body());
            assertEquals(
                    Integer.toString(cached),
                    GatewayHttpTest.header(again, "x-kvasir-predicted-cached-tokens"));
            assertTrue(worker.indexedBlocks() > 0);
        }
    }

    @Test
    void aChatIsAskedForAsACompletionOfIds() throws Exception {
        try (FakeEngine engine = new FakeEngine(call -> call.json(200, ANSWER));
                GatewayServer gateway = gateway(tokens(engine.url(), "t"))) {
            final String body = "{\"model\":\"m\"," + HI + ",\"temperature\":0.50}";
            final JsonNode answer = GatewayHttpTest.json(Gateways.post(gateway, CHAT, body));
            assertEquals("chat.completion", answer.get("object").textValue());
            assertEquals("ä", answer.at("/choices/0/message/content").textValue());
            assertEquals(3, answer.at("/usage/prompt_tokens").intValue());
            final FakeEngine.Call call = engine.calls.getFirst();
            assertEquals(COMPLETIONS, call.path);
            final JsonNode ids =
                    GatewayHttpTest.json(Gateways.post(gateway, "/tokenize", body)).get("tokens");
            assertEquals(
                    "{\"model\":\"m\",\"temperature\":0.50,\"prompt\":"
                            + ids
                            + ",\"max_tokens\":null}",
                    call.text());
        }
    }

    /** Engines cut inside of the tokenizer, which keeps BOS (256), unless a side is named. */
    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "\"truncation_side\":\"right\" | 256, 97, 98",
                "\"truncation_side\":\"left\" | 100, 101, 102",
                "\"truncation_side\":null | 256, 101, 102",
                "\"add_special_tokens\":true | 256, 101, 102",
                "\"add_special_tokens\":false | 100, 101, 102",
            })
    void ofALongPromptIsKeptWhatEnginesKeep(String members, String kept) throws Exception {
        assertEquals(kept, sent("\"truncate_prompt_tokens\":3," + members));
    }

    /** The ids that a worker gets of the prompt "abcdef", of which the first is a token BOS. */
    private static String sent(String members) throws Exception {
        try (FakeEngine engine = new FakeEngine(call -> call.json(200, ANSWER));
                GatewayServer gateway = gateway(tokens(engine.url(), "t"))) {
            final HttpResponse<String> answer =
                    Gateways.post(gateway, COMPLETIONS, "{\"prompt\":\"abcdef\"," + members + "}");
            assertEquals(200, answer.statusCode(), answer.body());
            final JsonNode ids = Json.MAPPER.readTree(engine.calls.getFirst().text()).get("prompt");
            return ids.valueStream().map(JsonNode::asText).collect(Collectors.joining(", "));
        }
    }

    /** Engines take such for two. */
    @ParameterizedTest
    @ValueSource(strings = {"\"n\":2.0", "\"n\":\"2\""})
    void everyChoiceThatAChatAsksForIsAnswered(String two) throws Exception {
        final String choices = "[{\"index\":0,\"text\":\"a\"},{\"index\":1,\"text\":\"b\"}]";
        try (FakeEngine engine =
                        new FakeEngine(call -> call.json(200, "{\"choices\":" + choices + "}"));
                GatewayServer gateway = gateway(tokens(engine.url(), "t"))) {
            final String body = "{" + HI + "," + two + "}";
            final JsonNode answer = GatewayHttpTest.json(Gateways.post(gateway, CHAT, body));
            assertEquals("b", answer.at("/choices/1/message/content").textValue());
            assertTrue(engine.calls.getFirst().text().contains(two));
        }
    }

    @Test
    void aBodyThatNestsTooDeepToBeWrittenAnewIsRefused() throws Exception {
        try (FakeEngine engine = new FakeEngine(call -> call.json(200, ANSWER));
                GatewayServer gateway = gateway(tokens(engine.url(), "t"))) {
            final HttpResponse<String> refused = Gateways.post(gateway, CHAT, DEEP);
            assertEquals(400, refused.statusCode(), refused.body());
            final JsonNode error = GatewayHttpTest.json(refused).get("error");
            assertEquals("invalid_request_error", error.get("type").textValue());
            assertTrue(
                    error.get("message").textValue().contains("nests deeper than 256"),
                    refused.body());
            assertEquals(0, engine.calls.size());
            assertEquals(0, gateway.router().activeLeases());
            assertEquals(200, Gateways.post(gateway, CHAT, "{" + HI + "}").statusCode());
        }
    }

    @Test
    void aBodyThatNestsTooDeepToBeWrittenAnewGoesToAWorkerThatTakesText() throws Exception {
        try (FakeEngine ofText = new FakeEngine(call -> call.json(200, ANSWER));
                FakeEngine ofTokens = new FakeEngine(call -> call.json(200, ANSWER));
                GatewayServer gateway =
                        gateway(ofText.worker("text"), tokens(ofTokens.url(), "tokens"))) {
            for (int i = 0; i < 8; i++) {
                final HttpResponse<String> answer =
                        Gateways.post(gateway, CHAT, DEEP, "x-kvasir-mode", "round-robin");
                assertEquals(200, answer.statusCode(), answer.body());
                assertEquals("text", GatewayHttpTest.header(answer, "x-kvasir-worker"));
            }
            assertEquals(DEEP, ofText.calls.getFirst().text());
        }
    }

    @Test
    void whatNeedsTextGoesToAWorkerThatTakesItAndAllElseToBoth() throws Exception {
        try (FakeEngine ofText = new FakeEngine(call -> call.json(200, ANSWER));
                FakeEngine ofTokens = new FakeEngine(call -> call.json(200, ANSWER));
                GatewayServer gateway =
                        gateway(ofText.worker("text"), tokens(ofTokens.url(), "tokens"))) {
            for (int i = 0; i < 8; i++) {
                final HttpResponse<String> answer =
                        Gateways.post(gateway, CHAT, CALLS, "x-kvasir-mode", "round-robin");
                assertEquals(200, answer.statusCode(), answer.body());
                assertEquals("text", GatewayHttpTest.header(answer, "x-kvasir-worker"));
            }
            assertEquals(CHAT, ofText.calls.getFirst().path);
            assertEquals(CALLS, ofText.calls.getFirst().text());
            for (int i = 0; i < 4; i++) {
                Gateways.post(gateway, CHAT, "{" + HI + "}", "x-kvasir-mode", "round-robin");
            }
            assertTrue(ofTokens.calls.size() > 0);
            assertEquals(12, ofText.calls.size() + ofTokens.calls.size());
        }
    }

    @Test
    void aTextWorkerThatIsDownIsNoReasonToRefuseForGood() throws Exception {
        try (FakeEngine ofText = new FakeEngine(call -> call.json(200, ANSWER));
                FakeEngine ofTokens = new FakeEngine(call -> call.json(200, ANSWER));
                GatewayServer gateway =
                        gateway(ofText.worker("text"), tokens(ofTokens.url(), "tokens"))) {
            Gateways.workers(gateway, "POST", "/text/drain", "");
            final HttpResponse<String> answer = Gateways.post(gateway, CHAT, CALLS);
            assertEquals(503, answer.statusCode(), answer.body());
            assertEquals(0, ofTokens.calls.size());
            assertEquals(0, gateway.router().activeLeases());
        }
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                CALLS,
                "{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"image_url\","
                        + "\"image_url\":{\"url\":\"http://x\"}}]}]}",
                "{" + HI + ",\"echo\":true}"
            })
    void whereNoWorkerTakesTextTheRefusalNamesTheMemberAndTheKnob(String body) throws Exception {
        try (FakeEngine engine = new FakeEngine(call -> call.json(200, ANSWER));
                GatewayServer gateway = gateway(tokens(engine.url(), "t"))) {
            final HttpResponse<String> answer = Gateways.post(gateway, CHAT, body);
            assertEquals(400, answer.statusCode(), answer.body());
            final JsonNode error = GatewayHttpTest.json(answer).get("error");
            assertEquals("needs_text_worker", error.get("code").textValue());
            assertTrue(error.get("message").textValue().contains("input=tokens"), answer.body());
            assertEquals(0, engine.calls.size());
        }
    }

    @Test
    void withoutATokenizerOnlyIdsAreSentWhichIsSaidShownAndCounted() throws Exception {
        try (FakeEngine engine = new FakeEngine(call -> call.json(200, ANSWER));
                GatewayServer gateway =
                        Gateways.started(Gateways.config(tokens(engine.url(), "t")))) {
            final HttpResponse<String> refused =
                    Gateways.post(gateway, COMPLETIONS, "{\"prompt\":\"a\"}");
            assertEquals(400, refused.statusCode(), refused.body());
            assertTrue(refused.body().contains("set tokenizer"), refused.body());
            final String ids = "{\"prompt\": [1,2] }";
            final HttpResponse<String> answer = Gateways.post(gateway, COMPLETIONS, ids);
            assertEquals(ANSWER, answer.body());
            assertEquals(ids, engine.calls.getFirst().text());
            assertEquals("tokens", shown(gateway).get("input").textValue());
            Eventually.holds(
                    "shown",
                    () -> shown(gateway).get("tokenizer_detail").textValue().contains("token ids"));
            final String metrics = Gateways.get(gateway, "/metrics").body();
            assertTrue(
                    metrics.lines()
                            .anyMatch(
                                    line ->
                                            line.startsWith("kvasir_discovery_failures_total")
                                                    && line.endsWith(" 1.0")),
                    metrics);
        }
    }

    private static JsonNode shown(GatewayServer gateway) {
        try {
            return GatewayHttpTest.json(Gateways.get(gateway, "/debug/workers")).at("/workers/0");
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }

    @Test
    void aStreamThatIsNoCompletionsEndsWithAnErrorAndTheWorkerIsLetGo() throws Exception {
        try (FakeEngine engine =
                        new FakeEngine(
                                call -> {
                                    call.beginEvents();
                                    call.chunk(CHUNK);
                                    call.chunk("data: nonsense\n\n" + CHUNK);
                                    assertTrue(call.awaitClientGone(60));
                                });
                GatewayServer gateway = gateway(tokens(engine.url(), "t"))) {
            final String body = Gateways.post(gateway, CHAT, "{" + HI + ",\"stream\":true}").body();
            final String[] events = events(body);
            assertEquals(3, events.length, body);
            assertTrue(events[0].contains("\"role\":\"assistant\""), body);
            assertTrue(events[1].contains("\"content\":\"a\""), body);
            assertTrue(events[2].contains("\"upstream_protocol\""), body);
            assertFalse(body.contains("nonsense"), body);
            Eventually.holds("let go", () -> engine.inFlight.get() == 0);
            Eventually.holds("lease free", () -> gateway.router().activeLeases() == 0);
        }
    }

    @Test
    void anErrorInTheMiddleOfAStreamPasses() throws Exception {
        final String error = "data: {\"error\":{\"code\":500,\"message\":\"made up\"}}\n\n";
        try (FakeEngine engine =
                        new FakeEngine(
                                call -> {
                                    call.beginEvents();
                                    call.chunk(CHUNK);
                                    call.chunk(error + "data: [DONE]\n\n");
                                    call.endChunks();
                                });
                GatewayServer gateway = gateway(tokens(engine.url(), "t"))) {
            final String body = Gateways.post(gateway, CHAT, "{" + HI + ",\"stream\":true}").body();
            assertTrue(body.endsWith(error + "data: [DONE]\n\n"), body);
            assertEquals(
                    Set.of("status_500"),
                    MetricsPage.of(gateway).values("kvasir_upstream_attempts_total", "outcome"));
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"nonsense", "{}", "{\"choices\":[{\"index\":9,\"text\":\"\"}]}"})
    void anAnswerThatIsNoCompletionIsReplacedByAnotherWorkers(String hostile) throws Exception {
        try (FakeEngine bad = new FakeEngine(call -> call.json(200, hostile));
                FakeEngine good = new FakeEngine(call -> call.json(200, ANSWER));
                GatewayServer gateway =
                        gateway(tokens(bad.url(), "bad"), tokens(good.url(), "good"))) {
            for (int i = 0; i < 2; i++) {
                final HttpResponse<String> answer =
                        Gateways.post(
                                gateway, CHAT, "{" + HI + "}", "x-kvasir-mode", "round-robin");
                assertEquals(200, answer.statusCode(), answer.body());
                assertEquals("good", GatewayHttpTest.header(answer, "x-kvasir-worker"));
            }
            assertTrue(bad.calls.size() > 0);
        }
    }

    @Test
    void aCompletionThatThereIsNoMemoryForIsRefusedByNameAndNoFault() throws Exception {
        final String large = ANSWER.replace("\"ä\"", "\"" + "x".repeat(200_000) + "\"");
        try (FakeEngine engine = new FakeEngine(call -> call.json(200, large));
                GatewayServer gateway =
                        Gateways.started(
                                Gateways.config(tokens(engine.url(), "t"))
                                        .set(GatewaySettings.TOKENIZER, SimModel.files())
                                        .set(GatewaySettings.MAX_BODY_BYTES_IN_FLIGHT, 65_536L))) {
            final HttpResponse<String> refused = Gateways.post(gateway, CHAT, "{" + HI + "}");
            assertEquals(503, refused.statusCode(), refused.body());
            assertTrue(refused.body().contains("max-body-bytes-in-flight"), refused.body());
            assertTrue(refused.body().contains("\"kind\":\"memory\""), refused.body());
            assertEquals(1, engine.calls.size(), "another attempt would have no memory either");
            engine.script = call -> call.json(200, ANSWER);
            final HttpResponse<String> answer = Gateways.post(gateway, CHAT, "{" + HI + "}");
            assertEquals(200, answer.statusCode(), answer.body());
            Eventually.holds( // the client has the answer before the gateway has ended it
                    "its bytes are given back",
                    () -> MetricsPage.of(gateway).sum("kvasir_answer_bytes_in_flight") == 0);
            assertEquals(
                    Set.of("memory", "ok"),
                    MetricsPage.of(gateway).values("kvasir_upstream_attempts_total", "outcome"));
        }
    }

    @Test
    void aRefusalOfTheWorkerPassesAsItCame() throws Exception {
        final String refusal = "{\"error\":{\"message\":\"too long\",\"code\":400}}";
        try (FakeEngine engine = new FakeEngine(call -> call.json(400, refusal));
                GatewayServer gateway = gateway(tokens(engine.url(), "t"))) {
            final HttpResponse<String> answer = Gateways.post(gateway, CHAT, "{" + HI + "}");
            assertEquals(400, answer.statusCode());
            assertEquals(refusal, answer.body());
        }
    }

    @Test
    void aClientThatLeavesInTheMiddleFreesWorkerAndLease() throws Exception {
        try (FakeEngine engine =
                        new FakeEngine(
                                call -> {
                                    call.beginEvents();
                                    call.chunk(CHUNK);
                                    assertTrue(call.awaitClientGone(60));
                                });
                GatewayServer gateway = gateway(tokens(engine.url(), "t"))) {
            try (RawClient client = new RawClient(gateway.port())) {
                client.post(CHAT, "{" + HI + ",\"stream\":true}").readUntil("\"a\"");
            }
            Eventually.holds("let go", () -> engine.inFlight.get() == 0);
            Eventually.holds("lease free", () -> gateway.router().activeLeases() == 0);
        }
    }

    /** The worker that a host has registered. */
    private static WorkerConfig registered(MemoryStore store) {
        final Registration said = Registration.decode(store.get(HOST.key()).value());
        return WorkerConfig.parse(
                said.url()
                        + ",name="
                        + said.id().instance()
                        + ",input="
                        + said.input().name().toLowerCase(Locale.ROOT));
    }

    @Test
    void anEngineInAHostGetsTheIdsOfChats() throws Exception {
        final MemoryStore store = new MemoryStore(Duration.ofMinutes(1));
        final List<int[]> prompts = new CopyOnWriteArrayList<>();
        try (EngineHost host =
                        EngineHost.of(
                                        "m",
                                        (request, output) -> {
                                            prompts.add(request.promptTokens());
                                            output.text("ä", 1);
                                            output.text("🙂", 1);
                                        })
                                .host("127.0.0.1")
                                .port(0)
                                .register(store, HOST, r -> r.input(ModelInput.TOKENS))
                                .start();
                GatewayServer gateway = gateway(registered(store))) {
            assertTrue(host.port() > 0);
            for (String body :
                    new String[] {
                        "{" + HI + "}",
                        "{" + HI + ",\"stream\":true,\"stream_options\":{\"include_usage\":true}}"
                    }) {
                final String said = said(Gateways.post(gateway, CHAT, body));
                final JsonNode ids =
                        GatewayHttpTest.json(Gateways.post(gateway, "/tokenize", body))
                                .get("tokens");
                assertArrayEquals(Json.MAPPER.convertValue(ids, int[].class), prompts.getLast());
                assertTrue(
                        said.endsWith(
                                "{0=assistantä🙂|stop} {\"prompt_tokens\":"
                                        + ids.size()
                                        + ",\"completion_tokens\":2,\"total_tokens\":"
                                        + (ids.size() + 2)
                                        + ",\"prompt_tokens_details\":{\"cached_tokens\":0}}"),
                        said);
            }
        }
    }

    @Test
    void theAdminPortTakesThemAndRefusesThemForHalvesOfARequest() throws Exception {
        try (FakeEngine engine = new FakeEngine(call -> call.json(200, ANSWER));
                GatewayServer gateway = gateway(engine.worker("text"))) {
            final String worker = "{\"url\":\"" + engine.url() + "\",\"name\":\"t\",\"input\":";
            final HttpResponse<String> added =
                    Gateways.workers(gateway, "POST", "", worker + "\"tokens\"}");
            assertEquals(201, added.statusCode(), added.body());
            assertEquals("tokens", GatewayHttpTest.json(added).get("input").textValue());
            for (String wrong : new String[] {"\"tokens\",\"role\":\"prefill\"}", "\"ids\"}"}) {
                final HttpResponse<String> refused =
                        Gateways.workers(gateway, "POST", "", worker + wrong);
                assertEquals(400, refused.statusCode(), refused.body());
                assertTrue(refused.body().contains("input="), refused.body());
            }
        }
    }
}
