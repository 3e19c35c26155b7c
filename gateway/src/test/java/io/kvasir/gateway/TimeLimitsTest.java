package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.testing.FakeEngine;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.gateway.testing.RawClient;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;

@Order(0) // takes longest: begins before all others
class TimeLimitsTest {
    private static final Duration SHORT = Duration.ofMillis(200);

    /** A limit that a worker keeps that answers at once, on a machine that is busy as well. */
    private static final Duration KEPT = Duration.ofSeconds(2);

    private static final String ANSWER = "{\"choices\":[],\"usage\":{\"prompt_tokens\":1}}";
    private static final String WHOLE = "{\"prompt\":[1]}";
    private static final String STREAM = "{\"prompt\":[1],\"stream\":true}";
    private static final String TOKEN = FakeEngine.event("{\"index\":0,\"text\":\"a\"}");

    private final FakeEngine slow = new FakeEngine(call -> call.awaitClientGone(60));
    private final FakeEngine other = new FakeEngine(call -> call.json(200, ANSWER));
    private GatewayServer gateway;

    private void start(GatewayConfig.Builder config) throws InterruptedException {
        gateway = Gateways.started(config);
    }

    private GatewayConfig.Builder both() {
        return Gateways.config(slow.worker("slow"), other.worker("other"));
    }

    private HttpResponse<String> ask(String body) throws Exception {
        return Gateways.post(gateway, "/v1/completions", body, "x-kvasir-worker", "slow");
    }

    @AfterEach
    void stop() {
        gateway.close();
        slow.close();
        other.close();
    }

    @Test
    void anAnswerThatIsNotStreamedMayBeSilentForLongerThanAStream() throws Exception {
        slow.script =
                call -> {
                    Thread.sleep(1_000);
                    call.json(200, ANSWER);
                };
        start(
                both().set(GatewaySettings.FIRST_BYTE_TIMEOUT, SHORT)
                        .set(GatewaySettings.STREAM_IDLE_TIMEOUT, SHORT));
        final HttpResponse<String> answer = ask(WHOLE);
        assertEquals(200, answer.statusCode(), answer.body());
        assertEquals(1, slow.calls.size());
    }

    @Test
    void anAnswerThatIsNotStreamedHasALimitOfItsOwn() throws Exception {
        start(both().set(GatewaySettings.ANSWER_TIMEOUT, SHORT));
        GatewayHttpTest.assertError(ask(WHOLE), 504, "upstream_timeout", "silent for too long");
        Eventually.holds("the engine is released", () -> slow.inFlight.get() == 0);
    }

    @Test
    void theLimitOfAnAnswerHoldsWhileItTrickles() throws Exception {
        slow.script =
                call -> {
                    call.raw("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n");
                    while (!call.awaitClientGone(0)) {
                        call.raw(" ");
                        Thread.sleep(20);
                    }
                };
        start(both().set(GatewaySettings.ANSWER_TIMEOUT, SHORT));
        assertEquals(504, ask(WHOLE).statusCode());
    }

    @Test
    void aRequestThatWasSentIsNotRepeatedAfterATimeoutAndNoWorkerIsBlamed() throws Exception {
        start(
                Gateways.config(slow.worker("slow"), other.worker("other"))
                        .set(GatewaySettings.FIRST_BYTE_TIMEOUT, SHORT)
                        .set(GatewaySettings.ANSWER_TIMEOUT, SHORT)
                        .set(GatewaySettings.BREAKER_FAULTS, 1)
                        .set(GatewaySettings.PANIC_PERCENT, 0));
        other.script = slow.script;
        for (String body : new String[] {STREAM, WHOLE, STREAM, WHOLE}) {
            final HttpResponse<String> answer = Gateways.post(gateway, "/v1/completions", body);
            assertEquals(504, answer.statusCode(), answer.body());
        }
        assertEquals(4, slow.calls.size() + other.calls.size());
        assertTrue(gateway.router().workers().get(0).available());
        assertTrue(gateway.router().workers().get(1).available());
    }

    @Test
    void unlessThatIsAskedFor() throws Exception {
        start(
                both().set(GatewaySettings.ANSWER_TIMEOUT, KEPT) // by the other worker
                        .set(GatewaySettings.RETRY_AFTER_TIMEOUT, true));
        for (int i = 0; i < 2; i++) { // one of them begins at the slow one
            assertEquals(
                    200,
                    Gateways.post(gateway, "/v1/completions", WHOLE, "x-kvasir-mode", "round-robin")
                            .statusCode());
        }
        assertFalse(slow.calls.isEmpty());
    }

    @Test
    void aStreamMustBeginInTimeEvenIfItsHeadHasCome() throws Exception {
        slow.script =
                call -> {
                    call.beginEvents();
                    call.awaitClientGone(60);
                };
        start(both().set(GatewaySettings.FIRST_BYTE_TIMEOUT, SHORT));
        GatewayHttpTest.assertError(ask(STREAM), 504, "upstream_timeout", "silent for too long");
    }

    @Test
    void aStreamThatHasBegunMayNotFallSilent() throws Exception {
        slow.script =
                call -> {
                    call.beginEvents();
                    call.chunk(TOKEN);
                    call.awaitClientGone(60);
                };
        start(both().set(GatewaySettings.STREAM_IDLE_TIMEOUT, SHORT));
        final String events = ask(STREAM).body();
        assertTrue(events.contains("silent for too long"), events);
    }

    @Test
    void aStreamMayTakeLongerThanAnyLimitWhileItGoesOn() throws Exception {
        slow.script = FakeEngine.chatStream(30, KEPT.toMillis() / 20);
        start(
                both().set(GatewaySettings.FIRST_BYTE_TIMEOUT, KEPT)
                        .set(GatewaySettings.STREAM_IDLE_TIMEOUT, KEPT)
                        .set(GatewaySettings.ANSWER_TIMEOUT, SHORT));
        final String events = ask(STREAM).body();
        assertTrue(events.endsWith("[DONE]\n\n"), events);
    }

    /**
     * Of small events with pauses the gateway waits for the next one while it writes: the limit
     * runs when the client stops reading.
     */
    @ParameterizedTest
    @CsvSource({"60000, 400, 0", "8000, 3000, 1"})
    void theTimeThatTheClientTakesToReadIsNotTheWorkers(int bytes, int events, int pauseMs)
            throws Exception {
        final CountDownLatch sent = new CountDownLatch(1);
        slow.script =
                call -> {
                    call.beginEvents();
                    final String big =
                            FakeEngine.event(
                                    "{\"index\":0,\"text\":\"" + "x".repeat(bytes) + "\"}");
                    for (int i = 0; i < events; i++) {
                        call.chunk(big);
                        Thread.sleep(pauseMs);
                    }
                    call.chunk("data: [DONE]\n\n");
                    call.endChunks();
                    sent.countDown();
                };
        start(both().set(GatewaySettings.STREAM_IDLE_TIMEOUT, KEPT));
        try (RawClient client = new RawClient(gateway.port())) {
            client.post("/v1/completions", STREAM, "x-kvasir-worker: slow").readUntil("text");
            Thread.sleep(KEPT.toMillis() * 3 / 2); // longer than the limit
            assertEquals(1, sent.getCount(), "the client's slowness holds the engine back");
            assertTrue(client.drainUntil("[DONE]"), "the stream was cut");
        }
    }
}
