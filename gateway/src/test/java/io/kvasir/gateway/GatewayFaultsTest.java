package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import ch.qos.logback.classic.Level;

import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewayException;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.openai.Json;
import io.kvasir.gateway.testing.CapturedLog;
import io.kvasir.gateway.testing.FakeEngine;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.gateway.testing.MetricsPage;
import io.kvasir.gateway.testing.RawClient;
import io.kvasir.router.Worker;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.FreePorts;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;

import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;

@Order(0) // takes longest: begins before all others
class GatewayFaultsTest {
    private static final String ANSWER = "{\"choices\":[],\"usage\":{\"prompt_tokens\":1}}";
    private static final String WHOLE = "{\"prompt\":[1]}";
    private static final String STREAM = "{\"prompt\":[1],\"stream\":true}";

    private final FakeEngine good = new FakeEngine(call -> call.json(200, ANSWER));
    private final FakeEngine bad = new FakeEngine(call -> call.json(200, ANSWER));
    private GatewayServer gateway;

    /** Round robin: the bad one is asked first. */
    private void start(GatewayConfig.Builder config) {
        gateway = GatewayServer.start(config.build());
    }

    private GatewayConfig.Builder both() {
        return Gateways.config(bad.worker("bad"), good.worker("good"));
    }

    @AfterEach
    void stop() {
        gateway.close();
        good.close();
        bad.close();
    }

    @Test
    void aDeadWorkerIsReplacedBeforeTheClientNoticesAndIsLeftOutAfterwards() throws Exception {
        start(both().set(GatewaySettings.HEALTH_INTERVAL, Duration.ofMinutes(1)));
        Gateways.awaitContact(gateway);
        bad.close();
        for (int i = 0; i < 6; i++) { // by cost, equal ones could all be the good worker
            final HttpResponse<String> answer =
                    Gateways.post(
                            gateway, "/v1/completions", WHOLE, "x-kvasir-mode", "round-robin");
            assertEquals(200, answer.statusCode());
            assertEquals("good", GatewayHttpTest.header(answer, "x-kvasir-worker"));
        }
        assertFalse(gateway.router().workers().get(0).available());
        final String page = Gateways.get(gateway, "/metrics").body();
        assertTrue(
                page.contains(
                        "kvasir_upstream_attempts_total{outcome=\"connect\",worker=\"bad\"} 1.0"),
                page);
        assertEquals(0, gateway.router().activeLeases());
    }

    @Test
    void aRequestToAGatewayWhoseRouterIsClosedIsRefusedByName() throws Exception {
        start(both());
        Gateways.awaitContact(gateway);
        gateway.router().close();
        for (String body : new String[] {WHOLE, STREAM}) {
            final HttpResponse<String> answer = Gateways.post(gateway, "/v1/completions", body);
            assertEquals(503, answer.statusCode());
            final JsonNode error = Json.MAPPER.readTree(answer.body()).path("error");
            assertEquals("service_unavailable", error.path("code").asText());
            assertEquals("server_error", error.path("type").asText());
            assertEquals("router", error.path("kvasir").path("leg").asText());
            assertEquals("closed", error.path("kvasir").path("kind").asText());
            assertTrue(error.path("kvasir").path("retryable").asBoolean());
        }
        assertEquals(200, Gateways.get(gateway, "/metrics").statusCode());
    }

    private static final FakeEngine.Script HALF_A_STREAM =
            call -> {
                call.beginEvents();
                call.chunk("data: {\"half");
                call.endChunks();
            };

    /** What fails by its only worker: how, script, body, and the answer's status. */
    static List<Arguments> failuresOfTheOnlyWorker() {
        final FakeEngine.Script status = call -> call.json(500, "{\"error\":\"oom\"}");
        return List.of(
                Arguments.of("closes early", (FakeEngine.Script) FakeEngine.Call::cut, WHOLE, 502),
                Arguments.of("malformed stream", HALF_A_STREAM, STREAM, 502),
                Arguments.of("status", status, WHOLE, 500),
                Arguments.of("error event", errorEvent(500), STREAM, 200));
    }

    private static FakeEngine.Script errorEvent(int code) {
        return call -> call.errorEvent(code);
    }

    @ParameterizedTest(name = "{0}")
    @MethodSource("failuresOfTheOnlyWorker")
    void aRequestThatFailsAtTheOnlyWorkerHasOneLineInTheLog(
            String name, FakeEngine.Script script, String body, int status) throws Exception {
        start(Gateways.config(bad.worker("bad")));
        Gateways.awaitContact(gateway);
        bad.script = script;
        assertHasOneLine(body, status, "upstream worker bad at " + bad.url() + " failed (");
    }

    @Test
    void aRequestToAPortThatIsClosedHasOneLineInTheLog() throws Exception {
        start(
                Gateways.config(bad.worker("bad"))
                        .set(GatewaySettings.HEALTH_INTERVAL, Duration.ofMinutes(1)));
        Gateways.awaitContact(gateway);
        bad.close();
        assertHasOneLine(WHOLE, 502, "upstream worker bad at " + bad.url() + " failed (connect, ");
    }

    @Test
    void aRequestThatFailsAtEachWorkerHasOneLineInTheLog() throws Exception {
        bad.script = FakeEngine.Call::cut;
        good.script = FakeEngine.Call::cut;
        start(both());
        Gateways.awaitContact(gateway);
        assertHasOneLine(WHOLE, 502, " failed (closed, attempt ");
    }

    private void assertHasOneLine(String body, int status, String expected) throws Exception {
        try (CapturedLog log = new CapturedLog(Level.WARN)) { // the level of all tests
            final HttpResponse<String> answer = Gateways.post(gateway, "/v1/completions", body);
            assertEquals(status, answer.statusCode(), answer.body());
            final String id = GatewayHttpTest.header(answer, "x-request-id");
            final List<String> lines =
                    log.textsFrom(Level.WARN).stream()
                            .filter(line -> line.startsWith(id + ": "))
                            .toList();
            assertEquals(1, lines.size(), lines.toString());
            assertTrue(lines.getFirst().contains(expected), lines.getFirst());
        }
    }

    @Test
    void aWorkerThatComesBackIsUsedAgain() throws Exception {
        final int port = FreePorts.run(1);
        try (FakeEngine before = new FakeEngine(call -> call.json(200, ANSWER), port)) {
            start(Gateways.config(before.worker("again"), good.worker("good")));
            Gateways.awaitContact(gateway);
        }
        Eventually.holds("out", () -> !gateway.router().workers().get(0).available());
        try (FakeEngine again = new FakeEngine(call -> call.json(200, ANSWER), port)) {
            Eventually.holds("back", () -> gateway.router().workers().get(0).available());
            for (int i = 0; i < 4; i++) {
                assertEquals(
                        200,
                        Gateways.post(
                                        gateway,
                                        "/v1/completions",
                                        WHOLE,
                                        "x-kvasir-mode",
                                        "round-robin")
                                .statusCode());
            }
            assertEquals(2, again.calls.size());
        }
    }

    @Test
    void aRequestThatOutlivesItsBookingIsNoLoadButGetsItsAnswer() throws Exception {
        final CountDownLatch released = new CountDownLatch(1);
        good.script =
                call -> {
                    released.await();
                    call.json(200, ANSWER);
                };
        start(
                Gateways.config(good.worker("good"))
                        .set(RouterSettings.BOOKING_TIMEOUT, Duration.ofMillis(1)));
        Gateways.awaitContact(gateway);
        final Worker worker = gateway.router().workers().get(0);
        final CompletableFuture<HttpResponse<String>> answer =
                CompletableFuture.supplyAsync(
                        () -> {
                            try {
                                return Gateways.post(gateway, "/v1/completions", WHOLE);
                            } catch (Exception e) {
                                throw new IllegalStateException(e);
                            }
                        });
        Eventually.holds("expiry", () -> gateway.router().expiredLeases() == 1);
        Eventually.holds("no load", () -> worker.activeRequests() == 0);
        Eventually.holds("no lease", () -> gateway.router().activeLeases() == 0);
        released.countDown();
        assertEquals(200, answer.get().statusCode());
        assertEquals(0, worker.activeRequests());
        final String page = Gateways.get(gateway, "/metrics").body();
        assertTrue(page.contains("kvasir_bookings_expired_total 1.0"), page);
    }

    @Test
    void withoutAnotherWorkerTheErrorNamesTheDeadOne() throws Exception {
        start(
                Gateways.config(bad.worker("bad"))
                        .set(GatewaySettings.HEALTH_INTERVAL, Duration.ofMinutes(1)));
        Gateways.awaitContact(gateway);
        bad.close(); // the probe's connection, if not yet seen to be closed, is tried first
        final JsonNode error =
                GatewayHttpTest.assertError(
                        Gateways.post(gateway, "/v1/completions", WHOLE),
                        502,
                        "upstream_connect",
                        "upstream worker bad failed (connect, attempt ");
        assertEquals("upstream", error.at("/kvasir/leg").textValue());
        assertEquals("bad", error.at("/kvasir/worker").textValue());
        assertTrue(error.at("/kvasir/retryable").booleanValue());
        GatewayHttpTest.assertError(
                Gateways.post(gateway, "/v1/completions", WHOLE),
                503,
                "service_unavailable",
                "no worker can serve requests at this moment");
    }

    /** Repeated: bytes of an answer were lost when another connection ended at a bad moment. */
    @RepeatedTest(5)
    void aWorkerThatCutsTheConnectionBeforeItsFirstEventIsReplaced() throws Exception {
        for (FakeEngine.Script script :
                new FakeEngine.Script[] {
                    FakeEngine.Call::cut,
                    call -> {
                        call.beginEvents();
                        call.cut();
                    },
                    call -> {
                        call.beginEvents();
                        call.chunk("data: {\"half");
                        call.cut();
                    },
                    call -> {
                        call.beginEvents();
                        call.endChunks();
                    }
                }) {
            bad.script = script;
            good.script = FakeEngine.chatStream(1, 0);
            start(both());
            for (int i = 0; i < 2; i++) {
                final String events =
                        Gateways.post(
                                        gateway,
                                        "/v1/completions",
                                        STREAM,
                                        "x-kvasir-mode",
                                        "round-robin")
                                .body();
                assertTrue(events.contains("t0 ") && events.endsWith("[DONE]\n\n"), events);
            }
            assertTrue(bad.calls.size() >= 1);
            bad.calls.clear();
            gateway.close();
        }
    }

    @Test
    void aWorkerThatCutsAWholeAnswerInTheMiddleIsReplaced() throws Exception {
        bad.script =
                call -> {
                    call.raw("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"half");
                    call.cut();
                };
        start(both());
        for (int i = 0; i < 2; i++) {
            assertEquals(
                    ANSWER,
                    Gateways.post(gateway, "/v1/completions", WHOLE, "x-kvasir-mode", "round-robin")
                            .body());
        }
        assertTrue(bad.calls.size() >= 1);
    }

    /** An answer that the connection's end ends. */
    private static final String WITHOUT_LENGTH =
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n";

    @Test
    void anAnswerWithoutALengthIsWholeAtTheEndOfItsConnectionButNotAtAReset() throws Exception {
        good.script =
                call -> {
                    call.raw(WITHOUT_LENGTH + "{\"half");
                    Thread.sleep(200); // a reset takes what has not been read with it
                    call.cut();
                };
        start(Gateways.config(good.worker("good")).set(GatewaySettings.RETRIES, 0));
        final HttpResponse<String> cut = Gateways.post(gateway, "/v1/completions", WHOLE);
        assertEquals(502, cut.statusCode(), cut.body());
        assertTrue(cut.body().contains("\"kind\":\"closed\""), cut.body());
        good.script = call -> call.raw(WITHOUT_LENGTH + ANSWER);
        assertEquals(ANSWER, Gateways.post(gateway, "/v1/completions", WHOLE).body());
    }

    @Test
    void aPartOfAnAnswerWithoutALengthHasNoEndWhereItWasReset() throws Exception {
        good.script =
                call -> {
                    call.raw(WITHOUT_LENGTH + "{\"half" + "y".repeat(5 << 20));
                    Thread.sleep(1000);
                    call.cut();
                };
        start(Gateways.config(good.worker("good")));
        try (RawClient client = new RawClient(gateway.port())) {
            client.post("/v1/completions", WHOLE);
            assertTrue(client.readUntil("\r\n\r\n").startsWith("HTTP/1.1 200 "));
            assertFalse(client.drainUntil("\r\n0\r\n"), "the last chunk");
        }
    }

    @Test
    void aWorkerThatDiesInTheMiddleOfAStreamIsNamedInAnErrorEvent() throws Exception {
        bad.script =
                call -> {
                    call.beginEvents();
                    call.chunk(FakeEngine.event("{\"index\":0,\"text\":\"a\"}") + "data: {\"half");
                    call.cut();
                };
        start(Gateways.config(bad.worker("bad")));
        final HttpResponse<String> answer = Gateways.post(gateway, "/v1/completions", STREAM);
        assertEquals(200, answer.statusCode());
        final String[] events = answer.body().split("\n\n", -1);
        assertEquals(3, events.length, answer.body());
        assertTrue(events[0].contains("\"text\":\"a\""));
        final JsonNode error =
                Json.MAPPER.readTree(events[1].substring("data: ".length())).get("error");
        assertEquals("server_error", error.get("type").textValue());
        assertEquals("upstream", error.at("/kvasir/leg").textValue());
        assertEquals("bad", error.at("/kvasir/worker").textValue());
        assertEquals("closed", error.at("/kvasir/kind").textValue());
        assertEquals("", events[2]);
        assertEquals(0, gateway.router().activeLeases());
    }

    @Test
    void aStreamThatEndsWithoutItsMarkEndsWithAnErrorEvent() throws Exception {
        bad.script =
                call -> {
                    call.beginEvents();
                    call.chunk(FakeEngine.event("{\"index\":0,\"text\":\"a\"}"));
                    call.endChunks();
                };
        start(Gateways.config(bad.worker("bad")));
        final String events = Gateways.post(gateway, "/v1/completions", STREAM).body();
        assertTrue(events.contains("failed (protocol, attempt 1 of 3)"), events);
    }

    private static final String DONE = "data: [DONE]\n\n";

    /** What follows an end mark in place of the end: how, and what the worker does. */
    static List<Arguments> endsOfConnections() {
        final FakeEngine.Script close = _ -> {};
        final FakeEngine.Script silence = call -> call.awaitClientGone(60);
        final FakeEngine.Script comments =
                call -> {
                    while (!call.clientGone.await(20, TimeUnit.MILLISECONDS)) {
                        call.chunk(": more\n\n");
                    }
                };
        return List.of(
                Arguments.of("closed", close),
                Arguments.of("reset", (FakeEngine.Script) FakeEngine.Call::cut),
                Arguments.of("silent", silence),
                Arguments.of("comments", comments));
    }

    @ParameterizedTest(name = "{0}")
    @MethodSource("endsOfConnections")
    void aStreamWithItsMarkIsCompleteHoweverItsConnectionEnds(String name, FakeEngine.Script script)
            throws Exception {
        start(
                Gateways.config(bad.worker("bad"))
                        .set(GatewaySettings.BREAKER_FAULTS, 1)
                        .set(GatewaySettings.PANIC_PERCENT, 0));
        Gateways.awaitContact(gateway);
        for (int i = 0; i < 3; i++) {
            final CountDownLatch read = new CountDownLatch(1);
            bad.script =
                    call -> {
                        call.beginEvents();
                        call.chunk(FakeEngine.event("{\"index\":0,\"text\":\"a\"}") + DONE);
                        read.await();
                        script.answer(call);
                    };
            try (RawClient client = new RawClient(gateway.port())) {
                client.post("/v1/completions", STREAM, "Connection: close").readUntil(DONE);
                read.countDown();
                assertFalse(client.readAll().contains("data: "));
            }
            Eventually.holds("the engine is released", () -> bad.inFlight.get() == 0);
        }
        final MetricsPage page = MetricsPage.of(gateway);
        assertEquals(Set.of("ok"), page.values("kvasir_upstream_attempts_total", "outcome"));
        assertEquals(3, page.sum("kvasir_requests_total", "route", "completions", "status", "200"));
        assertTrue(healthOf(0).path("last_error").isNull(), healthOf(0).toString());
        assertTrue(gateway.router().workers().get(0).available());
        assertEquals(0, gateway.router().activeLeases());
    }

    @Test
    void aRefusalForLoadIsTriedElsewhereAndIsNoFault() throws Exception {
        bad.script = call -> call.json(429, "{\"error\":\"busy\"}");
        start(both());
        for (int i = 0; i < 10; i++) {
            assertEquals(
                    200,
                    Gateways.post(gateway, "/v1/completions", WHOLE, "x-kvasir-mode", "round-robin")
                            .statusCode());
        }
        assertTrue(gateway.router().workers().get(0).available());
        assertTrue(bad.calls.size() >= 3);
        assertEquals(10, good.calls.size());
    }

    @Test
    void aRefusalThatNobodyElseCanTakeIsPassedOnAsItIs() throws Exception {
        bad.script = call -> call.json(503, "{\"error\":\"warming up\"}");
        start(Gateways.config(bad.worker("bad")));
        for (int i = 0; i < 10; i++) {
            final HttpResponse<String> answer = Gateways.post(gateway, "/v1/completions", WHOLE);
            assertEquals(503, answer.statusCode());
            assertEquals("{\"error\":\"warming up\"}", answer.body());
        }
        assertTrue(gateway.router().workers().get(0).available());
        assertEquals(10, bad.calls.size());
    }

    @Test
    void aFaultOfTheEngineIsTriedElsewhereAndAClientsMistakeIsNot() throws Exception {
        bad.script = call -> call.json(500, "{\"error\":\"oom\"}");
        start(both());
        assertEquals(
                200,
                Gateways.post(gateway, "/v1/completions", WHOLE, "x-kvasir-mode", "round-robin")
                        .statusCode());
        assertEquals(1, bad.calls.size());
        bad.script = call -> call.json(400, "{\"error\":\"your mistake\"}");
        good.script = bad.script;
        final HttpResponse<String> answer =
                Gateways.post(gateway, "/v1/completions", WHOLE, "x-kvasir-mode", "round-robin");
        assertEquals(400, answer.statusCode());
        assertEquals("{\"error\":\"your mistake\"}", answer.body());
        assertEquals(3, bad.calls.size() + good.calls.size());
    }

    @Test
    void anErrorInPlaceOfTheFirstEventIsAsOneInPlaceOfTheAnswer() throws Exception {
        good.script = FakeEngine.chatStream(3, 0);
        start(both());
        Gateways.awaitContact(gateway);
        for (int code : new int[] {500, 503}) {
            final int before = bad.calls.size();
            bad.script = call -> call.errorEvent(code);
            for (int i = 0; i < 2; i++) { // one of them goes there first
                final HttpResponse<String> answer = chat();
                assertEquals("good", GatewayHttpTest.header(answer, "x-kvasir-worker"));
                assertTrue(answer.body().contains("t2"), answer.body());
            }
            assertTrue(bad.calls.size() > before);
        }
        for (int code : new int[] {422, 501, 500}) { // 500 from both: none is left to be asked
            bad.script = call -> call.errorEvent(code);
            good.script = bad.script;
            final HttpResponse<String> answer = chat();
            assertEquals(200, answer.statusCode());
            assertTrue(answer.body().startsWith("data: {\"error\":{\"code\":" + code), "as it is");
            assertEquals(
                    1,
                    MetricsPage.of(gateway)
                            .sum("kvasir_upstream_attempts_total", "outcome", "status_" + code));
        }
        assertEquals(0, gateway.router().activeLeases());
    }

    @ParameterizedTest
    @CsvSource({"500, 500, true", "0, 500, true", "503, 503, false", "422, 422, false"})
    void anErrorEventWithinAStreamCountsAsAnAnswerWithItsStatus(
            int code, String status, boolean isFault) throws Exception {
        final CountDownLatch read = new CountDownLatch(1);
        final String end =
                "data: {\"error\":{\"code\":" + code + ",\"message\":\"x\"}}\n\ndata: [DONE]\n\n";
        bad.script =
                call -> {
                    call.beginEvents();
                    call.chunk(FakeEngine.event("{\"index\":0,\"text\":\"a\"}"));
                    read.await();
                    call.chunk(end);
                    call.endChunks();
                };
        start(
                both().set(GatewaySettings.BREAKER_FAULTS, 1)
                        .set(GatewaySettings.BREAKER_HOLD, Duration.ofHours(1))
                        .set(GatewaySettings.PANIC_PERCENT, 0));
        Gateways.awaitContact(gateway);
        try (RawClient client = new RawClient(gateway.port())) {
            client.post("/v1/completions", STREAM, "x-kvasir-worker: bad", "Connection: close");
            client.readUntil("\"text\":\"a\"");
            read.countDown();
            final String rest = client.readAll();
            assertTrue(rest.contains(end), rest);
        }
        final MetricsPage page = MetricsPage.of(gateway);
        assertEquals(
                Set.of("status_" + status),
                page.values("kvasir_upstream_attempts_total", "outcome"));
        assertEquals(
                1, page.sum("kvasir_requests_total", "route", "completions", "status", status));
        final Worker worker = gateway.router().workers().get(0);
        if (isFault) {
            Eventually.holds("it is left out", () -> !worker.available());
        }
        assertEquals(!isFault, worker.available());
        assertEquals(0, gateway.router().activeLeases());
    }

    private HttpResponse<String> chat() throws Exception {
        return Gateways.post(
                gateway,
                "/v1/chat/completions",
                "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"stream\":true}",
                "x-kvasir-mode",
                "round-robin");
    }

    @Test
    void aWorkerThatFallsSilentIsGivenUpAfterTheIdleTimeout() throws Exception {
        bad.script = call -> call.awaitClientGone(60);
        start(
                Gateways.config(bad.worker("bad"))
                        .set(GatewaySettings.RETRIES, 0)
                        .set(GatewaySettings.ANSWER_TIMEOUT, Duration.ofMillis(200))
                        .set(GatewaySettings.STREAM_IDLE_TIMEOUT, Duration.ofMillis(200)));
        GatewayHttpTest.assertError(
                Gateways.post(gateway, "/v1/completions", WHOLE),
                504,
                "upstream_timeout",
                "worker bad");
        bad.script =
                call -> {
                    call.beginEvents();
                    call.chunk(FakeEngine.event("{\"index\":0,\"text\":\"a\"}"));
                    call.awaitClientGone(60);
                };
        final String events = Gateways.post(gateway, "/v1/completions", STREAM).body();
        assertTrue(events.contains("upstream_timeout"), events);
        assertEquals(0, gateway.router().activeLeases());
    }

    @Test
    void aSlowWorkerIsNotCutByTheClientsIdleTimeout() throws Exception {
        good.script =
                call -> {
                    Thread.sleep(4_500);
                    call.json(200, ANSWER);
                };
        start(
                Gateways.config(good.worker("good"))
                        .set(GatewaySettings.CLIENT_IDLE_TIMEOUT, Duration.ofSeconds(2)));
        assertEquals(200, Gateways.post(gateway, "/v1/completions", WHOLE).statusCode());
    }

    @Test
    void aClientThatStopsReadingIsGivenUpAndTheEngineIsReleased() throws Exception {
        good.script =
                call -> {
                    call.beginEvents();
                    final String big =
                            FakeEngine.event(
                                    "{\"index\":0,\"text\":\"" + "x".repeat(60_000) + "\"}");
                    for (int i = 0; i < 10_000; i++) {
                        call.chunk(big); // throws once the gateway has closed the connection
                    }
                };
        start(
                Gateways.config(good.worker("good"))
                        .set(GatewaySettings.CLIENT_IDLE_TIMEOUT, Duration.ofSeconds(2)));
        try (RawClient client = new RawClient(gateway.port())) {
            client.post("/v1/completions", STREAM).readUntil("text");
            Eventually.holds("the lease is free", () -> gateway.router().activeLeases() == 0);
            Eventually.holds("the engine is released", () -> good.inFlight.get() == 0);
        }
    }

    @Test
    void aClientThatLeavesWithinALargeAnswerIsCountedAsLeft() throws Exception {
        final String filler = "x".repeat(4_000_000); // more than the system takes at once
        final String large = "{\"x\":\"" + filler + "\"," + ANSWER.substring(1);
        good.script = call -> call.json(200, large);
        start(Gateways.config(good.worker("good")));
        try (RawClient client = RawClient.withLittleRoom(gateway.port())) {
            client.post("/v1/completions", WHOLE).readUntil("200 OK");
            client.reset();
        }
        Eventually.holds(
                "it is counted", () -> MetricsPage.of(gateway).sum("kvasir_requests_total") == 1);
        assertEquals(
                1,
                MetricsPage.of(gateway).sum("kvasir_requests_total", "status", "499"),
                MetricsPage.of(gateway)::toString);
        final HttpResponse<String> whole = Gateways.post(gateway, "/v1/completions", WHOLE);
        assertEquals(large.length(), whole.body().length());
        Eventually.holds(
                "the other one is counted",
                () -> MetricsPage.of(gateway).sum("kvasir_requests_total", "status", "200") == 1);
    }

    @Test
    void aConnectionThatTheWorkerClosesBehindAnAnswerIsNoFault() throws Exception {
        good.script = call -> call.keepAlive(ANSWER); // and closes it, though it did not say so
        start(Gateways.config(good.worker("good")).set(GatewaySettings.RETRIES, 1));
        for (int i = 0; i < 200; i++) {
            assertEquals(200, Gateways.post(gateway, "/v1/completions", WHOLE).statusCode());
        }
        assertEquals(200, good.calls.size());
        assertTrue(gateway.router().workers().get(0).available());
    }

    @Test
    void aProbeThatMeetsAConnectionClosedBehindAnAnswerAsksAgain() throws Exception {
        final AtomicInteger cut = new AtomicInteger();
        good.health =
                call -> {
                    if (call.first) {
                        call.keepAlive("{}");
                    } else {
                        cut.getAndIncrement();
                        call.cut();
                    }
                };
        start(Gateways.config(good.worker("good")));
        Eventually.holds("stale connections", () -> cut.get() >= 5);
        assertTrue(healthOf(0).path("last_error").isNull(), healthOf(0).toString());
        assertEquals("up", healthOf(0).path("health").textValue());
    }

    @Test
    void aWorkerWhoseProbesAreCutIsOutAtTheThirdHoweverManyConnectionsItHadAnswered()
            throws Exception {
        final AtomicBoolean dies = new AtomicBoolean();
        final AtomicInteger cut = new AtomicInteger();
        good.health =
                call -> {
                    // one stale connection and three faults; the fourth fault never comes
                    if (dies.get() && cut.get() < 4) {
                        cut.getAndIncrement();
                        call.cut();
                    } else {
                        call.keepAlive("{}");
                    }
                };
        start(Gateways.config(good.worker("good")));
        Gateways.awaitContact(gateway);
        dies.set(true);
        Eventually.holds(
                "back on trial", () -> "trial".equals(healthOf(0).path("health").textValue()));
        assertEquals(4, cut.get());
    }

    @Test
    void probesGoThroughWhileAllBookingsAreOnOneWorker() throws Exception {
        final AtomicInteger probes = new AtomicInteger();
        final CountDownLatch released = new CountDownLatch(1);
        good.health =
                call -> {
                    probes.getAndIncrement();
                    call.json(200, "{}");
                };
        good.script =
                call -> {
                    probes.set(0);
                    released.await();
                    call.json(200, ANSWER);
                };
        start(Gateways.config(good.worker("good")).set(RouterSettings.MAX_ACTIVE_REQUESTS, 1));
        try (RawClient client = new RawClient(gateway.port())) {
            client.post("/v1/completions", WHOLE);
            Eventually.holds("the request is there", () -> good.inFlight.get() == 1);
            Eventually.holds("probes", () -> probes.get() >= 5);
            assertTrue(healthOf(0).path("last_error").isNull(), healthOf(0).toString());
            released.countDown();
            client.readUntil("choices");
        }
    }

    @Test
    void aRequestThatMeetsAProbesConnectionWhichTheWorkerHasClosedIsSentAgain() throws Exception {
        good.health = call -> call.keepAlive("{}");
        good.script =
                call -> {
                    if (call.first) {
                        call.json(200, ANSWER);
                    } else {
                        call.cut();
                    }
                };
        start(
                Gateways.config(good.worker("good"))
                        .set(GatewaySettings.RETRIES, 1)
                        .set(GatewaySettings.HEALTH_INTERVAL, Duration.ofMinutes(1)));
        Gateways.awaitContact(gateway);
        Eventually.holds(
                "the probe has read the metrics",
                () -> page("/debug/workers").at("/workers/0/engine_blocks").isInt());
        assertEquals(200, Gateways.post(gateway, "/v1/completions", WHOLE).statusCode());
        assertEquals(2, good.calls.size());
        assertTrue(healthOf(0).path("last_error").isNull());
    }

    private JsonNode healthOf(int worker) {
        return page("/health").path("workers").path(worker);
    }

    private JsonNode page(String path) {
        try {
            return Json.MAPPER.readTree(Gateways.admin(gateway, path).body());
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }

    @Test
    void aSecondGatewayOnThePortSaysWhichKnobToTurn() {
        start(Gateways.config(good.worker("good")));
        final GatewayException e =
                assertThrows(
                        GatewayException.class,
                        () ->
                                GatewayServer.start(
                                        Gateways.config(good.worker("good"))
                                                .set(GatewaySettings.PORT, gateway.port())
                                                .build()));
        assertTrue(
                e.getMessage().contains("cannot listen on 127.0.0.1:" + gateway.port()),
                e.getMessage());
        assertTrue(e.getMessage().contains("choose another --port"), e.getMessage());
    }

    @Test
    void closingWaitsForRunningRequestsAndRefusesNewOnes() throws Exception {
        good.script = FakeEngine.chatStream(5, 60);
        start(
                Gateways.config(good.worker("good"))
                        .set(GatewaySettings.DRAIN_TIMEOUT, Duration.ofMinutes(1)));
        try (RawClient client = new RawClient(gateway.port())) {
            client.post("/v1/completions", STREAM).readUntil("t0 ");
            final Thread closing = Thread.ofVirtual().start(gateway::close);
            assertTrue(client.readUntil("[DONE]").contains("t4 "));
            assertTrue(closing.join(Duration.ofMinutes(1)));
        }
        gateway.close();
    }

    @Test
    void closingCutsWhatIsLeftWhenTheTimeIsUp() throws Exception {
        final AtomicBoolean cut = new AtomicBoolean();
        good.script =
                call -> {
                    call.beginEvents();
                    call.chunk(FakeEngine.event("{\"index\":0,\"text\":\"a\"}"));
                    cut.set(call.awaitClientGone(60));
                };
        start(
                Gateways.config(good.worker("good"))
                        .set(GatewaySettings.DRAIN_TIMEOUT, Duration.ofMillis(100)));
        try (RawClient client = new RawClient(gateway.port())) {
            client.post("/v1/completions", STREAM).readUntil("\"a\"");
            gateway.close();
        }
        Eventually.holds("the engine is released", () -> good.inFlight.get() == 0);
        assertTrue(cut.get(), "the engine ended its stream itself");
    }
}
