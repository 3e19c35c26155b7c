package io.kvasir.sim.testing;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;

import io.kvasir.sim.SimEngine;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** A client of one engine, for tests. */
public final class Http {
    public static final ObjectMapper JSON = new ObjectMapper();
    private static final HttpClient CLIENT =
            HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();

    private final URI base;

    public Http(SimEngine engine) {
        this.base = engine.url();
    }

    public HttpResponse<String> send(String path, String body, String... headers) {
        try {
            return CLIENT.send(request(path, body, headers), HttpResponse.BodyHandlers.ofString());
        } catch (IOException | InterruptedException e) {
            throw new AssertionError(path + " failed", e);
        }
    }

    public CompletableFuture<HttpResponse<String>> sendAsync(
            String path, String body, String... headers) {
        return CLIENT.sendAsync(request(path, body, headers), HttpResponse.BodyHandlers.ofString());
    }

    public HttpResponse<Stream<String>> lines(String path, String body, String... headers)
            throws IOException {
        try {
            return CLIENT.send(request(path, body, headers), HttpResponse.BodyHandlers.ofLines());
        } catch (InterruptedException e) {
            throw new AssertionError(path + " interrupted", e);
        }
    }

    public String get(String path) {
        try {
            return CLIENT.send(
                            HttpRequest.newBuilder(base.resolve(path)).build(),
                            HttpResponse.BodyHandlers.ofString())
                    .body();
        } catch (IOException | InterruptedException e) {
            throw new AssertionError(path + " failed", e);
        }
    }

    public JsonNode post(String path, String body, String... headers) {
        final HttpResponse<String> response = send(path, body, headers);
        if (response.statusCode() != 200) {
            throw new AssertionError(path + ": " + response.statusCode() + " " + response.body());
        }
        return tree(response.body());
    }

    /** Completes token ids, ignoring the end of text. */
    public JsonNode complete(int[] prompt, int maxTokens) {
        return post("/v1/completions", body(prompt, maxTokens, ""));
    }

    public int cachedTokens(int[] prompt, int maxTokens) {
        return cachedTokens(complete(prompt, maxTokens));
    }

    public static int cachedTokens(JsonNode answer) {
        return answer.at("/usage/prompt_tokens_details/cached_tokens").intValue();
    }

    public static int[] outputIds(JsonNode answer) {
        final JsonNode ids = answer.at("/choices/0/token_ids");
        final int[] out = new int[ids.size()];
        Arrays.setAll(out, i -> ids.get(i).intValue());
        return out;
    }

    public static String body(int[] prompt, int maxTokens, String more) {
        return "{\"prompt\":"
                + Arrays.toString(prompt)
                + ",\"max_tokens\":"
                + maxTokens
                + ",\"ignore_eos\":true,\"return_token_ids\":true"
                + more
                + "}";
    }

    /** The JSON payloads of a stream; the end mark is checked and left out. */
    public List<JsonNode> events(String path, String body, String... headers) throws IOException {
        final List<String> data = new ArrayList<>();
        try (Stream<String> lines = lines(path, body, headers).body()) {
            lines.filter(line -> !line.isEmpty()).forEach(data::add);
        }
        if (!data.removeLast().equals("data: [DONE]")) {
            throw new AssertionError("no end mark after " + data);
        }
        return data.stream()
                .map(line -> tree(line.substring("data: ".length())))
                .collect(Collectors.toList());
    }

    public static JsonNode tree(String json) {
        try {
            return JSON.readTree(json);
        } catch (IOException e) {
            throw new AssertionError(json, e);
        }
    }

    private HttpRequest request(String path, String body, String... headers) {
        final HttpRequest.Builder request =
                HttpRequest.newBuilder(base.resolve(path))
                        .POST(HttpRequest.BodyPublishers.ofString(body));
        if (headers.length > 0) {
            request.headers(headers);
        }
        return request.build();
    }
}
