package io.kvasir.cli.load;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.net.httpserver.HttpServer;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;

/** The client against a server that answers what the test says. */
class LoadClientTest {
    private static final String USAGE =
            "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":100,\"completion_tokens\":2,"
                    + "\"prompt_tokens_details\":{\"cached_tokens\":64}}}\n\n";
    private static final Duration LIMIT = Duration.ofMinutes(1);
    private static final String DONE = "data: [DONE]\n\n";

    private HttpServer server;
    private LoadClient client;

    @BeforeEach
    void start() throws IOException {
        server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        server.start();
        client = new LoadClient(address(), LIMIT, Map.of());
    }

    @AfterEach
    void stop() {
        client.close();
        server.stop(0);
    }

    @Test
    void theTimeBetweenTwoTokensIsToldWhereItIsWanted() {
        answer(
                200,
                "data: {\"choices\":[{\"text\":\"a\"}]}\n\n"
                        + "data: {\"choices\":[{\"text\":\"b\"}]}\n\n"
                        + "data: {\"choices\":[{\"text\":\"\",\"finish_reason\":\"length\"}]}\n\n"
                        + "data: {\"choices\":[{\"text\":\"c\"}]}\n\n"
                        + USAGE
                        + DONE,
                Map.of());
        final List<Long> gapsNs = new CopyOnWriteArrayList<>();
        try (LoadClient timing = new LoadClient(address(), LIMIT, gapsNs::add)) {
            assertNull(timing.send("/v1/completions", new byte[0], 0, false).join().error());
        }
        assertEquals(2, gapsNs.size(), "events without text are no tokens");
        assertTrue(gapsNs.stream().allMatch(gap -> gap >= 0), gapsNs.toString());
    }

    @Test
    void aChatStreamGivesTextUsageHeadersAndTimes() {
        answer(
                200,
                "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n"
                        + "data: {\"choices\":[{\"delta\":{\"content\":\"he\"}}]}\n\n"
                        + "data: {\"choices\":[{\"delta\":{\"content\":\"llo\"}}]}\n\n"
                        + USAGE
                        + DONE,
                Map.of(
                        "x-kvasir-worker", "w1",
                        "x-kvasir-dp-rank", "2",
                        "x-kvasir-predicted-cached-tokens", "48",
                        "x-kvasir-event-sequence", "7",
                        "x-sim-event-sequence", "9"));
        final long scheduledNs = System.nanoTime() - 1_000_000;
        final Outcome outcome = send(scheduledNs, true);
        assertNull(outcome.error());
        assertEquals("hello", outcome.text());
        assertEquals("w1/2", outcome.worker());
        assertEquals(100, outcome.promptTokens());
        assertEquals(64, outcome.cachedTokens());
        assertEquals(36, outcome.computedTokens());
        assertEquals(2, outcome.outputTokens());
        assertEquals(48, outcome.predictedCachedTokens());
        assertEquals(7, outcome.routerSequence());
        assertEquals(9, outcome.engineSequence());
        assertTrue(outcome.sentNs() >= scheduledNs);
        assertTrue(outcome.firstTokenNs() > outcome.sentNs());
        assertTrue(outcome.doneNs() >= outcome.firstTokenNs());
    }

    @Test
    void anEngineThatSaysNothingOfItsEventsIsNoEngineWithoutEvents() {
        final String body = "data: {\"choices\":[{\"text\":\"a\"}]}\n\n" + USAGE + DONE;
        answer(200, body, Map.of("x-kvasir-event-sequence", "-1"));
        final Outcome unstated = send(System.nanoTime(), false);
        assertEquals(-1, unstated.routerSequence());
        assertEquals(Outcome.UNSTATED, unstated.engineSequence());
        server.removeContext("/");
        answer(200, body, Map.of("x-sim-event-sequence", "-1"));
        final Outcome none = send(System.nanoTime(), false);
        assertEquals(Outcome.UNSTATED, none.routerSequence());
        assertEquals(-1, none.engineSequence());
    }

    @Test
    void aCompletionStreamIsReadWithoutKeepingItsText() {
        answer(
                200,
                "data: {\"choices\":[{\"text\":\"ab\"}]}\n\n"
                        + "data: {\"choices\":[{\"text\":\"c\"}]}\n\n"
                        + USAGE
                        + DONE,
                Map.of());
        final Outcome outcome = send(System.nanoTime(), false);
        assertFalse(outcome.failed(), outcome.error());
        assertEquals("", outcome.text());
        assertEquals(64, outcome.cachedTokens());
        assertEquals(-1, outcome.predictedCachedTokens());
    }

    @Test
    void anAnswerThatBreaksOffOrLacksItsUsageIsAnError() {
        answer(200, "data: {\"choices\":[{\"text\":\"ab\"}]}\n\n" + USAGE, Map.of());
        assertEquals("stream ended without [DONE]", send(0, false).error());
        server.removeContext("/");
        answer(200, "data: {\"choices\":[{\"text\":\"ab\"}]}\n\n" + DONE, Map.of());
        assertTrue(send(0, false).error().contains("no usage"), "no usage");
    }

    @Test
    void anErrorInsideTheStreamIsTheOutcome() {
        answer(200, "data: {\"error\":{\"message\":\"engine died\"}}\n\n" + DONE, Map.of());
        assertTrue(send(0, false).error().contains("engine died"));
    }

    @Test
    void anErrorStatusCarriesTheBodyAndTheWorker() {
        answer(503, "{\"error\":{\"message\":\"no workers\"}}", Map.of("x-kvasir-worker", "w3"));
        final Outcome outcome = send(0, false);
        assertTrue(outcome.error().startsWith("status 503: "), outcome.error());
        assertTrue(outcome.error().contains("no workers"), outcome.error());
        assertEquals("w3", outcome.worker());
    }

    @Test
    void aPortWhereNobodyListensIsAnOutcomeToo() throws IOException {
        try (Socket bound = new Socket()) { // so that no other process takes the port either
            bound.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
            final URI unused = URI.create("http://127.0.0.1:" + bound.getLocalPort());
            try (LoadClient toUnused = new LoadClient(unused, LIMIT, Map.of())) {
                final Outcome outcome =
                        toUnused.send("/v1/completions", new byte[0], 0, false).join();
                assertEquals("the connection was refused", outcome.error());
            }
        }
    }

    private Outcome send(long scheduledNs, boolean keepText) {
        final byte[] body = "{}".getBytes(StandardCharsets.UTF_8);
        return client.send("/v1/completions", body, scheduledNs, keepText).join();
    }

    private URI address() {
        return URI.create("http://127.0.0.1:" + server.getAddress().getPort());
    }

    private void answer(int status, String body, Map<String, String> headers) {
        server.createContext(
                "/",
                exchange -> {
                    exchange.getRequestBody().readAllBytes();
                    headers.forEach(exchange.getResponseHeaders()::set);
                    final byte[] bytes = body.getBytes(StandardCharsets.UTF_8);
                    exchange.sendResponseHeaders(status, bytes.length);
                    try (OutputStream out = exchange.getResponseBody()) {
                        out.write(bytes);
                    }
                });
    }
}
