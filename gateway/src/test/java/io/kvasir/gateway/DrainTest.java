package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;

class DrainTest {
    private static final String ANSWER = "{\"choices\":[],\"usage\":{\"prompt_tokens\":1}}";
    private static final String WHOLE = "{\"prompt\":[1]}";
    private static final String STREAM = "{\"prompt\":[1],\"stream\":true}";

    private final FakeEngine engine = new FakeEngine(call -> call.json(200, ANSWER));
    private GatewayServer gateway;

    private void start(Duration lameDuck, Duration drain) throws Exception {
        gateway =
                GatewayServer.start(
                        Gateways.config(engine.worker("one"))
                                .set(GatewaySettings.LAME_DUCK, lameDuck)
                                .set(GatewaySettings.DRAIN_TIMEOUT, drain)
                                .build());
        Gateways.awaitContact(gateway);
    }

    @AfterEach
    void stop() {
        gateway.close();
        engine.close();
    }

    private CompletableFuture<Void> draining() {
        return CompletableFuture.runAsync(
                () -> {
                    try {
                        gateway.drain();
                    } catch (InterruptedException e) {
                        throw new IllegalStateException(e);
                    }
                });
    }

    private int status(String path) {
        try {
            return Gateways.get(gateway, path).statusCode();
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }

    @Test
    void itIsNotReadyFirstAndServesOnUntilTheLameDuckTimeIsOver() throws Exception {
        start(Duration.ofSeconds(3), Duration.ofSeconds(10));
        final int port = gateway.port();
        assertEquals(200, status("/ready"));
        final CompletableFuture<Void> drained = draining();
        Eventually.holds("not ready", () -> status("/ready") == 503);
        assertEquals(503, status("/health"));
        assertEquals(200, status("/live"));
        assertEquals(503, Gateways.admin(gateway, "/ready").statusCode());
        try (RawClient client = new RawClient(gateway.port())) {
            final String answer = client.post("/v1/completions", WHOLE).readAll();
            assertTrue(answer.startsWith("HTTP/1.1 200 "), answer);
            assertTrue(answer.contains("Connection: close"), answer);
        }
        drained.get();
        assertTrue(refuses(port));
    }

    @Test
    void requestsOnConnectionsThatWereOpenAreServedWhileOthersRun() throws Exception {
        final CountDownLatch go = new CountDownLatch(1);
        engine.script =
                call -> {
                    if (call.text().contains("stream")) {
                        call.beginEvents();
                        call.chunk("data: 1\n\n");
                        go.await();
                        call.chunk("data: [DONE]\n\n");
                        call.endChunks();
                    } else {
                        call.json(200, ANSWER);
                    }
                };
        start(Duration.ZERO, Duration.ofSeconds(60));
        try (RawClient kept = new RawClient(gateway.port());
                RawClient running = new RawClient(gateway.port())) {
            kept.post("/v1/completions", WHOLE).readUntil(ANSWER);
            running.post("/v1/completions", STREAM).readUntil("data: 1");
            final int port = gateway.port();
            final CompletableFuture<Void> drained = draining();
            Eventually.holds("the port is closed", () -> refuses(port));
            final String answer = kept.post("/v1/completions", WHOLE).readAll();
            assertTrue(answer.startsWith("HTTP/1.1 200 "), answer);
            go.countDown();
            running.readUntil("[DONE]");
            drained.get();
        }
    }

    private static boolean refuses(int port) {
        try (RawClient client = new RawClient(port)) {
            return client == null;
        } catch (IOException e) {
            return true;
        }
    }

    @Test
    void aStreamThatIsCutEndsWithAnEventThatSaysSo() throws Exception {
        engine.script =
                call -> {
                    call.beginEvents();
                    call.chunk("data: 1\n\n");
                    call.awaitClientGone(60);
                };
        start(Duration.ZERO, Duration.ofMillis(50));
        try (RawClient client = new RawClient(gateway.port())) {
            client.post("/v1/completions", STREAM).readUntil("data: 1");
            final CompletableFuture<Void> drained = draining();
            final String rest = client.readAll();
            assertTrue(rest.contains("\"kind\":\"draining\""), rest);
            assertTrue(rest.endsWith("0\r\n\r\n"), rest);
            drained.get();
        }
        Eventually.holds("the engine is released", () -> engine.inFlight.get() == 0);
    }

    @Test
    void aRequestWithoutAnAnswerYetIsAnsweredWhenItIsCut() throws Exception {
        engine.script = call -> call.awaitClientGone(60);
        start(Duration.ZERO, Duration.ofMillis(50));
        try (RawClient client = new RawClient(gateway.port())) {
            client.post("/v1/completions", WHOLE);
            Eventually.holds("it runs", () -> engine.calls.size() == 1);
            final CompletableFuture<Void> drained = draining();
            final String answer = client.readAll();
            assertTrue(answer.startsWith("HTTP/1.1 503 "), answer);
            assertTrue(answer.contains("Retry-After: "), answer);
            assertTrue(answer.contains("\"kind\":\"draining\""), answer);
            drained.get();
        }
        assertEquals(1, engine.calls.size());
    }
}
