package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.gateway.config.GatewayException;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.WorkerConfig;
import io.kvasir.gateway.testing.FakeEngine;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.prompt.chat.SimModel;
import io.kvasir.router.Worker;
import io.kvasir.sim.SimEngine;
import io.kvasir.sim.config.SimConfig;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Objects;

/** Texts and chats: the gateway hashes the tokens that the engine computes. */
class GatewayTokensTest {
    @TempDir private Path folder;

    @Test
    void chatsAndTextsHitWhatTheEngineHasCached() throws Exception {
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
            Eventually.holds(
                    "compared",
                    () -> health(gateway).at("/workers/0/tokenizer").textValue().equals("agrees"));
            final Worker worker = gateway.router().workers().getFirst();
            for (String request :
                    new String[] {
                        "{\"model\":\"m\",\"max_tokens\":3,\"messages\":[{\"role\":\"system\",\"content\":\""
                                + "You are a careful ä🙂 assistant. ".repeat(4)
                                + "\"},{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"hi\"}]}]}",
                        "{\"model\":\"m\",\"max_tokens\":3,\"prompt\":\""
                                + "Once upon a time, ".repeat(5)
                                + "\"}"
                    }) {
                final String path =
                        request.contains("messages") ? "/v1/chat/completions" : "/v1/completions";
                assertEquals(200, Gateways.post(gateway, path, request).statusCode());
                Eventually.holds(
                        "events", () -> worker.indexedBlocks() == engine.heldBlocks(0).size());
                final HttpResponse<String> again = Gateways.post(gateway, path, request);
                final JsonNode usage = GatewayHttpTest.json(again).get("usage");
                final int cached = usage.at("/prompt_tokens_details/cached_tokens").intValue();
                assertTrue(cached > 0, again.body());
                assertEquals(
                        Integer.toString(cached),
                        GatewayHttpTest.header(again, "x-kvasir-predicted-cached-tokens"));
                final JsonNode tokens =
                        GatewayHttpTest.json(Gateways.post(gateway, "/tokenize", request));
                assertEquals(usage.get("prompt_tokens"), tokens.get("count"));
                assertTrue(tokens.get("token_strs").isNull(), "not asked for");
            }
            final String named =
                    "{\"prompt\":\"h"
                            + " \u00e9\",\"add_special_tokens\":true,\"return_token_strs\":true}";
            assertEquals(
                    "[\"<|begin_of_text|>\",\"h\",\"\u0120\",\"\u00c3\",\"\u00a9\"]",
                    GatewayHttpTest.json(Gateways.post(gateway, "/tokenize", named))
                            .get("token_strs")
                            .toString());
            assertEquals(
                    "[\"h\",null]",
                    GatewayHttpTest.json(
                                    Gateways.post(
                                            gateway,
                                            "/tokenize",
                                            "{\"prompt\":[104,99999],\"return_token_strs\":true}"))
                            .get("token_strs")
                            .toString());
            assertTrue(
                    !Gateways.get(gateway, "/metrics")
                            .body()
                            .contains("kvasir_prompt_token_mismatch_total{"));
        }
    }

    /** An engine that takes any name lists its own alone: whether it has taken ours decides. */
    @ParameterizedTest
    @CsvSource({
        "'other', 404, other",
        "'other', 200, ",
        "'m', 404, ",
        "'', 404, ",
        "'other\",\"owned_by\":\"sglang', 404, "
    })
    void aWorkerThatDoesNotServeTheModelIsNamed(String listed, int tokenize, String found)
            throws Exception {
        try (FakeEngine engine = new FakeEngine(call -> call.json(200, "{}"))) {
            engine.models =
                    call ->
                            call.json(
                                    200,
                                    listed.isEmpty()
                                            ? "{\"data\":[]}"
                                            : "{\"data\":[{\"id\":\"" + listed + "\"}]}");
            engine.tokenize = call -> call.json(tokenize, "{\"tokens\":[1]}");
            try (GatewayServer gateway =
                    GatewayServer.start(
                            Gateways.config(engine.worker("w"))
                                    .set(GatewaySettings.TOKENIZER, SimModel.files())
                                    .build())) {
                Eventually.holds(
                        "compared",
                        () -> {
                            final JsonNode worker =
                                    page(gateway, "/debug/workers").at("/workers/0");
                            return !worker.at("/tokenizer_detail").asText().equals("not asked yet")
                                    && Objects.equals(
                                            found, worker.get("other_models").textValue());
                        });
            }
        }
    }

    /** Two texts of a message have a blank between them in SGLang, an end of line in vLLM. */
    @ParameterizedTest
    @CsvSource({
        "sglang, sglang, ' '",
        "vllm, vllm, '\\n'",
        "sglang, vllm, '\\n'",
        "sglang, none, ' '"
    })
    void chatsBecomeThePromptsOfTheEngines(String first, String second, String between)
            throws Exception {
        try (FakeEngine one = new FakeEngine(call -> call.json(200, "{}"));
                FakeEngine other = new FakeEngine(call -> call.json(200, "{}"))) {
            one.models = call -> call.json(200, ownedBy(first));
            other.models = call -> call.json(200, ownedBy(second));
            try (GatewayServer gateway =
                    GatewayServer.start(
                            Gateways.config(one.worker("v"), other.worker("w"))
                                    .set(GatewaySettings.TOKENIZER, SimModel.files())
                                    .build())) {
                final JsonNode expected = tokens(gateway, "\"a" + between + "b\"");
                Eventually.holds(
                        "known",
                        () ->
                                expected.equals(
                                        tokens(
                                                gateway,
                                                "[{\"type\":\"text\",\"text\":\"a\"},"
                                                        + "{\"type\":\"text\",\"text\":\"b\"}]")));
            }
        }
    }

    private static JsonNode tokens(GatewayServer gateway, String content) {
        try {
            return GatewayHttpTest.json(
                            Gateways.post(
                                    gateway,
                                    "/tokenize",
                                    "{\"messages\":[{\"role\":\"user\",\"content\":"
                                            + content
                                            + "}]}"))
                    .get("tokens");
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }

    private static String ownedBy(String owner) {
        return owner.equals("none")
                ? "no list"
                : "{\"data\":[{\"id\":\"m\",\"owned_by\":\"" + owner + "\"}]}";
    }

    @Test
    void anEngineWithOtherTokensIsNamed() throws Exception {
        try (FakeEngine engine = new FakeEngine(call -> call.json(200, "{}"))) {
            engine.tokenize =
                    call -> call.json(200, "{\"count\":2,\"max_model_len\":77,\"tokens\":[256,1]}");
            try (GatewayServer gateway =
                    GatewayServer.start(
                            Gateways.config(engine.worker("w"))
                                    .set(GatewaySettings.TOKENIZER, SimModel.files())
                                    .build())) {
                Eventually.holds(
                        "compared",
                        () ->
                                health(gateway)
                                        .at("/workers/0/tokenizer")
                                        .textValue()
                                        .equals("differs"));
                final JsonNode worker =
                        GatewayHttpTest.json(Gateways.get(gateway, "/debug/workers"))
                                .at("/workers/0");
                assertTrue(
                        worker.get("tokenizer_detail")
                                .textValue()
                                .startsWith("text sample differs from token 1 on"),
                        worker.toPrettyString());
                assertEquals(
                        77,
                        GatewayHttpTest.json(Gateways.get(gateway, "/v1/models"))
                                .at("/data/0/max_model_len")
                                .intValue());
                assertTrue(
                        Gateways.get(gateway, "/metrics")
                                .body()
                                .contains(
                                        "kvasir_worker_tokenizer{result=\"differs\",worker=\"w\"}"
                                                + " 1.0"));
            }
        }
    }

    @Test
    void aTokenizerThatCannotBeLoadedNamesItsKnob() throws Exception {
        Files.writeString(folder.resolve("tokenizer.json"), "{}", StandardCharsets.UTF_8);
        final GatewayException e =
                assertThrows(
                        GatewayException.class,
                        () ->
                                GatewayServer.start(
                                        Gateways.config()
                                                .set(GatewaySettings.TOKENIZER, folder)
                                                .build()));
        assertTrue(e.getMessage().contains("tokenizer must name"), e.getMessage());
    }

    private static JsonNode health(GatewayServer gateway) {
        return page(gateway, "/health");
    }

    private static JsonNode page(GatewayServer gateway, String path) {
        try {
            return GatewayHttpTest.json(Gateways.admin(gateway, path));
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }
}
