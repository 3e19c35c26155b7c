package io.kvasir.gateway.testing;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.gateway.GatewayServer;
import io.kvasir.gateway.openai.Json;
import io.kvasir.sim.SimEngine;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * Clients that ask a gateway all kinds of things, leave now and then, and know what a model answers
 * to each. Any thread.
 */
public final class ChaosClient implements AutoCloseable {
    private static final int PROMPTS = 40;
    private static final int LEAVE_PERCENT = 20;
    private static final int MOST_PATIENCE_MS = 60;

    private final GatewayServer gateway;
    private final SimEngine reference = SimEngine.start(SimFleet.config().build());
    private final HttpClient http =
            HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
    private final Map<String, String> answers = new ConcurrentHashMap<>(); // by body
    private final Map<String, Integer> outcomes = new ConcurrentHashMap<>();
    private final Queue<String> violations = new ConcurrentLinkedQueue<>();

    public ChaosClient(GatewayServer gateway) {
        this.gateway = gateway;
    }

    /** How many requests ended how. */
    public Map<String, Integer> outcomes() {
        return new TreeMap<>(outcomes);
    }

    /** What must not happen but did. */
    public List<String> violations() {
        return List.copyOf(violations);
    }

    /** Asks once; an answer that is not right is noted. */
    public void ask(Random random) {
        final boolean chat = random.nextInt(3) == 0;
        final String path = chat ? "/v1/chat/completions" : "/v1/completions";
        final ObjectNode body = body(random, chat);
        try {
            final String expected =
                    answers.computeIfAbsent(body.toString(), text -> expected(path, text));
            final long patienceMs =
                    random.nextInt(100) < LEAVE_PERCENT ? random.nextInt(MOST_PATIENCE_MS) : -1;
            if (random.nextBoolean()) {
                body.put("stream", true);
                stream(path, body.toString(), expected, patienceMs);
            } else {
                whole(path, body.toString(), expected, patienceMs);
            }
        } catch (Exception e) {
            violations.add(path + " " + body + ": " + e);
        }
    }

    private static ObjectNode body(Random random, boolean chat) {
        final ObjectNode body = Json.MAPPER.createObjectNode();
        final int prompt = random.nextInt(PROMPTS);
        final int length = 8 + 37 * (prompt % 10);
        body.put("model", SimFleet.MODEL);
        if (chat) {
            body.putArray("messages")
                    .addObject()
                    .put("role", "user")
                    .put("content", "prompt " + prompt + " " + "x".repeat(length));
        } else {
            // some begin as others do
            new Random(prompt / 10).ints(length, 32, 127).forEach(body.putArray("prompt")::add);
            body.withArray("prompt").add(32 + prompt);
        }
        body.put("max_tokens", 1 + random.nextInt(24)).put("ignore_eos", true);
        return body;
    }

    private String expected(String path, String body) {
        try {
            final HttpResponse<String> answer =
                    http.send(
                            request(reference.url().resolve(path), body),
                            HttpResponse.BodyHandlers.ofString());
            if (answer.statusCode() != 200) {
                throw new IllegalStateException(answer.body());
            }
            return text(Json.MAPPER.readTree(answer.body()));
        } catch (IOException | InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    private static HttpRequest request(URI uri, String body) {
        return HttpRequest.newBuilder(uri)
                .header("Content-Type", "application/json")
                .POST(HttpRequest.BodyPublishers.ofString(body))
                .build();
    }

    /** Text of an answer or of a chunk of one. */
    private static String text(JsonNode answer) {
        final JsonNode choice = answer.at("/choices/0");
        return choice.path("text").asText("")
                + choice.at("/message/content").asText("")
                + choice.at("/delta/content").asText("");
    }

    private void whole(String path, String body, String expected, long patienceMs)
            throws Exception {
        final CompletableFuture<HttpResponse<String>> coming =
                http.sendAsync(
                        request(Gateways.uri(gateway, path), body),
                        HttpResponse.BodyHandlers.ofString());
        final HttpResponse<String> answer;
        try {
            answer = patienceMs < 0 ? coming.get() : coming.get(patienceMs, TimeUnit.MILLISECONDS);
        } catch (TimeoutException e) {
            coming.cancel(true);
            ended("left");
            return;
        } catch (ExecutionException e) {
            ended("cut");
            return;
        }
        if (answer.statusCode() != 200) {
            refused(answer.statusCode(), answer.body());
            return;
        }
        right(expected, text(Json.MAPPER.readTree(answer.body())), true);
        ended("answered");
    }

    private void stream(String path, String body, String expected, long patienceMs)
            throws Exception {
        final long untilNs = System.nanoTime() + patienceMs * 1_000_000;
        final HttpResponse<InputStream> answer;
        try {
            answer =
                    http.send(
                            request(Gateways.uri(gateway, path), body),
                            HttpResponse.BodyHandlers.ofInputStream());
        } catch (IOException e) {
            ended("cut");
            return;
        }
        final StringBuilder text = new StringBuilder();
        try (BufferedReader lines =
                new BufferedReader(new InputStreamReader(answer.body(), StandardCharsets.UTF_8))) {
            if (answer.statusCode() != 200) {
                refused(answer.statusCode(), lines.readAllAsString());
                return;
            }
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                if (line.equals("data: [DONE]")) {
                    right(expected, text.toString(), true);
                    ended("streamed");
                    return;
                }
                if (line.startsWith("data: ")) {
                    final JsonNode chunk = Json.MAPPER.readTree(line.substring(6));
                    if (chunk.has("error")) {
                        named(chunk, line);
                        ended("stream ended: " + chunk.at("/error/code").asText());
                        right(expected, text.toString(), false);
                        return;
                    }
                    text.append(text(chunk));
                }
                if (patienceMs >= 0 && System.nanoTime() - untilNs > 0) {
                    ended("left stream");
                    return;
                }
            }
            ended("stream without end");
        } catch (IOException e) {
            ended("stream cut");
        }
        right(expected, text.toString(), false);
    }

    private void refused(int status, String body) throws IOException {
        final JsonNode error = Json.MAPPER.readTree(body);
        named(error, status + " " + body);
        ended(
                "refused "
                        + status
                        + " "
                        + error.at("/error/code").asText()
                        + " "
                        + error.at("/error/kvasir/leg").asText());
    }

    private void named(JsonNode error, String text) {
        if (error.at("/error/message").asText("").isBlank()
                || error.at("/error/type").asText("").isBlank()) {
            violations.add("an error without a name: " + text);
        }
    }

    private void right(String expected, String text, boolean whole) {
        if (whole ? !text.equals(expected) : !expected.startsWith(text)) {
            violations.add("answered " + text + " where the model answers " + expected);
        }
    }

    private void ended(String how) {
        outcomes.merge(how, 1, Integer::sum);
    }

    @Override
    public void close() {
        http.shutdownNow();
        http.close();
        reference.close();
    }
}
