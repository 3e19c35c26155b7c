package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.LogFormat;
import io.kvasir.gateway.testing.FakeEngine;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.gateway.testing.MetricsPage;
import io.kvasir.gateway.testing.RawClient;
import io.kvasir.testsupport.Cores;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.io.IOException;
import java.net.ConnectException;
import java.net.SocketException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Stream;

@Order(1) // takes long: begins first, beside the others
class DrainTest {
    private static final String ANSWER = "{\"choices\":[],\"usage\":{\"prompt_tokens\":1}}";
    private static final String WHOLE = "{\"prompt\":[1]}";
    private static final String STREAM = "{\"prompt\":[1],\"stream\":true}";
    private static final String END = "\r\n0\r\n\r\n"; // of the last chunk, and of all

    private static final int CLIENTS = 8;
    private static final int SPREAD_NS = 1_000_000;

    /** Together longer than a connection may be silent, each much shorter. */
    private static final int HEAD_LINES = 30;

    private static final int HEAD_LINE_MS = 50;

    /** A pause between two lines that shows nothing: this machine has stood still. */
    private static final long STALL_NS = 250_000_000;

    private static final int TRIES = 20;

    private final FakeEngine engine = new FakeEngine(call -> call.json(200, ANSWER));
    private GatewayServer gateway;

    private void start(Duration lameDuck, Duration drain) throws Exception {
        gateway = Gateways.started(config(lameDuck, drain));
    }

    private void start(Duration lameDuck, Duration drain, Path accessLog) throws Exception {
        gateway =
                Gateways.started(
                        config(lameDuck, drain)
                                .set(GatewaySettings.ACCESS_LOG, accessLog.toString())
                                .set(GatewaySettings.ACCESS_LOG_FORMAT, LogFormat.JSON));
    }

    private GatewayConfig.Builder config(Duration lameDuck, Duration drain) {
        return Gateways.config(engine.worker("one"))
                .set(GatewaySettings.LAME_DUCK, lameDuck)
                .set(GatewaySettings.DRAIN_TIMEOUT, drain);
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
    void itIsNotReadyFirstAndServesOnInTheLameDuckTime() throws Exception {
        start(Duration.ofMinutes(5), Duration.ofSeconds(10));
        assertEquals(200, status("/ready"));
        final Thread draining =
                Thread.ofVirtual()
                        .start(() -> assertThrows(InterruptedException.class, gateway::drain));
        Eventually.holds("not ready", () -> status("/ready") == 503);
        assertEquals(503, status("/health"));
        assertEquals(200, status("/live"));
        assertEquals(503, Gateways.admin(gateway, "/ready").statusCode());
        assertIsTheLastOfItsConnection(WHOLE, 200);
        assertIsTheLastOfItsConnection("{}", 400);
        engine.script = FakeEngine.Call::cut;
        assertIsTheLastOfItsConnection(WHOLE, 502);
        draining.interrupt();
        draining.join();
        assertEquals(200, status("/live"));
    }

    private void assertIsTheLastOfItsConnection(String body, int status) throws IOException {
        try (RawClient client = new RawClient(gateway.port())) {
            final String answer = client.post("/v1/completions", body).readAll();
            assertTrue(answer.startsWith("HTTP/1.1 " + status + " "), answer);
            assertTrue(answer.contains("Connection: close"), answer);
        }
    }

    @Test
    void itRefusesConnectionsWhenTheLameDuckTimeIsOver() throws Exception {
        start(Duration.ofMillis(20), Duration.ofSeconds(10));
        final int port = gateway.port();
        draining().get();
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

    @Test
    void anInterruptedThreadWaitsForWhatRuns() throws Exception {
        final CountDownLatch go = new CountDownLatch(1);
        engine.script =
                call -> {
                    go.await();
                    call.json(200, ANSWER);
                };
        start(Duration.ZERO, Duration.ofMinutes(5));
        try (RawClient client = new RawClient(gateway.port())) {
            client.post("/v1/completions", WHOLE);
            Eventually.holds("it runs", () -> engine.calls.size() == 1);
            final int port = gateway.port();
            final AtomicBoolean kept = new AtomicBoolean();
            final Thread closing =
                    Thread.ofPlatform()
                            .start(
                                    () -> {
                                        Thread.currentThread().interrupt();
                                        gateway.close();
                                        kept.set(Thread.currentThread().isInterrupted());
                                    });
            Eventually.holds("the port is closed", () -> refuses(port));
            Eventually.holds("it waits", () -> closing.getState() == Thread.State.TIMED_WAITING);
            closing.interrupt();
            Eventually.holds("it waits on", () -> !closing.isInterrupted());
            go.countDown();
            final String answer = client.readAll();
            assertTrue(answer.startsWith("HTTP/1.1 200 "), answer);
            closing.join();
            assertTrue(kept.get());
        }
    }

    @Test
    void anInterruptThatMeetsTheServersEndIsKept() throws Exception {
        start(Duration.ZERO, Duration.ZERO);
        final AtomicBoolean closed = new AtomicBoolean();
        final AtomicBoolean tried = new AtomicBoolean();
        final AtomicBoolean kept = new AtomicBoolean();
        final Thread closing =
                Thread.ofPlatform()
                        .start(
                                () -> {
                                    gateway.close();
                                    closed.set(true);
                                    while (!tried.get()) {
                                        Cores.giveWay();
                                    }
                                    kept.set(Thread.currentThread().isInterrupted());
                                });
        boolean interrupted = false;
        while (!closed.get() && !interrupted) {
            if (stopsServing()) {
                closing.interrupt();
                interrupted = true;
            }
        }
        tried.set(true);
        closing.join();
        assertEquals(interrupted, kept.get());
    }

    private static boolean stopsServing() {
        return Thread.getAllStackTraces().values().stream()
                .flatMap(Stream::of)
                .anyMatch(frame -> frame.getMethodName().equals("stopServing"));
    }

    @Test
    void itStartsInAnInterruptedThread() {
        Thread.currentThread().interrupt();
        try {
            gateway = GatewayServer.start(config(Duration.ZERO, Duration.ZERO).build());
        } finally {
            assertTrue(Thread.interrupted(), "as before");
        }
        Eventually.holds("it is ready", () -> status("/ready") == 200);
    }

    @Test
    void aCloseEndsTheLameDuckTime() throws Exception {
        start(Duration.ofDays(1), Duration.ZERO);
        final CompletableFuture<Void> draining = draining();
        Eventually.holds("not ready", () -> status("/ready") == 503);
        gateway.close();
        draining.get(2, TimeUnit.MINUTES);
        draining().get(2, TimeUnit.MINUTES);
    }

    @Test
    void itsAddressesAreTheSameWhenItIsClosed() throws Exception {
        start(Duration.ZERO, Duration.ZERO);
        final List<String> before = List.of(gateway.url(), gateway.adminUrl());
        gateway.close();
        assertEquals(before, List.of(gateway.url(), gateway.adminUrl()));
    }

    /**
     * A client that is refused goes to another gateway; one that is connected relies on this one.
     * None may be reset that connects between the last accept and the close of the port.
     */
    @Test
    void allWhoHaveConnectedBeforeThePortClosesAreServed() throws Exception {
        closePorts(2);
    }

    @Tag("integration") // each closing takes as long as handshakes may
    @Test
    void allWhoHaveConnectedBeforeThePortClosesAreServedEachTime() throws Exception {
        closePorts(10);
    }

    private void closePorts(int closings) throws Exception {
        for (int round = 0; round < closings; round++) {
            start(Duration.ofMillis(20), Duration.ofSeconds(20));
            final int port = gateway.port();
            final Queue<String> lost = new ConcurrentLinkedQueue<>();
            final AtomicInteger served = new AtomicInteger();
            try (ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor()) {
                for (int i = 0; i < CLIENTS; i++) {
                    threads.execute(() -> connectUntilRefused(port, served, lost));
                }
                Eventually.holds("clients are served", () -> served.get() > CLIENTS);
                gateway.drain();
            }
            assertEquals(List.of(), List.copyOf(lost), "round " + round + ", " + served);
        }
    }

    private static void connectUntilRefused(int port, AtomicInteger served, Queue<String> lost) {
        while (true) {
            try (RawClient client = new RawClient(port)) {
                final String answer =
                        client.post("/v1/completions", WHOLE, "Connection: close").readAll();
                if (!answer.startsWith("HTTP/1.1 200 ")) {
                    lost.add("got '" + answer + "'");
                }
                served.incrementAndGet();
            } catch (ConnectException _) {
                return;
            } catch (IOException e) {
                lost.add(e.toString());
            }
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
            assertIsDraining(client.readAll());
            drained.get();
        }
        assertEquals(1, engine.calls.size());
    }

    @Test
    void aRequestWhoseBodyIsStillArrivingIsAnsweredWhenItIsCut(@TempDir Path dir) throws Exception {
        final Path log = dir.resolve("access.log");
        start(Duration.ZERO, Duration.ofMillis(50), log);
        try (RawClient client = new RawClient(gateway.port())) {
            client.send(
                    "POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 15\r\n\r\n{\"pro");
            Eventually.holds(
                    "its body is awaited",
                    () -> MetricsPage.of(gateway).sum("kvasir_requests_preparing") == 1);
            final CompletableFuture<Void> drained = draining();
            assertIsDraining(client.readAll());
            drained.get();
        }
        assertTrue(Files.readString(log).contains("\"status\":503"), Files.readString(log));
    }

    /** What comes after all others were cut: its client has not left, whatever it gets. */
    @ParameterizedTest
    @ValueSource(strings = {"{\"prompt\":[1]}", "{\"pro"})
    void aRequestThatTheServersEndBreaksOffIsOneOfADrainingGateway(String sent, @TempDir Path dir)
            throws Exception {
        final Path log = dir.resolve("access.log");
        engine.script = call -> call.awaitClientGone(60);
        start(Duration.ZERO, Duration.ZERO, log);
        try (RawClient client = new RawClient(gateway.port())) {
            client.send(
                    "POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 14\r\n\r\n"
                            + sent);
            Eventually.holds(
                    "it runs",
                    () ->
                            engine.calls.size() == 1
                                    || MetricsPage.of(gateway).sum("kvasir_requests_preparing")
                                            == 1);
            gateway.stopServing();
            final String answer = client.readAll();
            if (!answer.isEmpty()) {
                assertIsDraining(answer);
            }
        }
        assertEquals(0, MetricsPage.of(gateway).sum("kvasir_client_disconnects_total"));
        gateway.close();
        assertTrue(Files.readString(log).contains("\"status\":503"), Files.readString(log));
    }

    @Test
    void aRequestWhoseHeadGoesOnComingIsServed() throws Exception {
        String answer = "";
        for (int i = 0; i < TRIES && !answer.startsWith("HTTP/1.1 200 "); i++) {
            start(Duration.ZERO, Duration.ofSeconds(60));
            final SlowHead head = new SlowHead();
            answer = head.sent();
            assertTrue(
                    answer.startsWith("HTTP/1.1 200 ") || head.longestPauseNs > STALL_NS, answer);
            gateway.close();
        }
        assertTrue(answer.startsWith("HTTP/1.1 200 "), answer);
    }

    /** A request whose head comes line by line while the gateway drains. */
    private final class SlowHead {
        private long longestPauseNs;

        /** The answer; empty where the connection has ended before. */
        String sent() throws Exception {
            try (RawClient client = new RawClient(gateway.port())) {
                client.send("POST /v1/completions HTTP/1.1\r\nHost: x\r\n");
                long sentNs = System.nanoTime();
                final int port = gateway.port();
                final CompletableFuture<Void> drained = draining();
                Eventually.holds("the port is closed", () -> refuses(port));
                for (int i = 0; i < HEAD_LINES; i++) {
                    Thread.sleep(HEAD_LINE_MS);
                    final long nowNs = System.nanoTime();
                    longestPauseNs = Math.max(longestPauseNs, nowNs - sentNs);
                    sentNs = nowNs;
                    client.send("x-line: " + i + "\r\n");
                }
                client.send("Content-Length: " + WHOLE.length() + "\r\n\r\n" + WHOLE);
                final String answer = client.readAll();
                drained.get();
                return answer;
            } catch (SocketException e) {
                return "";
            }
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"POST /v1/completions HTTP/1.1\r\nHost: x\r\n", "POST /v1/comp"})
    void aRequestWhoseHeadIsStillArrivingIsAnsweredAtTheEnd(String begun) throws Exception {
        start(Duration.ZERO, Duration.ofMillis(500));
        try (RawClient client = new RawClient(gateway.port())) {
            client.send(begun);
            final CompletableFuture<Void> drained = draining();
            assertIsDraining(client.readAll());
            drained.get();
        }
    }

    @Test
    void aConnectionWithoutARequestIsClosedWithoutAnAnswer() throws Exception {
        start(Duration.ZERO, Duration.ofMillis(500));
        try (RawClient client = new RawClient(gateway.port())) {
            final CompletableFuture<Void> drained = draining();
            assertEquals("", client.readAll());
            drained.get();
        }
    }

    private static void assertIsDraining(String answer) {
        assertTrue(answer.startsWith("HTTP/1.1 503 "), answer);
        assertTrue(answer.contains("Retry-After: "), answer);
        assertTrue(answer.contains("\"kind\":\"draining\""), answer);
    }

    /** Answers begin while the gateway cuts: each client gets one of the two, and whole. */
    @Test
    void anAnswerThatBeginsWhileItsRequestIsCutIsNotMixedWithTheOtherOne() throws Exception {
        cutAnswers(40);
    }

    @Tag("integration") // a race: the more rounds, the more is seen
    @Test
    void noneOfManyAnswersThatAreCutIsMixedWithTheOtherOne() throws Exception {
        cutAnswers(150);
    }

    private void cutAnswers(int rounds) throws Exception {
        final AtomicReference<CountDownLatch> go = new AtomicReference<>();
        engine.script =
                call -> {
                    go.get().await();
                    LockSupport.parkNanos(ThreadLocalRandom.current().nextInt(SPREAD_NS));
                    if (call.text().contains("stream")) {
                        call.beginEvents();
                        call.chunk("data: 1\n\n");
                        call.chunk("data: [DONE]\n\n");
                        call.endChunks();
                    } else {
                        call.json(200, ANSWER);
                    }
                };
        start(Duration.ZERO, Duration.ofSeconds(60));
        final int[] statuses = new int[600];
        final long startNs = System.nanoTime();
        int round = 0;
        for (; round < rounds || !haveMet(statuses, startNs); round++) {
            go.set(new CountDownLatch(1));
            final List<RawClient> clients = new ArrayList<>();
            for (int i = 0; i < CLIENTS; i++) {
                clients.add(
                        new RawClient(gateway.port())
                                .post(
                                        "/v1/completions",
                                        i % 2 == 0 ? WHOLE : STREAM,
                                        "Connection: close"));
            }
            Eventually.holds("all run", () -> engine.inFlight.get() == CLIENTS);
            go.get().countDown();
            LockSupport.parkNanos(ThreadLocalRandom.current().nextInt(SPREAD_NS));
            gateway.cutRunning();
            for (int i = 0; i < CLIENTS; i++) {
                try (RawClient client = clients.get(i)) {
                    statuses[wholeAnswer(i % 2 != 0, client.readAll())]++;
                }
            }
            Eventually.holds("the engine is released", () -> engine.inFlight.get() == 0);
        }
        final int requests = round * CLIENTS;
        assertEquals(requests, statuses[200] + statuses[503]);
        assertTrue(statuses[503] > 0 && statuses[200] > 0, "the two have met");
        Eventually.holds("no booking is left", () -> gateway.router().activeLeases() == 0);
        Eventually.holds("each is counted", () -> counted() >= requests);
        assertEquals(requests, counted());
    }

    /** Whether there were answers of both kinds, or too much time has passed without. */
    private static boolean haveMet(int[] statuses, long startNs) {
        return (statuses[503] > 0 && statuses[200] > 0)
                || System.nanoTime() - startNs > TimeUnit.MINUTES.toNanos(1);
    }

    private double counted() {
        return MetricsPage.of(gateway).sum("kvasir_requests_total");
    }

    /** The status of the one answer in these bytes. */
    private static int wholeAnswer(boolean isStream, String answer) {
        assertEquals(0, answer.indexOf("HTTP/1.1 "), answer);
        assertEquals(0, answer.lastIndexOf("HTTP/1.1 "), answer);
        final int status = Integer.parseInt(answer.substring(9, 12));
        final String body = answer.substring(answer.indexOf("\r\n\r\n") + 4);
        if (status == 200 && isStream) {
            assertTrue(
                    body.endsWith("data: [DONE]\n\n" + END)
                            || (body.contains("\"kind\":\"draining\"")
                                    && body.endsWith("}\n\n" + END)),
                    answer);
        } else if (status == 200) {
            assertEquals(ANSWER, body);
        } else {
            assertEquals(503, status, answer);
            assertTrue(body.contains("\"kind\":\"draining\""), answer);
            assertTrue(answer.contains("Content-Length: " + body.length() + "\r\n"), answer);
        }
        return status;
    }
}
