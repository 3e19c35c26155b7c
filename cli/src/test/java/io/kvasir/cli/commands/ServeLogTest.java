package io.kvasir.cli.commands;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.cli.KvasirProcess;
import io.kvasir.cli.console.Json;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;

/** What {@code kvasir serve} logs, as a process. */
@Tag("integration") // starts processes
class ServeLogTest {
    private static final String NO_WORKER = "http://127.0.0.1:1,name=down";

    @TempDir private Path dir;

    private static KvasirProcess serve(String... more) throws IOException {
        final String[] args = new String[more.length + 6];
        args[0] = "serve";
        args[1] = "--model=m";
        args[2] = "--port=0";
        args[3] = "--admin-port=0";
        args[4] = "--lame-duck-ms=0";
        args[5] = "--worker=" + NO_WORKER;
        System.arraycopy(more, 0, args, 6, more.length);
        return new KvasirProcess(args);
    }

    private static int ask(String listening, String path, String body) throws Exception {
        final HttpRequest request =
                HttpRequest.newBuilder(
                                URI.create(listening.substring("listening on ".length()) + path))
                        .header("x-request-id", "mine")
                        .POST(HttpRequest.BodyPublishers.ofString(body))
                        .build();
        try (HttpClient client = HttpClient.newHttpClient()) {
            return client.send(request, HttpResponse.BodyHandlers.discarding()).statusCode();
        }
    }

    @Test
    void linesHaveADateWithItsZone() throws Exception {
        try (KvasirProcess serve = serve()) {
            final String line = serve.await(each -> each.contains(" WARN "));
            assertTrue(
                    line.matches(
                            "\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}(Z|[+-]\\d\\d:\\d\\d)"
                                + " WARN +[A-Za-z0-9]+: .+"),
                    line);
            serve.await(each -> each.startsWith("running"));
            assertEquals(0, serve.terminate());
        }
    }

    @Test
    void jsonLinesHaveTheRequestsIdAsAField() throws Exception {
        try (KvasirProcess serve = serve("--log-format=json", "--log-level=debug")) {
            final String listening = serve.await(each -> each.startsWith("listening on "));
            serve.await(each -> each.startsWith("running"));
            assertEquals(503, ask(listening, "/v1/completions", "{\"prompt\":[1]}"));
            final JsonNode line =
                    Json.MAPPER.readTree(serve.await(each -> each.contains("\"request_id\"")));
            assertEquals("mine", line.get("request_id").textValue());
            assertEquals("DEBUG", line.get("level").textValue());
            assertTrue(line.get("message").textValue().startsWith("mine: not routed: "));
            assertTrue(line.get("logger_name").textValue().startsWith("io.kvasir.gateway."));
            Instant.parse(line.get("@timestamp").textValue());
            assertEquals(0, serve.terminate());
        }
    }

    @Test
    void theAccessLogGoesToStandardOutputOrIntoAFileThatCanBeRotated() throws Exception {
        final Path file = dir.resolve("access.log");
        try (KvasirProcess toFile = serve("--access-log=" + file, "--access-log-format=json");
                KvasirProcess toOutput = serve("--access-log=stdout")) {
            String listening = toFile.await(each -> each.startsWith("listening on "));
            ask(listening, "/v1/completions?api_key=secret", "{");
            await(() -> Files.size(file) > 0);
            final JsonNode line = Json.MAPPER.readTree(Files.readString(file));
            assertEquals("mine", line.get("request_id").textValue());
            assertEquals(400, line.get("status").intValue());
            Files.move(file, dir.resolve("access.log.1"));
            toFile.hangUp();
            await(() -> Files.exists(file));
            ask(listening, "/v1/completions", "{");
            await(() -> Files.size(file) > 0);
            listening = toOutput.await(each -> each.startsWith("listening on "));
            ask(listening, "/v1/completions?api_key=secret", "{");
            final String text = toOutput.await(each -> each.contains(" id=mine "));
            assertTrue(text.contains("\"POST /v1/completions HTTP/1.1\" 400 "), text);
        }
    }

    private interface Condition {
        boolean holds() throws IOException;
    }

    private static void await(Condition condition) throws Exception {
        final long startNs = System.nanoTime();
        while (!condition.holds()) {
            assertTrue(System.nanoTime() - startNs < 60_000_000_000L, "not within a minute");
            Thread.sleep(10);
        }
    }
}
