package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.metrics.GatewayMetrics;
import io.kvasir.gateway.routing.PromptExecutor;
import io.kvasir.gateway.server.RequestFailures;
import io.kvasir.gateway.testing.FakeEngine;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.gateway.testing.MetricsPage;
import io.kvasir.gateway.testing.RawClient;
import io.kvasir.prompt.chat.SimModel;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.testsupport.Eventually;

import org.eclipse.jetty.server.Handler;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.server.Response;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.util.Callback;
import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.net.http.HttpResponse;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/** What is looked at before anything is spent on a request. */
class AdmissionTest {
    private static final String SMALL = "{\"model\":\"m\",\"prompt\":[1,2,3]}";

    private static final String ASK_LARGE = "{\"model\":\"m\",\"prompt\":[1],\"user\":\"large\"}";
    private static final String END_OF_LARGE = "the end\"}";
    private static final String LARGE_ANSWER =
            "{\"id\":\"" + "y".repeat(4_000_000) + END_OF_LARGE; // not held any more from 4 MiB on

    private static String large(int bytes) {
        return "{\"model\":\"m\",\"prompt\":[1],\"user\":\"" + "x".repeat(bytes) + "\"}";
    }

    /** Answers when it is told to. */
    private static FakeEngine engine(CountDownLatch release) throws Exception {
        return new FakeEngine(
                call -> {
                    if (!release.await(1, TimeUnit.MINUTES)) {
                        throw new IllegalStateException("not released");
                    }
                    call.json(200, "{}");
                });
    }

    private static CompletableFuture<Integer> inBackground(GatewayServer gateway, String body) {
        return CompletableFuture.supplyAsync(
                () -> {
                    try {
                        return Gateways.post(gateway, "/v1/completions", body).statusCode();
                    } catch (Exception e) {
                        throw new IllegalStateException(e);
                    }
                });
    }

    @Test
    void theLimitOfRequestsComesBeforeTheBody() throws Exception {
        final CountDownLatch release = new CountDownLatch(1);
        try (FakeEngine engine = engine(release);
                GatewayServer gateway =
                        GatewayServer.start(
                                Gateways.config(engine.worker("w"))
                                        .set(RouterSettings.MAX_ACTIVE_REQUESTS, 1)
                                        .build())) {
            final CompletableFuture<Integer> first = inBackground(gateway, SMALL);
            Eventually.holds("one is under way", () -> engine.inFlight.get() == 1);
            for (String path : new String[] {"/v1/completions", "/tokenize"}) {
                try (RawClient client = new RawClient(gateway.port())) {
                    client.send(
                            "POST "
                                    + path
                                    + " HTTP/1.1\r\nHost: x\r\nContent-Length: 30000000\r\n"
                                    + "Expect: 100-continue\r\n\r\n");
                    final String answer = client.readUntil("}}");
                    assertTrue(answer.startsWith("HTTP/1.1 429"), answer);
                    assertTrue(answer.contains("Retry-After: 1"), answer);
                    assertTrue(answer.contains("max-active-requests"), answer);
                }
            }
            release.countDown();
            assertEquals(200, first.get(1, TimeUnit.MINUTES));
            for (int i = 0; i < 50; i++) { // one after the other never counts as two
                assertEquals(200, Gateways.post(gateway, "/v1/completions", SMALL).statusCode());
                assertEquals(400, Gateways.post(gateway, "/v1/completions", "{}").statusCode());
            }
        }
    }

    @Test
    void aRefusedBodyThatIsLongInComingHoldsNothing() throws Exception {
        final CountDownLatch release = new CountDownLatch(0);
        try (FakeEngine engine = engine(release);
                GatewayServer gateway =
                        GatewayServer.start(
                                Gateways.config(engine.worker("w"))
                                        .set(GatewaySettings.MAX_BODY_BYTES_IN_FLIGHT, 100_000L)
                                        .build());
                RawClient client = new RawClient(gateway.port())) {
            client.send(
                    "POST /v1/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding:"
                            + " chunked\r\n\r\n");
            client.send(("1000\r\n" + "x".repeat(4096) + "\r\n").repeat(40)); // and no end
            Eventually.holds(
                    "others have room", () -> inBackground(gateway, large(60_000)).join() == 200);
        }
    }

    @Test
    void bodiesShareABudgetOfBytes() throws Exception {
        final CountDownLatch release = new CountDownLatch(1);
        try (FakeEngine engine = engine(release);
                GatewayServer gateway =
                        GatewayServer.start(
                                Gateways.config(engine.worker("w"))
                                        .set(GatewaySettings.MAX_BODY_BYTES_IN_FLIGHT, 100_000L)
                                        .build())) {
            final HttpResponse<String> tooLarge =
                    Gateways.post(gateway, "/v1/completions", large(100_001));
            assertEquals(413, tooLarge.statusCode());
            assertTrue(tooLarge.body().contains("max-body-bytes-in-flight"), tooLarge.body());
            try (RawClient client = new RawClient(gateway.port())) {
                client.send(
                        "POST /v1/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding:"
                                + " chunked\r\n\r\n");
                client.send(("1000\r\n" + "x".repeat(4096) + "\r\n").repeat(40) + "0\r\n\r\n");
                final String answer = client.readUntil("}}");
                assertTrue(answer.startsWith("HTTP/1.1 413"), answer);
            }
            final CompletableFuture<Integer> first = inBackground(gateway, large(60_000));
            Eventually.holds("one is under way", () -> engine.inFlight.get() == 1);
            final HttpResponse<String> refused =
                    Gateways.post(gateway, "/v1/completions", large(60_000));
            assertEquals(429, refused.statusCode(), refused.body());
            assertEquals("1", GatewayHttpTest.header(refused, "retry-after"));
            assertTrue(refused.body().contains("max-body-bytes-in-flight"), refused.body());
            try (RawClient client = new RawClient(gateway.port())) {
                client.send(
                        "POST /v1/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding:"
                                + " chunked\r\n\r\n");
                final String chunk = "1000\r\n" + "x".repeat(4096) + "\r\n";
                client.send(chunk.repeat(20) + "0\r\n\r\n");
                final String answer = client.readUntil("}}");
                assertTrue(answer.startsWith("HTTP/1.1 429"), answer);
            }
            release.countDown();
            assertEquals(200, first.get(1, TimeUnit.MINUTES));
            Eventually.holds(
                    "the bytes are free again",
                    () -> inBackground(gateway, large(60_000)).join() == 200);
        }
    }

    @Test
    void aLengthThatIsAnnouncedTakesNoMemoryBeforeItArrives() throws Exception {
        try (FakeEngine engine = new FakeEngine(call -> call.json(200, "{}"));
                GatewayServer gateway =
                        GatewayServer.start(
                                Gateways.config(engine.worker("w"))
                                        .set(GatewaySettings.MAX_BODY_BYTES_IN_FLIGHT, 200_000L)
                                        .build())) {
            try (RawClient slow = new RawClient(gateway.port());
                    RawClient other = new RawClient(gateway.port())) {
                for (RawClient client : new RawClient[] {slow, other}) {
                    client.send(
                            "POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length:"
                                    + " 199000\r\n\r\n{");
                }
                assertEquals(
                        200, Gateways.post(gateway, "/v1/completions", large(60_000)).statusCode());
            }
        }
    }

    /** Answers with much where it is asked to. */
    private static FakeEngine largeAnswers() {
        return new FakeEngine(
                call -> call.json(200, call.text().contains("large") ? LARGE_ANSWER : "{}"));
    }

    private static List<RawClient> askAndReadNothing(GatewayServer gateway, int count)
            throws Exception {
        final List<RawClient> clients = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            clients.add(
                    RawClient.withLittleRoom(gateway.port()).post("/v1/completions", ASK_LARGE));
        }
        return clients;
    }

    private static void close(List<RawClient> clients) throws IOException {
        for (RawClient client : clients) {
            client.close();
        }
    }

    @Test
    void anAnswerThatItsClientDoesNotReadCountsAsARequest() throws Exception {
        try (FakeEngine engine = largeAnswers();
                GatewayServer gateway =
                        GatewayServer.start(
                                Gateways.config(engine.worker("w"))
                                        .set(RouterSettings.MAX_ACTIVE_REQUESTS, 5)
                                        .build())) {
            final List<RawClient> unread = new ArrayList<>();
            while (unread.size() < 5) { // one after the other: two at once may count as three
                unread.addAll(askAndReadNothing(gateway, 1));
                Eventually.holds(
                        "its worker is done",
                        () ->
                                engine.calls.size() == unread.size()
                                        && gateway.router().activeLeases() == 0);
            }
            Eventually.holds(
                    "others are refused", () -> inBackground(gateway, SMALL).join() == 429);
            for (RawClient refused : askAndReadNothing(gateway, 15)) {
                try (refused) {
                    final String answer = refused.readUntil("}}");
                    assertTrue(answer.startsWith("HTTP/1.1 429"), answer);
                    assertTrue(answer.contains("max-active-requests"), answer);
                }
            }
            assertEquals(5, MetricsPage.of(gateway).sum("kvasir_requests_unread"));
            try (RawClient reading = unread.removeFirst()) {
                assertTrue(reading.drainUntil(END_OF_LARGE));
            }
            Eventually.holds("one has room", () -> inBackground(gateway, SMALL).join() == 200);
            close(unread);
            Eventually.holds(
                    "none waits", () -> MetricsPage.of(gateway).sum("kvasir_requests_unread") == 0);
        }
    }

    @Test
    void answersBeyondABudgetOfBytesGoAsTheyCome() throws Exception {
        final long budget = 5_000_000;
        try (FakeEngine engine = largeAnswers();
                GatewayServer gateway =
                        GatewayServer.start(
                                Gateways.config(engine.worker("w"))
                                        .set(GatewaySettings.MAX_BODY_BYTES_IN_FLIGHT, budget)
                                        .build())) {
            final List<RawClient> unread = askAndReadNothing(gateway, 1);
            Eventually.holds("one is held", () -> held(gateway) >= LARGE_ANSWER.length());
            unread.addAll(askAndReadNothing(gateway, 3));
            Eventually.holds(
                    "the workers of the others wait for their clients",
                    () -> engine.calls.size() == 4 && gateway.router().activeLeases() == 3);
            assertTrue(held(gateway) <= budget, held(gateway) + " bytes");
            assertEquals(
                    200,
                    inBackground(gateway, large(60_000)).join(),
                    "bodies have room of their own");
            for (RawClient client : unread) {
                assertTrue(client.drainUntil(END_OF_LARGE), "nothing is lost");
                client.close();
            }
            Eventually.holds("the bytes are free again", () -> held(gateway) == 0);
        }
    }

    private static double held(GatewayServer gateway) {
        return MetricsPage.of(gateway).sum("kvasir_answer_bytes_in_flight");
    }

    @Test
    void aClientThatLeavesEndsItsRenderingAndItsWaiting() throws Exception {
        try (FakeEngine engine = new FakeEngine(call -> call.json(200, "{}"));
                GatewayServer gateway =
                        GatewayServer.start(
                                Gateways.config(engine.worker("w"))
                                        .set(GatewaySettings.TOKENIZER, Path.of(SimModel.KEYWORD))
                                        .set(GatewaySettings.PROMPT_THREADS, 1)
                                        .set(GatewaySettings.PROMPT_QUEUE, 1)
                                        .set(GatewaySettings.TRUST_REQUEST_CHAT_TEMPLATE, true)
                                        .set(GatewaySettings.TEMPLATE_MAX_STEPS, Long.MAX_VALUE)
                                        .build())) {
            final String endless =
                    "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],"
                            + "\"chat_template\":\""
                            + "{% for a in range(99999) %}".repeat(4)
                            + "{% endfor %}".repeat(4)
                            + "\"}";
            try (RawClient working = new RawClient(gateway.port());
                    RawClient waiting = new RawClient(gateway.port())) {
                working.post("/v1/chat/completions", endless);
                Eventually.holds("it is rendered", () -> renders(gateway));
                waiting.post("/v1/chat/completions", endless);
                Eventually.holds(
                        "the queue is full", () -> inBackground(gateway, SMALL).join() == 429);
                assertEquals(200, Gateways.get(gateway, "/health").statusCode());
            }
            Eventually.holds(
                    "there is room again", () -> inBackground(gateway, SMALL).join() == 200);
            Eventually.holds(
                    "clients that left are counted",
                    () ->
                            MetricsPage.of(gateway).sum("kvasir_requests_total", "status", "499")
                                    > 0);
        }
    }

    private static boolean renders(GatewayServer gateway) {
        final MetricsPage page = MetricsPage.of(gateway);
        return page.sum("kvasir_requests_preparing") == 1
                && page.sum("kvasir_prompts_waiting") == 0;
    }

    @Test
    void errorsAreAnsweredCountedAndNotShown() throws Exception {
        final GatewayMetrics metrics = new GatewayMetrics();
        final RequestFailures failures = new RequestFailures(metrics);
        final Server server = new Server();
        final ServerConnector connector = new ServerConnector(server);
        connector.setHost("127.0.0.1");
        server.addConnector(connector);
        try (PromptExecutor executor = new PromptExecutor(1, 4, PromptExecutor.LARGE_BODY_BYTES)) {
            server.setHandler(
                    new Handler.Abstract() {
                        @Override
                        public boolean handle(Request request, Response response, Callback callback)
                                throws Exception {
                            new PromptTask(
                                            executor, failures, metrics, true, request, response,
                                            callback)
                                    .start(
                                            1,
                                            true,
                                            () -> {
                                                throw request.getHttpURI().getPath().equals("/oom")
                                                        ? new OutOfMemoryError("Java heap space")
                                                        : new StackOverflowError("secret");
                                            });
                            return true;
                        }
                    });
            server.start();
            for (String path : new String[] {"/oom", "/stack", "/oom"}) {
                try (RawClient client = new RawClient(connector.getLocalPort())) {
                    final String answer = client.post(path, "").readUntil("}}");
                    assertTrue(answer.startsWith("HTTP/1.1 500"), answer);
                    assertTrue(answer.contains("internal error"), answer);
                    assertFalse(answer.contains("Error\""), answer);
                    assertFalse(answer.contains("secret") || answer.contains("heap"), answer);
                }
            }
            final String page = metrics.page(null).text();
            assertTrue(
                    page.lines()
                            .anyMatch(
                                    line ->
                                            line.contains("route=\"unknown\"")
                                                    && line.contains("status=\"500\"")
                                                    && line.endsWith(" 3.0")),
                    page);
        } finally {
            server.stop();
        }
    }
}
