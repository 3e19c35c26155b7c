package io.kvasir.cli;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.gateway.GatewayServer;
import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.WorkerConfig;
import io.kvasir.router.RouterSettings;
import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.CleanupMode;
import org.junit.jupiter.api.io.TempDir;

import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Path;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/**
 * The gateway in front of a real prefill and a real decode server that move blocks through NIXL:
 * what a split request answers is what one server would answer, and no blocks stay behind.
 */
@Tag("real-engine")
class RealSplitTest {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final HttpClient HTTP =
            HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
    private static final int REQUESTS = Integer.getInteger("kvasir.split.requests", 300);

    @TempDir(cleanup = CleanupMode.ON_SUCCESS)
    static Path logs;

    private static VllmServer decode;
    private static PrefillServer prefill;
    private static GatewayServer gateway;

    private final Random random = new Random(Seeds.next("RealSplitTest"));

    /** Text and usage of one answer. */
    private record Answer(String text, int promptTokens, int completionTokens) {}

    @BeforeAll
    static void start() throws Exception {
        final Path folder = VllmServer.installed();
        final VllmServer first = new VllmServer(folder, logs.resolve("prefill.log")).transferring();
        prefill = new PrefillServer(first).start();
        decode = new VllmServer(folder, logs.resolve("decode.log")).transferring();
        decode.start();
        prefill.awaitHealthy();
        decode.awaitHealthy();
        gateway =
                GatewayServer.start(
                        GatewayConfig.builder()
                                .set(GatewaySettings.PORT, 0)
                                .set(GatewaySettings.ADMIN_PORT, 0L)
                                .set(GatewaySettings.TRUSTED_NETWORKS, List.of("127.0.0.1"))
                                .set(GatewaySettings.MODEL, VllmServer.MODEL)
                                .set(GatewaySettings.TOKENIZER, folder.resolve("model"))
                                .set(RouterSettings.BLOCK_SIZE, VllmServer.BLOCK_SIZE)
                                .worker(WorkerConfig.parse(first.flag("p") + ",role=prefill"))
                                .worker(WorkerConfig.parse(decode.flag("d") + ",role=decode"))
                                .build());
        final long startNs = System.nanoTime();
        while (!page("/health").contains("\"up\"") || page("/health").contains("\"unknown\"")) {
            assertTrue(System.nanoTime() - startNs < 60_000_000_000L, page("/health"));
            Thread.sleep(20);
        }
    }

    @AfterAll
    static void stop() {
        if (gateway != null) {
            gateway.close();
        }
        if (prefill != null) {
            prefill.close();
        }
        if (decode != null) {
            decode.close();
        }
    }

    private static String page(String path) throws Exception {
        return HTTP.send(
                        HttpRequest.newBuilder(URI.create(gateway.adminUrl() + path)).build(),
                        HttpResponse.BodyHandlers.ofString())
                .body();
    }

    private static double metric(String prefix) throws Exception {
        return page("/metrics")
                .lines()
                .filter(line -> line.startsWith(prefix))
                .mapToDouble(line -> Double.parseDouble(line.substring(line.lastIndexOf(' ') + 1)))
                .sum();
    }

    private ObjectNode request(int i) {
        final ObjectNode body = JSON.createObjectNode();
        body.put("model", VllmServer.MODEL)
                .put("temperature", 0)
                .put("ignore_eos", true)
                .put("max_tokens", List.of(1, 4, 12).get(random.nextInt(3)));
        final String text =
                "system " + "word ".repeat(20 * random.nextInt(5)) + "turn " + i + ' ' + words();
        if (random.nextBoolean()) {
            body.put("prompt", text);
        } else {
            final ArrayNode messages = body.putArray("messages");
            messages.addObject().put("role", "user").put("content", text);
        }
        if (random.nextBoolean()) {
            body.put("stream", true).putObject("stream_options").put("include_usage", true);
        }
        return body;
    }

    private String words() {
        return IntStream.range(0, random.nextInt(60))
                .mapToObj(_ -> "w" + random.nextInt(50))
                .collect(Collectors.joining(" "));
    }

    private static HttpRequest post(URI server, JsonNode body) {
        return HttpRequest.newBuilder(
                        server.resolve(
                                body.has("messages") ? "/v1/chat/completions" : "/v1/completions"))
                .header("content-type", "application/json")
                .POST(HttpRequest.BodyPublishers.ofString(body.toString()))
                .build();
    }

    private static Answer ask(URI server, JsonNode body) throws Exception {
        final HttpResponse<String> answer =
                HTTP.send(post(server, body), HttpResponse.BodyHandlers.ofString());
        assertEquals(200, answer.statusCode(), answer.body());
        if (!body.path("stream").booleanValue()) {
            final JsonNode whole = JSON.readTree(answer.body());
            return new Answer(
                    text(whole),
                    whole.at("/usage/prompt_tokens").intValue(),
                    whole.at("/usage/completion_tokens").intValue());
        }
        final StringBuilder text = new StringBuilder();
        JsonNode usage = JSON.createObjectNode();
        for (String line : answer.body().lines().toList()) {
            if (line.startsWith("data: {")) {
                final JsonNode event = JSON.readTree(line.substring("data: ".length()));
                text.append(text(event));
                usage = event.hasNonNull("usage") ? event.get("usage") : usage;
            }
        }
        return new Answer(
                text.toString(),
                usage.path("prompt_tokens").intValue(),
                usage.path("completion_tokens").intValue());
    }

    private static String text(JsonNode event) {
        final JsonNode choice = event.at("/choices/0");
        for (String path : List.of("/text", "/message/content", "/delta/content")) {
            if (choice.at(path).isTextual()) {
                return choice.at(path).textValue();
            }
        }
        return "";
    }

    @Test
    void everySplitAnswerIsThatOfOneServerAndNoBlocksStayBehind() throws Exception {
        final double before = metric("kvasir_split_requests_total");
        for (int i = 0; i < REQUESTS; i++) {
            final ObjectNode body = request(i);
            final Answer split = ask(URI.create(gateway.url()), body);
            body.put("cache_salt", "alone-" + i); // computes all of it
            assertEquals(ask(decode.uri(), body), split, body.toString());
        }
        assertEquals(REQUESTS, metric("kvasir_split_requests_total") - before);
        assertEquals(0, metric("kvasir_leg_failures_total"));
        prefill.awaitUsage(false);
        System.out.printf(
                "%d requests split, prompts predicted exactly: %.0f, otherwise: %.0f%n",
                REQUESTS,
                metric("kvasir_cache_prediction_total{result=\"exact\",worker=\"p\"}"),
                metric("kvasir_cache_prediction_total{result=\"over\",worker=\"p\"}")
                        + metric("kvasir_cache_prediction_total{result=\"under\",worker=\"p\"}"));
    }

    @Test
    void noBlocksStayBehindWhenClientsLeaveAtAnyMoment() throws Exception {
        for (int i = 0; i < 40; i++) {
            final ObjectNode body = request(1000 + i);
            body.put("max_tokens", 200);
            final CompletableFuture<?> asked =
                    HTTP.sendAsync(
                            post(URI.create(gateway.url()), body),
                            HttpResponse.BodyHandlers.ofString());
            Thread.sleep(random.nextInt(300)); // any phase of it
            asked.cancel(true);
        }
        prefill.awaitUsage(false);
    }
}
