package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewayException;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.LogFormat;
import io.kvasir.gateway.openai.Json;
import io.kvasir.gateway.testing.FakeEngine;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.gateway.testing.RawClient;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.List;
import java.util.regex.Pattern;

class AccessLogTest {
    private static final Pattern COMMON =
            Pattern.compile(
                    "127\\.0\\.0\\.1 - - \\[\\d\\d/[A-Z][a-z]{2}/\\d{4}:\\d\\d:\\d\\d:\\d\\d"
                        + " [+-]\\d{4}] \"[A-Z-]+ [^ \"]+ HTTP/1\\.[01]\" \\d{3} \\d+( [a-z_]+=[^"
                        + " ]+)+");

    @TempDir Path folder;

    private final FakeEngine engine = new FakeEngine(FakeEngine.chatStream(5, 1));
    private GatewayServer gateway;

    private Path log() {
        return folder.resolve("access.log");
    }

    private void start(LogFormat format) {
        gateway =
                GatewayServer.start(
                        Gateways.config(engine.worker("w1"))
                                .set(GatewaySettings.ACCESS_LOG, log().toString())
                                .set(GatewaySettings.ACCESS_LOG_FORMAT, format)
                                .build());
    }

    @AfterEach
    void stop() {
        if (gateway != null) {
            gateway.close();
        }
        engine.close();
    }

    private static List<String> lines(Path file) {
        try {
            return Files.exists(file) ? Files.readAllLines(file) : List.of();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private List<String> awaitLines(int count) throws InterruptedException {
        Eventually.holds(count + " lines", () -> lines(log()).size() >= count);
        assertEquals(count, lines(log()).size());
        return lines(log());
    }

    private JsonNode only() throws Exception {
        return Json.MAPPER.readTree(awaitLines(1).getFirst());
    }

    @Test
    void aStreamIsOneLineWithAllThatIsKnown() throws Exception {
        start(LogFormat.JSON);
        final String body =
                Gateways.post(
                                gateway,
                                "/v1/chat/completions?api_key=sesame",
                                "{\"messages\":[{\"role\":\"user\",\"content\":\"my words\"}],"
                                        + "\"stream\":true}",
                                "x-request-id",
                                "mine",
                                "Authorization",
                                "Bearer sesame")
                        .body();
        final JsonNode line = only();
        assertEquals("mine", line.get("request_id").textValue());
        assertEquals("127.0.0.1", line.get("remote").textValue());
        assertEquals("POST", line.get("method").textValue());
        assertEquals("chat", line.get("route").textValue());
        assertEquals("HTTP/1.1", line.get("protocol").textValue());
        assertEquals(200, line.get("status").intValue());
        assertEquals(body.length(), line.get("bytes").intValue());
        assertEquals("w1", line.get("worker").textValue());
        assertEquals("kv", line.get("mode").textValue());
        assertEquals("m", line.get("model").textValue());
        assertEquals(3, line.get("tokens_in").intValue());
        assertEquals(5, line.get("tokens_out").intValue());
        final double firstByte = line.get("ttfb_ms").doubleValue();
        final double whole = line.get("duration_ms").doubleValue();
        assertTrue(firstByte > 0 && firstByte < whole && whole < 60_000, line.toString());
        Instant.parse(line.get("@timestamp").textValue());
        for (String secret : List.of("sesame", "words", "api_key")) {
            assertFalse(line.toString().contains(secret), line.toString());
        }
    }

    @Test
    void aLineThatAFullDiskHasCutIsEnded() throws Exception {
        Files.writeString(log(), "{\"status\":2");
        start(LogFormat.JSON);
        Gateways.post(gateway, "/v1/completions", "{");
        assertEquals("{\"status\":2", awaitLines(2).getFirst());
        assertEquals(400, Json.MAPPER.readTree(lines(log()).get(1)).get("status").intValue());
    }

    @Test
    void whatIsNotKnownIsNull() throws Exception {
        start(LogFormat.JSON);
        Gateways.post(gateway, "/v1/completions", "{");
        final JsonNode line = only();
        assertEquals(400, line.get("status").intValue());
        for (String name : List.of("worker", "model", "tokens_in", "tokens_out")) {
            assertTrue(line.get(name).isNull(), line.toString());
        }
    }

    @Test
    void textIsTheCommonLogFormatWithMore() throws Exception {
        start(LogFormat.TEXT);
        Gateways.post(
                gateway,
                "/v1/chat/completions",
                "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],\"stream\":true}");
        awaitLines(1); // else those of other connections may come before it
        Gateways.get(gateway, "/v1/models?a=b");
        awaitLines(2);
        Gateways.get(gateway, "/secret/path");
        awaitLines(3);
        try (RawClient client = new RawClient(gateway.port())) {
            client.send("BREW /pot HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").readAll();
        }
        awaitLines(4);
        try (RawClient client = new RawClient(gateway.port())) {
            client.send("\u001b[31mnonsense\r\n\r\n").readAll();
        }
        final List<String> lines = awaitLines(5);
        for (String line : lines) {
            assertTrue(COMMON.matcher(line).matches(), line);
        }
        assertTrue(lines.get(0).contains("\"POST /v1/chat/completions HTTP/1.1\" 200 "));
        assertTrue(lines.get(0).contains(" worker=w1 "), lines.get(0));
        assertTrue(lines.get(0).endsWith(" tokens_in=3 tokens_out=5"), lines.get(0));
        assertTrue(lines.get(1).contains("\"GET /v1/models HTTP/1.1\" 200 "), lines.get(1));
        assertTrue(lines.get(2).contains("\"GET - HTTP/1.1\" 404 "), lines.get(2));
        assertTrue(lines.get(3).contains("\"- - HTTP/1.1\" 404 "), lines.get(3));
        assertTrue(lines.get(4).contains(" 400 "), lines.get(4));
    }

    @Test
    void aClientThatLeavesIsALineWith499() throws Exception {
        engine.script = call -> call.awaitClientGone(60);
        start(LogFormat.JSON);
        try (RawClient client = new RawClient(gateway.port())) {
            client.post("/v1/completions", "{\"prompt\":[1,2]}");
            Eventually.holds("sent", () -> engine.inFlight.get() == 1);
        }
        final JsonNode line = only();
        assertEquals(499, line.get("status").intValue());
        assertEquals("w1", line.get("worker").textValue());
        assertEquals(2, line.get("tokens_in").intValue());
    }

    @Test
    void afterAReloadLinesGoIntoANewFile() throws Exception {
        start(LogFormat.JSON);
        Gateways.get(gateway, "/live");
        awaitLines(1);
        final Path rotated = Files.move(log(), folder.resolve("access.log.1"));
        gateway.reload();
        Eventually.holds("a new file", () -> Files.exists(log()));
        Gateways.get(gateway, "/live");
        awaitLines(1);
        assertEquals(1, lines(rotated).size());
    }

    @Test
    void whatWasBeforeStaysAndTheEndWritesWhatIsLeft() throws Exception {
        Files.writeString(log(), "before\n");
        start(LogFormat.TEXT);
        for (int i = 0; i < 500; i++) {
            Gateways.get(gateway, "/live");
        }
        gateway.close();
        gateway = null;
        final List<String> lines = lines(log());
        assertEquals("before", lines.getFirst());
        assertTrue(lines.size() >= 500, lines.size() + " lines");
    }

    @Test
    void aFileThatCannotBeOpenedIsRefusedAtStart() throws Exception {
        final Path pipe = folder.resolve("pipe"); // which nothing reads: opening it would wait
        assertEquals(0, new ProcessBuilder("mkfifo", pipe.toString()).start().waitFor());
        for (Path file : List.of(folder, folder.resolve("none/access.log"), pipe)) {
            final GatewayConfig config =
                    Gateways.config(engine.worker("w1"))
                            .set(GatewaySettings.ACCESS_LOG, file.toString())
                            .build();
            final GatewayException refused =
                    assertThrows(GatewayException.class, () -> GatewayServer.start(config));
            assertTrue(refused.getMessage().contains("access-log"), refused.getMessage());
        }
    }
}
