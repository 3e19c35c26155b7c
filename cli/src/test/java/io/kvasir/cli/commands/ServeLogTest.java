package io.kvasir.cli.commands;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.cli.KvasirProcess;
import io.kvasir.cli.console.Json;
import io.kvasir.testsupport.Eventually;

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
import java.time.Duration;
import java.time.Instant;
import java.util.Map;

/** What {@code kvasir serve} logs, as a process. */
@Tag("integration") // starts processes
class ServeLogTest {
    private static final String NO_WORKER = "http://127.0.0.1:1,name=down";
    private static final int MORE_LINES_THAN_A_PIPE_HOLDS = 1_000;

    @TempDir private Path dir;

    private static KvasirProcess serve(String... more) throws IOException {
        return new KvasirProcess(arguments(more));
    }

    private static String[] arguments(String... more) {
        final String[] args = new String[more.length + 6];
        args[0] = "serve";
        args[1] = "--model=m";
        args[2] = "--port=0";
        args[3] = "--admin-port=0";
        args[4] = "--lame-duck-ms=0";
        args[5] = "--worker=" + NO_WORKER;
        System.arraycopy(more, 0, args, 6, more.length);
        return args;
    }

    private static int ask(String listening, String path, String body) throws Exception {
        try (HttpClient client = HttpClient.newHttpClient()) {
            return client.send(
                            request(listening, path, body).build(),
                            HttpResponse.BodyHandlers.discarding())
                    .statusCode();
        }
    }

    private static HttpRequest.Builder request(String listening, String path, String body) {
        return HttpRequest.newBuilder(
                        URI.create(listening.substring("listening on ".length()) + path))
                .header("x-request-id", "mine")
                .POST(HttpRequest.BodyPublishers.ofString(body));
    }

    @Test
    void aMistypedVariableIsWarnedOfAndStopsNothing() throws Exception {
        final Map<String, String> mistyped =
                Map.of("KVASIR_TEMPERATUR", "0.5", "KVASIR_SERVICE_HOST", "10.0.0.1");
        final String words = "KVASIR_TEMPERATUR has no effect";
        try (KvasirProcess serve = KvasirProcess.withVariables(mistyped, arguments())) {
            final String line = serve.await(each -> each.contains(words));
            assertTrue(line.contains(" WARN "), line);
            serve.await(each -> each.startsWith("running"));
            assertEquals(0, serve.terminate());
        }
        try (KvasirProcess check =
                KvasirProcess.withVariables(mistyped, arguments("--check-config"))) {
            check.await(each -> each.startsWith("warning: " + words));
            check.await(each -> each.equals("ok"));
            assertEquals(0, check.exitCode());
        }
    }

    @Test
    void aLevelThatIsNoneIsRefusedByEachCommand() throws Exception {
        final String words = "KVASIR_LOG=lots is none of: off, error, warn, info, debug, trace";
        final String[] hash = {"hash", "--block-size=1", "--tokens=1"};
        try (KvasirProcess process =
                KvasirProcess.withVariables(Map.of("KVASIR_LOG", "lots"), hash)) {
            process.await(each -> each.equals("kvasir hash: " + words));
            assertEquals(2, process.exitCode());
        }
        try (KvasirProcess process =
                KvasirProcess.withVariables(Map.of("KVASIR_LOG", "Info"), hash)) {
            assertEquals(0, process.exitCode());
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
    void requestsDoNotWaitForALogThatNothingReads() throws Exception {
        try (KvasirProcess serve = KvasirProcess.withUnreadErrors(arguments("--log-level=debug"));
                HttpClient client = HttpClient.newHttpClient()) {
            final String listening = serve.await(each -> each.startsWith("listening on "));
            final HttpRequest request =
                    request(listening, "/v1/completions", "{\"prompt\":[1]}")
                            .setHeader("x-request-id", "i".repeat(128))
                            .timeout(Duration.ofMinutes(1))
                            .build();
            for (int i = 0; i < MORE_LINES_THAN_A_PIPE_HOLDS; i++) {
                final int status =
                        client.send(request, HttpResponse.BodyHandlers.discarding()).statusCode();
                assertEquals(503, status);
            }
            assertEquals(0, serve.terminate());
        }
    }

    @Test
    void whatIsLoggedBeforeAFailedStartIsWrittenBeforeItsReason() throws Exception {
        final Path file = Files.createFile(dir.resolve("no-folder"));
        try (KvasirProcess serve = serve("--counters-dir=" + file)) {
            serve.await(each -> each.contains(" WARN ") && each.contains("no tokenizer is set"));
            serve.await(each -> each.startsWith("kvasir serve: "));
            assertEquals(3, serve.exitCode());
        }
    }

    @Test
    void theAccessLogGoesToStandardOutputOrIntoAFileThatCanBeRotated() throws Exception {
        final Path file = dir.resolve("access.log");
        try (KvasirProcess toFile = serve("--access-log=" + file, "--access-log-format=json");
                KvasirProcess toOutput = serve("--access-log=stdout")) {
            String listening = toFile.await(each -> each.startsWith("listening on "));
            ask(listening, "/v1/completions?api_key=secret", "{");
            Eventually.until("output", () -> Files.size(file) > 0);
            final JsonNode line = Json.MAPPER.readTree(Files.readString(file));
            assertEquals("mine", line.get("request_id").textValue());
            assertEquals(400, line.get("status").intValue());
            Files.move(file, dir.resolve("access.log.1"));
            toFile.hangUp();
            Eventually.until("a new file", () -> Files.exists(file));
            ask(listening, "/v1/completions", "{");
            Eventually.until("output", () -> Files.size(file) > 0);
            listening = toOutput.await(each -> each.startsWith("listening on "));
            ask(listening, "/v1/completions?api_key=secret", "{");
            final String text = toOutput.await(each -> each.contains(" id=mine "));
            assertTrue(text.contains("\"POST /v1/completions HTTP/1.1\" 400 "), text);
        }
    }
}
