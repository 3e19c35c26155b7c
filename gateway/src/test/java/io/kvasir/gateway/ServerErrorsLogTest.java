package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.LogFormat;
import io.kvasir.gateway.openai.Json;
import io.kvasir.gateway.testing.FakeEngine;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.gateway.testing.MetricsPage;
import io.kvasir.gateway.testing.RawClient;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Locale;

/** What the access log and the metrics say of requests that the HTTP server answered itself. */
class ServerErrorsLogTest {
    private static final Duration SHORT = Duration.ofMillis(200);

    @TempDir Path folder;

    private final FakeEngine engine = new FakeEngine(FakeEngine.chatStream(5, 1));
    private GatewayServer gateway;

    private Path log() {
        return folder.resolve("access.log");
    }

    private void start(Duration headTimeout) {
        gateway =
                GatewayServer.start(
                        Gateways.config(engine.worker("w1"))
                                .set(GatewaySettings.HEAD_TIMEOUT, headTimeout)
                                .set(GatewaySettings.ACCESS_LOG, log().toString())
                                .set(GatewaySettings.ACCESS_LOG_FORMAT, LogFormat.JSON)
                                .build());
    }

    @AfterEach
    void stop() {
        if (gateway != null) {
            gateway.close();
        }
        engine.close();
    }

    private String answerTo(String request) throws Exception {
        try (RawClient client = new RawClient(gateway.port())) {
            return client.send(request).readAll();
        }
    }

    /** The only line; the end of the gateway writes what is left. */
    private JsonNode only() throws Exception {
        gateway.close();
        gateway = null;
        final List<String> lines = Files.readAllLines(log());
        assertEquals(1, lines.size(), lines.toString());
        return Json.MAPPER.readTree(lines.getFirst());
    }

    private static String body(String answer) {
        return answer.substring(answer.indexOf("\r\n\r\n") + 4);
    }

    private static String id(String answer) throws Exception {
        final String id =
                Json.MAPPER.readTree(body(answer)).at("/error/kvasir/request_id").textValue();
        assertTrue(
                answer.toLowerCase(Locale.ROOT).contains("\r\nx-request-id: " + id + "\r\n"),
                answer);
        return id;
    }

    @ParameterizedTest
    @CsvSource({
        "'POST /v1/completions HTTP/1.1\r\nHost: x\r\nX-A: b', POST, completions",
        "'POST /secret HTTP/1.1\r\nHost: x\r\n', POST, unknown",
        "'POST /v1/compl', -, unknown",
        "'\r\n', -, unknown"
    })
    void aLateHeadIsOne408(String begin, String method, String route) throws Exception {
        start(SHORT);
        final String answer = answerTo(begin);
        assertTrue(answer.startsWith("HTTP/1.1 408 "), answer);
        Eventually.holds("counted", () -> MetricsPage.of(gateway).sum("kvasir_requests_total") > 0);
        final MetricsPage page = MetricsPage.of(gateway);
        assertEquals(1, page.sum("kvasir_requests_total"));
        assertEquals(1, page.sum("kvasir_requests_total", "status", "408", "route", route));
        final JsonNode line = only();
        assertEquals(id(answer), line.get("request_id").textValue());
        assertEquals(408, line.get("status").intValue());
        assertEquals(method, line.get("method").textValue());
        assertEquals(route, line.get("route").textValue());
        assertTrue(line.get("duration_ms").doubleValue() >= SHORT.toMillis(), line.toString());
    }

    @ParameterizedTest
    @CsvSource({
        "'GARBAGE\r\n\r\n', 400",
        "'GET / HTTP/1.1\r\n\r\n', 400",
        "'POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: x\r\n\r\n', 400",
        "'POST /v1/completions HTTP/1.1\r\nHost: x\r\nX-A: LONG\r\n\r\n', 431",
        "'GET /LONG HTTP/1.1\r\nHost: x\r\n\r\n', 414",
        "'POST /v1/compl', 408"
    })
    void aLineHasTheBytesOfTheBodyThatTheClientGot(String request, int status) throws Exception {
        start(status == 408 ? SHORT : Duration.ofHours(1));
        final String answer = answerTo(request.replace("LONG", "a".repeat(33_000)));
        assertTrue(answer.startsWith("HTTP/1.1 " + status + " "), answer);
        final JsonNode line = only();
        assertEquals(id(answer), line.get("request_id").textValue());
        assertEquals(status, line.get("status").intValue());
        assertEquals(body(answer).length(), line.get("bytes").intValue());
    }
}
