package io.kvasir.cli;

import static org.junit.jupiter.api.Assertions.assertEquals;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.CleanupMode;
import org.junit.jupiter.api.io.TempDir;

import java.net.URI;
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
    private static final int REQUESTS = Integer.getInteger("kvasir.split.requests", 300);

    @TempDir(cleanup = CleanupMode.ON_SUCCESS)
    static Path logs;

    private static RealPair pair;

    private final Random random = new Random(Seeds.next("RealSplitTest"));

    /** Text and usage of one answer. */
    private record Answer(String text, int promptTokens, int completionTokens, int cachedTokens) {
        static Answer of(String text, JsonNode usage) {
            return new Answer(
                    text,
                    usage.path("prompt_tokens").intValue(),
                    usage.path("completion_tokens").intValue(),
                    usage.at("/prompt_tokens_details/cached_tokens").intValue());
        }

        /** The same of a server that had nothing in its cache. */
        Answer uncached() {
            return new Answer(text, promptTokens, completionTokens, 0);
        }
    }

    @BeforeAll
    static void start() throws Exception {
        pair = RealPair.start(logs, config -> {});
    }

    @AfterAll
    static void stop() {
        if (pair != null) {
            pair.close();
        }
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
                RealPair.HTTP.send(post(server, body), HttpResponse.BodyHandlers.ofString());
        assertEquals(200, answer.statusCode(), answer.body());
        if (!body.path("stream").booleanValue()) {
            final JsonNode whole = JSON.readTree(answer.body());
            return Answer.of(text(whole), whole.path("usage"));
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
        return Answer.of(text.toString(), usage);
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
        final double before = pair.metric("kvasir_split_requests_total");
        final double hitsBefore = pair.prefill.cacheHits();
        long cachedTokens = 0;
        for (int i = 0; i < REQUESTS; i++) {
            final ObjectNode body = request(i);
            final Answer split = ask(pair.url(), body);
            cachedTokens += split.cachedTokens();
            body.put("cache_salt", "alone-" + i); // computes all of it
            assertEquals(ask(pair.decode.uri(), body), split.uncached(), body.toString());
        }
        assertEquals(
                pair.prefill.cacheHits() - hitsBefore,
                (double) cachedTokens,
                "as the prefill says");
        assertEquals(REQUESTS, pair.metric("kvasir_split_requests_total") - before);
        assertEquals(0, pair.metric("kvasir_leg_failures_total"));
        pair.prefill.awaitUsage(false);
        System.out.printf(
                "%d requests split, prompts predicted exactly: %.0f, otherwise: %.0f%n",
                REQUESTS,
                pair.metric("kvasir_cache_prediction_total{result=\"exact\",worker=\"p\"}"),
                pair.metric("kvasir_cache_prediction_total{result=\"over\",worker=\"p\"}")
                        + pair.metric(
                                "kvasir_cache_prediction_total{result=\"under\",worker=\"p\"}"));
    }

    @Test
    void noBlocksStayBehindWhenClientsLeaveAtAnyMoment() throws Exception {
        for (int i = 0; i < 40; i++) {
            final ObjectNode body = request(1000 + i);
            body.put("max_tokens", 200);
            final CompletableFuture<?> asked =
                    RealPair.HTTP.sendAsync(
                            post(pair.url(), body), HttpResponse.BodyHandlers.ofString());
            Thread.sleep(random.nextInt(300)); // any phase of it
            asked.cancel(true);
        }
        pair.prefill.awaitUsage(false);
    }
}
