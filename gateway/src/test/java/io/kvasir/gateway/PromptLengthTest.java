package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.openai.InferenceRequest;
import io.kvasir.gateway.openai.RequestParser;
import io.kvasir.gateway.routing.PromptReader;
import io.kvasir.gateway.testing.FakeEngine;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.prompt.chat.ChatModel;
import io.kvasir.prompt.chat.PromptRules;
import io.kvasir.prompt.chat.SimModel;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;

/** Prompts that are longer than any worker takes. */
class PromptLengthTest {
    private static final int LIMIT = 77;

    private static String text(int tokens, String more) {
        return "{\"model\":\"m\",\"prompt\":\"" + "a".repeat(tokens) + "\"" + more + "}";
    }

    private static String chat(int bytes) {
        return "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\""
                + "a".repeat(bytes)
                + "\"}]}";
    }

    private static void refused(GatewayServer gateway, String path, String body) throws Exception {
        final HttpResponse<String> answer = Gateways.post(gateway, path, body);
        assertEquals(400, answer.statusCode(), answer.body());
        assertTrue(answer.body().contains("maximum context length is 77 tokens"), answer.body());
    }

    @Test
    void areRefusedBeforeTheyAreTokenizedToTheEnd() throws Exception {
        try (FakeEngine engine = new FakeEngine(call -> call.json(200, "{}"))) {
            engine.tokenize =
                    call -> call.json(200, "{\"count\":1,\"max_model_len\":77,\"tokens\":[1]}");
            try (GatewayServer gateway =
                    GatewayServer.start(
                            Gateways.config(engine.worker("w"))
                                    .set(GatewaySettings.TOKENIZER, Path.of(SimModel.KEYWORD))
                                    .build())) {
                final String completions = "/v1/completions";
                Eventually.holds(
                        "the limit is known",
                        () -> {
                            try {
                                return Gateways.get(gateway, "/v1/models")
                                        .body()
                                        .contains("\"max_model_len\":77");
                            } catch (Exception e) {
                                throw new IllegalStateException(e);
                            }
                        });
                assertEquals(
                        200, Gateways.post(gateway, completions, text(LIMIT - 1, "")).statusCode());
                refused(gateway, completions, text(LIMIT + 1, ""));
                refused(gateway, completions, text(400_000, ""));
                refused(gateway, "/v1/chat/completions", chat(400_000));
                refused(
                        gateway,
                        completions,
                        "{\"model\":\"m\",\"prompt\":[\"a\",\"" + "b".repeat(78) + "\"]}");
                assertEquals(
                        200,
                        Gateways.post(
                                        gateway,
                                        completions,
                                        text(LIMIT + 1, ",\"truncate_prompt_tokens\":-1"))
                                .statusCode());
                final HttpResponse<String> counted =
                        Gateways.post(gateway, "/tokenize", text(500, ""));
                assertEquals(200, counted.statusCode(), counted.body());
            }
        }
    }

    /** Engines hold one token back for the answer where its length has a limit. */
    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "COMPLETIONS | \"prompt\":\"%s\" | 76",
                "COMPLETIONS | \"prompt\":\"%s\",\"max_tokens\":null | 77",
                "COMPLETIONS | \"prompt\":\"%s\",\"max_tokens\":0.0 | 77",
                "COMPLETIONS | \"prompt\":\"%s\",\"max_tokens\":\"5\" | 76",
                "CHAT | \"messages\":[{\"role\":\"user\",\"content\":\"%s\"}] | 77",
                "CHAT | \"messages\":[{\"role\":\"user\",\"content\":\"%s\"}],\"max_tokens\":5 |"
                        + " 76",
                "CHAT | \"messages\":[{\"role\":\"user\",\"content\":\"%s\"}],\"max_tokens\":5,"
                        + "\"max_completion_tokens\":0 | 77",
                "CHAT | \"messages\":[{\"role\":\"user\",\"content\":\"%s\"}],\"max_tokens\":0,"
                        + "\"max_completion_tokens\":5 | 76",
                "CHAT | \"messages\":[{\"role\":\"user\",\"content\":\"%s\"}],\"max_tokens\":5,"
                        + "\"max_completion_tokens\":null | 76",
            })
    void areBookedAsTheEndThatTheModelTakesWhereTheRequestAsksForIt(
            InferenceRequest.Route route, String members, int expected) throws Exception {
        try (ChatModel model = ChatModel.simulated()) {
            final PromptReader reader =
                    new PromptReader(
                            GatewayConfig.builder().set(GatewaySettings.MODEL, "m").build(),
                            model,
                            () -> LIMIT,
                            () -> false,
                            () -> PromptRules.VLLM,
                            _ -> false);
            final String body =
                    "{\"truncate_prompt_tokens\":-1," + members.formatted("a".repeat(200)) + "}";
            final int[] tokens =
                    reader.read(
                                    RequestParser.parse(
                                            route, body.getBytes(StandardCharsets.UTF_8)),
                                    null,
                                    "id")
                            .tokens();
            assertEquals(expected, tokens.length);
        }
    }
}
