package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.ModelConfig;
import io.kvasir.gateway.openai.Json;
import io.kvasir.gateway.testing.FakeEngine;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.gateway.testing.MetricsPage;
import io.kvasir.gateway.testing.RawClient;
import io.kvasir.prompt.chat.SimModel;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.Test;

import java.net.http.HttpResponse;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;

/** Requests that bring a chat template along. */
class RequestTemplateTest {
    private static final String ENDLESS =
            "{% for a in range(99999) %}".repeat(4) + "{% endfor %}".repeat(4);

    private static String chat(String template) {
        return chat("m", template);
    }

    private static String chat(String model, String template) {
        final ObjectNode request = Json.MAPPER.createObjectNode().put("model", model);
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

    @Test
    void aClientThatLeavesEndsTheRenderingForAModelThatAloneTrustsTemplates() throws Exception {
        final ModelConfig further =
                ModelConfig.parse(
                        "name=n,tokenizer="
                                + SimModel.KEYWORD
                                + ",trust-request-chat-template=true,template-max-steps="
                                + Long.MAX_VALUE);
        try (FakeEngine engine = engine();
                GatewayServer gateway =
                        GatewayServer.start(
                                config(engine)
                                        .set(GatewaySettings.MODELS, List.of(further))
                                        .set(GatewaySettings.PROMPT_THREADS, 1)
                                        .build())) {
            try (RawClient client = new RawClient(gateway.port())) {
                client.post("/v1/chat/completions", chat("n", ENDLESS));
                Eventually.holds("it is rendered", RequestTemplateTest::renders);
            }
            Eventually.holds(
                    "the client that left is counted",
                    () ->
                            MetricsPage.of(gateway).sum("kvasir_requests_total", "status", "499")
                                    == 1);
            final HttpResponse<String> next = post(gateway, "hi");
            assertTrue(next.body().contains("engine"), "the only thread is free: " + next.body());
        }
    }

    private static boolean renders() {
        return Thread.getAllStackTraces().entrySet().stream()
                .filter(thread -> thread.getKey().getName().startsWith("kvasir-prompt-"))
                .flatMap(thread -> Arrays.stream(thread.getValue()))
                .anyMatch(frame -> frame.getMethodName().equals("render"));
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
