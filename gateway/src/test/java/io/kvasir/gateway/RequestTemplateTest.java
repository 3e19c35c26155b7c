package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.openai.Json;
import io.kvasir.gateway.testing.FakeEngine;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.prompt.chat.SimModel;

import org.junit.jupiter.api.Test;

import java.net.http.HttpResponse;
import java.nio.file.Path;

/** Requests that bring a chat template along. */
class RequestTemplateTest {
    private static String chat(String template) {
        final ObjectNode request = Json.MAPPER.createObjectNode().put("model", "m");
        request.putArray("messages").addObject().put("role", "user").put("content", "x");
        return request.put("chat_template", template).toString();
    }

    private static GatewayConfig.Builder config(FakeEngine engine) {
        return Gateways.config(engine.worker("w"))
                .set(GatewaySettings.TOKENIZER, Path.of(SimModel.KEYWORD));
    }

    private static FakeEngine engine() throws Exception {
        return new FakeEngine(call -> call.json(400, "{\"error\":{\"message\":\"engine\"}}"));
    }

    private static HttpResponse<String> post(GatewayServer gateway, String template)
            throws Exception {
        return Gateways.post(gateway, "/v1/chat/completions", chat(template));
    }

    @Test
    void theEngineAnswersThemUnlessTheyAreTrusted() throws Exception {
        try (FakeEngine engine = engine();
                GatewayServer gateway = GatewayServer.start(config(engine).build())) {
            final HttpResponse<String> answer = post(gateway, "{{ 'a' * 40000000 }}");
            assertEquals(400, answer.statusCode());
            assertTrue(answer.body().contains("engine"), answer.body());
            assertEquals(0, promptTokens(gateway));
            final HttpResponse<String> tokens = Gateways.post(gateway, "/tokenize", chat("hi"));
            assertEquals(400, tokens.statusCode());
            assertTrue(
                    tokens.body().contains("--trust-request-chat-template is not set"),
                    tokens.body());
        }
    }

    @Test
    void aTrustedOneIsRenderedUnderLimits() throws Exception {
        try (FakeEngine engine = engine();
                GatewayServer gateway =
                        GatewayServer.start(
                                config(engine)
                                        .set(GatewaySettings.TRUST_REQUEST_CHAT_TEMPLATE, true)
                                        .set(GatewaySettings.TEMPLATE_MAX_OUTPUT_CHARS, 5000L)
                                        .build())) {
            final HttpResponse<String> good = post(gateway, "{{ messages[0].content * 7 }}");
            assertTrue(good.body().contains("engine"), good.body());
            assertEquals(7, promptTokens(gateway));
            refused(post(gateway, "{{ 'aaaaaaaaaa' * 2000000000 }}"), "template-max-memory-bytes");
            refused(
                    post(gateway, "{{ " + "(".repeat(200_000) + "1" + ")".repeat(200_000) + " }}"),
                    "template-max-depth");
            refused(
                    post(
                            gateway,
                            "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}"
                                    + "{% endfor %}"),
                    "template-max-steps");
            refused(
                    Gateways.post(gateway, "/tokenize", chat("{{ range(99999)|list }}")),
                    "template-max-output-chars");
        }
    }

    private static int promptTokens(GatewayServer gateway) throws Exception {
        return GatewayHttpTest.json(Gateways.get(gateway, "/debug/decisions?limit=1"))
                .at("/decisions/0/tokens")
                .intValue();
    }

    private static void refused(HttpResponse<String> answer, String setting) {
        assertEquals(400, answer.statusCode(), answer.body());
        assertTrue(answer.body().contains(setting), answer.body());
    }
}
