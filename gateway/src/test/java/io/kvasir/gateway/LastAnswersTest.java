package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.UpstreamHttp2;
import io.kvasir.gateway.testing.FakeEngine;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.gateway.testing.LastAnswerEngine;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.Trials;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.net.http.HttpResponse;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;

/** An answer of HTTP/2 is whole with its last frame, whatever becomes of its connection then. */
class LastAnswersTest {
    private static final String PATH = "/v1/completions";
    private static final int ROUNDS = Trials.of(4, 15);
    private static final int TOGETHER = 4;

    @Tag("trials")
    @ParameterizedTest
    @CsvSource({
        "CLOSED, 2, false",
        "CLOSED, 40_000, false",
        "CLOSED, 40_000, true",
        "ANNOUNCED, 2, false",
        "ANNOUNCED, 40_000, true",
        "SAID_AFTERWARDS, 2, true",
        "SAID_AFTERWARDS, 40_000, false",
        "ANNOUNCED_EARLY, 2, false",
        "ANNOUNCED_EARLY, 40_000, true"
    })
    void answersComeThroughWhereTheirConnectionsEndWithThem(
            LastAnswerEngine.End end, String size, boolean streamed) throws Exception {
        final String text = "x".repeat(Integer.parseInt(size.replace("_", "")));
        final String choice = "{\"index\":0,\"text\":\"" + text + "\"}";
        final String answer =
                streamed
                        ? FakeEngine.event(choice) + "data: [DONE]\n\n"
                        : "{\"choices\":[" + choice + "],\"usage\":{\"prompt_tokens\":1}}";
        final String type = streamed ? "text/event-stream" : "application/json";
        try (LastAnswerEngine engine = new LastAnswerEngine(end, type, answer);
                GatewayServer gateway =
                        GatewayServer.start(
                                Gateways.config(engine.worker("ends"))
                                        .set(
                                                GatewaySettings.UPSTREAM_HTTP2,
                                                UpstreamHttp2.PRIOR_KNOWLEDGE)
                                        .build());
                ExecutorService clients = Executors.newVirtualThreadPerTaskExecutor()) {
            Gateways.awaitContact(gateway);
            final int before = engine.answered.get();
            for (int round = 0; round < ROUNDS; round++) {
                final List<Future<HttpResponse<String>>> answers = new ArrayList<>();
                for (int i = 0; i < TOGETHER; i++) {
                    final String prompt = "{\"prompt\":[" + i + "],\"stream\":" + streamed + "}";
                    answers.add(clients.submit(() -> Gateways.post(gateway, PATH, prompt)));
                }
                for (Future<HttpResponse<String>> each : answers) {
                    final HttpResponse<String> got = each.get(1, TimeUnit.MINUTES);
                    assertEquals(200, got.statusCode(), got.body());
                    assertEquals(answer, got.body());
                }
            }
            assertTrue(
                    gateway.workersPage().contains("\"last_error\":null"), gateway.workersPage());
            assertEquals(ROUNDS * TOGETHER, engine.answered.get() - before, "computed twice");
            Eventually.holds("no booking is left", () -> gateway.router().activeLeases() == 0);
        }
    }
}
