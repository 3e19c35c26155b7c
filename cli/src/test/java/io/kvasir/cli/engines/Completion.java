package io.kvasir.cli.engines;

import static org.junit.jupiter.api.Assertions.assertEquals;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import java.net.URI;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.List;
import java.util.Random;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/** What a server answered to one completion, streamed or not: its text and the usage it states. */
record Completion(String text, int promptTokens, int completionTokens, int cachedTokens) {
    private static final ObjectMapper JSON = new ObjectMapper();

    /**
     * A request at temperature 0: chat or completion, streamed with its usage or whole, with a
     * prefix that others share and a number of its own.
     */
    static ObjectNode randomRequest(Random random, int number) {
        final ObjectNode body = JSON.createObjectNode();
        body.put("model", EngineServer.MODEL)
                .put("temperature", 0)
                .put("ignore_eos", true)
                .put("max_tokens", List.of(1, 4, 12).get(random.nextInt(3)));
        final String words =
                IntStream.range(0, random.nextInt(60))
                        .mapToObj(_ -> "w" + random.nextInt(50))
                        .collect(Collectors.joining(" "));
        final String text =
                "system " + "word ".repeat(20 * random.nextInt(5)) + "turn " + number + ' ' + words;
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

    static HttpRequest post(URI server, JsonNode body) {
        return HttpRequest.newBuilder(
                        server.resolve(
                                body.has("messages") ? "/v1/chat/completions" : "/v1/completions"))
                .header("content-type", "application/json")
                .POST(HttpRequest.BodyPublishers.ofString(body.toString()))
                .build();
    }

    /** Asks, and fails where the answer is an error. */
    static Completion ask(URI server, JsonNode body) throws Exception {
        final HttpResponse<String> answer =
                EngineServer.HTTP.send(post(server, body), HttpResponse.BodyHandlers.ofString());
        assertEquals(200, answer.statusCode(), answer.body());
        if (!body.path("stream").booleanValue()) {
            final JsonNode whole = JSON.readTree(answer.body());
            return of(text(whole), whole.path("usage"));
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
        return of(text.toString(), usage);
    }

    private static Completion of(String text, JsonNode usage) {
        return new Completion(
                text,
                usage.path("prompt_tokens").intValue(),
                usage.path("completion_tokens").intValue(),
                usage.at("/prompt_tokens_details/cached_tokens").intValue());
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

    /** The same of a server that had nothing in its cache. */
    Completion uncached() {
        return new Completion(text, promptTokens, completionTokens, 0);
    }
}
