package io.kvasir.gateway;

import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.gateway.openai.Json;
import io.kvasir.gateway.testing.FaultyEngine;

import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Requests to which {@link FaultyEngine}s answer rightly, sent when they are due whatever became of
 * those before. Each answer must be its own, whole, and say no more than its caller may know.
 */
final class HonestClients {
    private static final Duration PATIENCE = Duration.ofSeconds(60);
    private static final int LONG_PROMPT = 400;

    private final List<GatewayServer> gateways;
    private final String token;
    private final ScheduledExecutorService clock = Executors.newSingleThreadScheduledExecutor();
    private final HttpClient http =
            HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
    private final AtomicInteger sent = new AtomicInteger();
    private final AtomicInteger answered = new AtomicInteger();
    private final Queue<String> failures = new ConcurrentLinkedQueue<>();

    /**
     * @param token of trusted callers, which every third request has
     */
    HonestClients(List<GatewayServer> gateways, String token) {
        this.gateways = gateways;
        this.token = token;
    }

    void start(int perSecond) {
        var _ =
                clock.scheduleAtFixedRate(
                        () -> send(sent.getAndIncrement()),
                        0,
                        1_000_000 / perSecond,
                        TimeUnit.MICROSECONDS);
    }

    int answered() {
        return answered.get();
    }

    /** What was wrong, one line for each answer that was not right. */
    List<String> failures() {
        return List.copyOf(failures);
    }

    /** Sends no more, and waits for what was sent. */
    void finish() throws InterruptedException {
        clock.close();
        final long startNs = System.nanoTime();
        while (answered.get() < sent.get() && System.nanoTime() - startNs < PATIENCE.toNanos()) {
            Thread.sleep(5);
        }
        if (answered.get() < sent.get()) {
            failures.add(sent.get() - answered.get() + " were not answered");
        }
        http.shutdownNow();
    }

    private void send(int number) {
        final boolean isChat = number % 2 == 0;
        final boolean isStream = number / 2 % 2 == 0;
        final boolean isTrusted = number % 3 == 0;
        final GatewayServer gateway = gateways.get(number / 4 % gateways.size());
        final String text = "honest-" + number + " word".repeat(number % 5 == 0 ? LONG_PROMPT : 3);
        final HttpRequest.Builder request =
                HttpRequest.newBuilder(
                                URI.create(
                                        "http://127.0.0.1:"
                                                + gateway.port()
                                                + (isChat
                                                        ? "/v1/chat/completions"
                                                        : "/v1/completions")))
                        .timeout(PATIENCE)
                        .header("Content-Type", "application/json")
                        .POST(
                                HttpRequest.BodyPublishers.ofString(
                                        "{\"model\":\"m\",\"stream\":"
                                                + isStream
                                                + (isChat
                                                        ? ",\"messages\":[{\"role\":\"user\","
                                                                + "\"content\":\""
                                                                + text
                                                                + "\"}]}"
                                                        : ",\"prompt\":\"" + text + "\"}")));
        if (isTrusted) {
            request.header("Authorization", "Bearer " + token);
        }
        final CompletableFuture<HttpResponse<String>> answer =
                http.sendAsync(request.build(), HttpResponse.BodyHandlers.ofString());
        var _ =
                answer.handle(
                        (response, failure) -> {
                            final String wrong =
                                    failure == null
                                            ? problem(number, isStream, isTrusted, response)
                                            : failure.toString();
                            if (wrong != null) {
                                failures.add("request " + number + ": " + wrong);
                            }
                            return answered.incrementAndGet();
                        });
    }

    private static String problem(
            int number, boolean isStream, boolean isTrusted, HttpResponse<String> response) {
        final String body = response.body();
        if (response.statusCode() != 200) {
            return response.statusCode() + " " + body;
        }
        if (isTrusted
                != response.headers().firstValue("x-kvasir-predicted-cached-tokens").isPresent()) {
            return "trusted is " + isTrusted + " but headers are " + response.headers().map();
        }
        try {
            final String text = isStream ? streamed(body) : text(Json.MAPPER.readTree(body));
            return text.equals(FaultyEngine.honestText(number)) ? null : body;
        } catch (Exception e) {
            return e + " in " + body;
        }
    }

    /** The text of a stream that has its end mark. */
    private static String streamed(String body) throws Exception {
        final StringBuilder text = new StringBuilder();
        for (String event : body.split("\n\n", -1)) {
            if (event.equals("data: [DONE]")) {
                return text.toString();
            }
            text.append(text(Json.MAPPER.readTree(event.substring("data:".length()))));
        }
        return text + " without an end mark";
    }

    private static String text(JsonNode answer) {
        return answer.at("/choices/0/text").asText();
    }
}
