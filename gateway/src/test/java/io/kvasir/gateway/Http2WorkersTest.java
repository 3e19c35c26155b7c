package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.UpstreamHttp2;
import io.kvasir.gateway.config.WorkerConfig;
import io.kvasir.gateway.testing.FakeEngine;
import io.kvasir.gateway.testing.FrameEngine;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.gateway.testing.RawClient;
import io.kvasir.router.policy.RoutingMode;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.testsupport.Eventually;

import org.eclipse.jetty.http2.ErrorCode;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;

/** Workers that are spoken to over HTTP/2: many requests share a connection. */
@Order(1) // takes long: begins first, beside the others
class Http2WorkersTest {
    private static final String PATH = "/v1/completions";
    private static final String ANSWER = "{\"choices\":[],\"usage\":{\"prompt_tokens\":1}}";
    private static final String WHOLE = "{\"prompt\":[1]}";
    private static final String STREAM = "{\"prompt\":[1],\"stream\":true}";
    private static final String FIRST = FakeEngine.event("{\"index\":0,\"text\":\"first\"}");
    private static final String LAST = FakeEngine.event("{\"index\":0,\"text\":\"last\"}");

    private final CountDownLatch goOn = new CountDownLatch(1);
    private final FrameEngine engine = new FrameEngine(128, this::answer);
    private final ExecutorService clients = Executors.newVirtualThreadPerTaskExecutor();
    private GatewayServer gateway;

    private void answer(FrameEngine.Call call) throws IOException, InterruptedException {
        if (!call.text().contains("stream")) {
            call.json(200, ANSWER);
            return;
        }
        call.beginEvents();
        call.event(FIRST);
        while (!goOn.await(20, TimeUnit.MILLISECONDS)) {
            if (call.clientGone.getCount() == 0) {
                return;
            }
        }
        call.event(LAST);
        call.endEvents();
    }

    private GatewayConfig.Builder config(WorkerConfig... others) {
        final GatewayConfig.Builder config =
                Gateways.config(engine.worker("h2"))
                        .set(GatewaySettings.UPSTREAM_HTTP2, UpstreamHttp2.PRIOR_KNOWLEDGE);
        for (WorkerConfig other : others) {
            config.worker(other);
        }
        return config;
    }

    private void start(GatewayConfig.Builder config) throws InterruptedException {
        gateway = GatewayServer.start(config.build());
        Gateways.awaitContact(gateway);
    }

    @AfterEach
    void stop() {
        if (gateway != null) {
            gateway.close();
        }
        engine.close();
        clients.shutdownNow();
    }

    private HttpResponse<String> post(String body) throws Exception {
        return Gateways.post(gateway, PATH, body);
    }

    private Future<HttpResponse<String>> posted(String body) {
        return clients.submit(() -> post(body));
    }

    private RawClient streaming() throws IOException {
        final RawClient client = new RawClient(gateway.port());
        client.post(PATH, STREAM).readUntil("first");
        return client;
    }

    private String workers() {
        return gateway.workersPage();
    }

    private void assertNotBlamed() {
        assertTrue(workers().contains("\"last_error\":null"), workers());
    }

    private void assertNothingIsLeft() throws InterruptedException {
        Eventually.holds("the engine is released", () -> engine.inFlight.get() == 0);
        Eventually.holds("no booking is left", () -> gateway.router().activeLeases() == 0);
    }

    @Test
    void oneConnectionCarriesManyRequests() throws Exception {
        start(config());
        final List<Future<HttpResponse<String>>> answers = new ArrayList<>();
        for (int i = 0; i < 50; i++) {
            answers.add(posted(STREAM));
        }
        Eventually.holds("all run", () -> engine.inFlight.get() == 50);
        goOn.countDown();
        for (Future<HttpResponse<String>> answer : answers) {
            assertTrue(answer.get(1, TimeUnit.MINUTES).body().endsWith("[DONE]\n\n"));
        }
        assertEquals(ANSWER, post(WHOLE).body());
        assertEquals(1, engine.connections.get());
        final FrameEngine.Call call = engine.calls.getFirst();
        assertFalse(call.headers.contains("connection"), call.headers.asString());
        assertTrue(call.headers.contains("x-request-id"), call.headers.asString());
        assertNothingIsLeft();
    }

    @Test
    void aWorkerOfFewStreamsGetsMoreConnections() throws Exception {
        try (FrameEngine narrow = new FrameEngine(4, this::answer)) {
            start(
                    Gateways.config(narrow.worker("h2"))
                            .set(GatewaySettings.UPSTREAM_HTTP2, UpstreamHttp2.PRIOR_KNOWLEDGE));
            final List<Future<HttpResponse<String>>> answers = new ArrayList<>();
            for (int i = 0; i < 40; i++) {
                answers.add(posted(STREAM));
            }
            Eventually.holds("all run", () -> narrow.inFlight.get() == 40);
            goOn.countDown();
            for (Future<HttpResponse<String>> answer : answers) {
                assertTrue(answer.get(1, TimeUnit.MINUTES).body().endsWith("[DONE]\n\n"));
            }
            assertTrue(narrow.connections.get() >= 10, narrow.connections::toString);
            assertNotBlamed();
        }
    }

    @Test
    void aClientThatLeavesEndsItsStreamAlone() throws Exception {
        start(config());
        try (RawClient stays = streaming()) {
            streaming().close();
            Eventually.holds("one is released", () -> engine.inFlight.get() == 1);
            Eventually.holds("one is booked", () -> gateway.router().activeLeases() == 1);
            goOn.countDown();
            stays.readUntil("[DONE]");
        }
        assertEquals(1, engine.connections.get());
        assertNotBlamed();
        assertNothingIsLeft();
    }

    @Test
    void aStreamThatIsRefusedIsSentAgainAndNoFault() throws Exception {
        start(config());
        final AtomicInteger tries = new AtomicInteger();
        engine.script =
                call -> {
                    if (tries.incrementAndGet() % 2 == 1) {
                        call.reset(ErrorCode.REFUSED_STREAM_ERROR);
                    } else {
                        call.json(200, ANSWER);
                    }
                };
        for (int i = 0; i < 10; i++) {
            assertEquals(200, post("{\"prompt\":[" + i + "]}").statusCode());
        }
        assertNotBlamed();
        engine.script = call -> call.reset(ErrorCode.REFUSED_STREAM_ERROR);
        for (int i = 0; i < 10; i++) {
            GatewayHttpTest.assertError(
                    post("{\"prompt\":[" + i + "]}"), 503, "upstream_refused", "did not take");
        }
        assertNotBlamed();
        assertTrue(gateway.router().workers().get(0).available());
        assertNothingIsLeft();
    }

    @Test
    void whatAGoAwayExcludesIsSentAgainAndTheRestEndsWhole() throws Exception {
        start(config());
        final AtomicInteger others = new AtomicInteger();
        engine.script =
                call -> {
                    if (call.text().contains("stream") || others.incrementAndGet() > 1) {
                        answer(call);
                    } else {
                        engine.goAway(call.stream.getId() - 2);
                        call.awaitClientGone(60);
                    }
                };
        try (RawClient stream = streaming()) {
            assertEquals(ANSWER, post(WHOLE).body());
            goOn.countDown();
            stream.readUntil("[DONE]");
        }
        assertTrue(engine.connections.get() > 1);
        assertNotBlamed();
        assertNothingIsLeft();
    }

    @Test
    void aStreamThatFailsIsTheWorkersFaultAndReplaced() throws Exception {
        try (FrameEngine second = new FrameEngine(128, call -> call.json(200, ANSWER))) {
            start(
                    config(second.worker("second"))
                            .set(RouterSettings.MODE, RoutingMode.ROUND_ROBIN)
                            .set(GatewaySettings.BREAKER_WINDOW, Duration.ofMinutes(10))
                            .set(GatewaySettings.BREAKER_HOLD, Duration.ofMinutes(10)));
            engine.script = call -> call.reset(ErrorCode.INTERNAL_ERROR);
            for (int i = 0; i < 20; i++) {
                assertEquals(200, post("{\"prompt\":[" + i + "]}").statusCode());
            }
            assertTrue(workers().contains("ejected"), workers());
            assertTrue(workers().contains("internal_error"), workers());
        }
    }

    @Test
    void aStreamThatFailsInTheMiddleEndsWithAnErrorEventAndNoOther() throws Exception {
        start(config());
        try (RawClient stays = streaming();
                RawClient fails = streaming()) {
            engine.calls.get(1).reset(ErrorCode.INTERNAL_ERROR);
            fails.readUntil("\"kind\":\"closed\"");
            goOn.countDown();
            stays.readUntil("[DONE]");
        }
        assertEquals(1, engine.connections.get());
        assertNothingIsLeft();
    }

    @Test
    void aConnectionThatIsLostIsOneFaultHoweverManyStreamsItCarried() throws Exception {
        start(config());
        final List<RawClient> begun = new ArrayList<>();
        for (int i = 0; i < 20; i++) {
            final RawClient client = new RawClient(gateway.port());
            client.post(PATH, "{\"prompt\":[" + i + "],\"stream\":true}").readUntil("first");
            begun.add(client);
        }
        engine.cut();
        for (RawClient client : begun) {
            client.readUntil("\"kind\":\"closed\"");
            client.close();
        }
        assertTrue(gateway.router().workers().get(0).available(), workers());
        assertEquals(ANSWER, post(WHOLE).body());
        assertNothingIsLeft();
    }

    @Test
    void requestsThatMeetAConnectionClosedBeforeAreSentAgainAndNoFault() throws Exception {
        start(config().set(GatewaySettings.HEALTH_INTERVAL, Duration.ofMinutes(1)));
        for (int round = 0; round < 10; round++) {
            assertEquals(ANSWER, post(WHOLE).body());
            engine.cut();
            final List<Future<HttpResponse<String>>> answers = new ArrayList<>();
            for (int i = 0; i < 10; i++) {
                answers.add(posted("{\"prompt\":[" + i + "]}"));
            }
            for (Future<HttpResponse<String>> answer : answers) {
                assertEquals(ANSWER, answer.get(1, TimeUnit.MINUTES).body());
            }
        }
        assertNotBlamed();
    }

    @Tag("integration") // waits for longer than a limit that is no setting
    @Test
    void aSilentAnswerIsWaitedForBeyondTheIdleLimitOfConnections() throws Exception {
        start(config().set(GatewaySettings.HEALTH_INTERVAL, Duration.ofMinutes(1)));
        final AtomicInteger begun = new AtomicInteger();
        engine.script =
                call -> {
                    if (begun.incrementAndGet() == 2) {
                        engine.goAwayLater();
                    }
                    goOn.await(9, TimeUnit.SECONDS); // more than twice the limit
                    call.json(200, ANSWER);
                };
        final Future<HttpResponse<String>> one = posted(WHOLE);
        Eventually.holds("it runs", () -> begun.get() == 1);
        engine.cut();
        Eventually.holds("on another connection", () -> begun.get() == 2);
        assertEquals(ANSWER, one.get(1, TimeUnit.MINUTES).body());
        assertEquals(2, engine.calls.size());
    }

    @Test
    void aTimeLimitEndsItsStreamAlone() throws Exception {
        start(config().set(GatewaySettings.FIRST_BYTE_TIMEOUT, Duration.ofSeconds(2)));
        try (RawClient stays = streaming()) {
            engine.script = call -> call.awaitClientGone(60);
            GatewayHttpTest.assertError(
                    post(STREAM), 504, "upstream_timeout", "it was silent for too long");
            goOn.countDown();
            stays.readUntil("[DONE]");
        }
        assertEquals(1, engine.connections.get());
        assertNothingIsLeft();
    }

    @Test
    void clientsThatDoNotReadHoldTheirOwnStreamsBackAlone() throws Exception {
        start(config());
        final AtomicLong written = new AtomicLong();
        engine.script =
                call -> {
                    if (!call.text().contains("stream")) {
                        call.json(200, ANSWER);
                        return;
                    }
                    call.beginEvents();
                    final String event = "data: " + "x".repeat(16_000) + "\n\n";
                    while (call.clientGone.getCount() > 0) {
                        call.event(event);
                        written.addAndGet(event.length());
                    }
                };
        final List<RawClient> unread = new ArrayList<>();
        for (int i = 0; i < 4; i++) {
            unread.add(new RawClient(gateway.port()).post(PATH, STREAM));
        }
        Eventually.holds("all run", () -> engine.inFlight.get() == 4);
        final AtomicLong before = new AtomicLong(-1);
        Eventually.holds(
                "the engine is held back",
                () -> {
                    try {
                        Thread.sleep(200);
                    } catch (InterruptedException e) {
                        throw new IllegalStateException(e);
                    }
                    return before.getAndSet(written.get()) == written.get();
                });
        assertEquals(ANSWER, post(WHOLE).body());
        assertEquals(1, engine.connections.get());
        for (RawClient client : unread) {
            client.close();
        }
        assertNothingIsLeft();
    }

    @Test
    void anAnswerBeforeTheBodyIsReadComesThrough() throws Exception {
        start(config());
        engine.readsBodies = false;
        engine.script =
                call -> {
                    call.json(400, "{\"error\":\"no\"}");
                    call.reset(ErrorCode.NO_ERROR);
                };
        final HttpResponse<String> answer = post("{\"prompt\":[" + "1,".repeat(2_000_000) + "1]}");
        assertEquals(400, answer.statusCode());
        assertEquals("{\"error\":\"no\"}", answer.body());
        assertNotBlamed();
    }

    @Test
    void aDeadConnectionIsGivenUpWithWhatWaitsOnIt() throws Exception {
        start(
                config().set(GatewaySettings.HEALTH_TIMEOUT, Duration.ofSeconds(1))
                        .set(GatewaySettings.HEALTH_FAULTS, 2));
        final CompletableFuture<FrameEngine.Call> first = new CompletableFuture<>();
        engine.script =
                call -> {
                    first.complete(call);
                    call.awaitClientGone(60);
                };
        final Future<HttpResponse<String>> waits = posted(WHOLE);
        final FrameEngine.Call dead = first.get(1, TimeUnit.MINUTES);
        engine.script = this::answer;
        engine.health =
                call -> {
                    if (!call.session.equals(dead.session)) {
                        call.json(200, "{}");
                    }
                };
        assertEquals(504, waits.get(1, TimeUnit.MINUTES).statusCode());
        Eventually.holds("it is used again", () -> gateway.router().workers().get(0).available());
        assertEquals(ANSWER, post(WHOLE).body());
        assertTrue(engine.connections.get() > 1);
    }

    @Test
    void requestsWithAQueryThatIsNoneOpenNoConnection() throws Exception {
        start(config());
        for (int i = 0; i < 20; i++) {
            try (RawClient client = new RawClient(gateway.port())) {
                final String answer =
                        client.post(PATH + "?a=%zz", WHOLE, "Connection: close").readAll();
                assertTrue(answer.contains("the query cannot be decoded"), answer);
            }
        }
        assertEquals(ANSWER, post(WHOLE).body());
        assertEquals(1, engine.connections.get());
        assertNotBlamed();
        assertNothingIsLeft();
    }
}
