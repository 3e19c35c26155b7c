package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.WorkerConfig;
import io.kvasir.gateway.testing.FakeEngine;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicInteger;

/** Requests that are under way on a worker when it is found dead, or looks like it. */
@Order(0) // takes longest: begins before all others
class DeadWorkerTest {
    private static final String ANSWER = "{\"choices\":[],\"usage\":{\"prompt_tokens\":1}}";
    private static final String WHOLE = "{\"prompt\":[1]}";
    private static final String STREAM = "{\"prompt\":[1],\"stream\":true}";
    private static final String TOKEN = FakeEngine.event("{\"index\":0,\"text\":\"a\"}");

    private final FakeEngine dying = new FakeEngine(call -> call.awaitClientGone(60));
    private final FakeEngine other = new FakeEngine(call -> call.json(200, ANSWER));
    private final AtomicInteger failedProbes = new AtomicInteger();
    private GatewayServer gateway;

    private void start(WorkerConfig... workers) throws InterruptedException {
        gateway =
                GatewayServer.start(
                        Gateways.config(workers)
                                .set(
                                        GatewaySettings.HEALTH_TIMEOUT,
                                        Duration.ofSeconds(1)) // of both workers
                                .build());
        Gateways.awaitContact(gateway);
    }

    /** Connections are taken, and nothing is ever answered. */
    private void fallSilent() {
        dying.health =
                call -> {
                    failedProbes.incrementAndGet();
                    call.awaitClientGone(60);
                };
    }

    /** As an engine does that ends: it takes no new requests, and finishes what it has. */
    private void unhealthy(FakeEngine.Call call) throws IOException {
        failedProbes.incrementAndGet();
        call.json(503, "{}");
    }

    @AfterEach
    void stop() {
        gateway.close();
        dying.close();
        other.close();
    }

    @Test
    void aRequestMovesWhereAnotherWorkerCanTakeIt() throws Exception {
        start(dying.worker("dying"), other.worker("other"));
        dying.script =
                call -> {
                    fallSilent();
                    call.awaitClientGone(60);
                };
        for (String body : new String[] {WHOLE, WHOLE}) { // round robin: one meets the dying one
            final HttpResponse<String> answer =
                    Gateways.post(gateway, "/v1/completions", body, "x-kvasir-mode", "round-robin");
            assertEquals(200, answer.statusCode(), answer.body());
        }
        assertEquals(1, dying.calls.size());
        Eventually.holds("the dead one is released", () -> dying.inFlight.get() == 0);
        Eventually.holds("no booking is left", () -> gateway.router().activeLeases() == 0);
    }

    @Test
    void aRequestThatCannotMoveEnds() throws Exception {
        start(dying.worker("dying"));
        dying.script =
                call -> {
                    fallSilent();
                    call.awaitClientGone(60);
                };
        GatewayHttpTest.assertError(
                Gateways.post(gateway, "/v1/completions", WHOLE),
                504,
                "upstream_dead",
                "does not answer any more");
        assertEquals(0, gateway.router().activeLeases());
    }

    @Test
    void aStreamThatHasBegunEndsWithAnErrorEvent() throws Exception {
        start(dying.worker("dying"), other.worker("other"));
        dying.script =
                call -> {
                    call.beginEvents();
                    call.chunk(TOKEN);
                    fallSilent();
                    call.awaitClientGone(60);
                };
        final String events =
                Gateways.post(gateway, "/v1/completions", STREAM, "x-kvasir-worker", "dying")
                        .body();
        assertTrue(events.contains("\"text\":\"a\"") && events.contains("upstream_dead"), events);
    }

    @Test
    void aWorkerThatStreamsIsNotDeadHoweverSilentItIsToProbes() throws Exception {
        start(dying.worker("dying"));
        finishesAStreamAfter(this::fallSilent);
    }

    @Test
    void aWorkerThatIsUnhealthyByItsOwnWordFinishesItsStreams() throws Exception {
        start(dying.worker("dying"));
        finishesAStreamAfter(() -> dying.health = this::unhealthy);
    }

    @Test
    void aWorkerThatIsUnhealthyByItsOwnWordIsNotDeadHoweverLongItsAnswerTakes() throws Exception {
        start(dying.worker("dying"));
        dying.script =
                call -> {
                    dying.health = this::unhealthy;
                    Eventually.holds("probed", () -> failedProbes.get() >= 6);
                    call.json(200, ANSWER);
                };
        assertEquals(200, Gateways.post(gateway, "/v1/completions", WHOLE).statusCode());
        assertFalse(gateway.router().workers().get(0).available(), "used for further requests");
    }

    private void finishesAStreamAfter(Runnable change) throws Exception {
        dying.script =
                call -> {
                    change.run();
                    call.beginEvents();
                    while (failedProbes.get() < 6) { // half of them find a silent worker dead
                        call.chunk(TOKEN);
                        Thread.sleep(20);
                    }
                    call.chunk("data: [DONE]\n\n");
                    call.endChunks();
                };
        final String events = Gateways.post(gateway, "/v1/completions", STREAM).body();
        assertTrue(events.endsWith("[DONE]\n\n"), events);
    }

    @Test
    void aWorkerThatEndsInPeaceFinishesWhatItHas() throws Exception {
        start(dying.worker("dying"));
        dying.script =
                call -> {
                    dying.stopListening();
                    Eventually.holds(
                            "out of use", () -> !gateway.router().workers().get(0).available());
                    call.json(200, ANSWER);
                };
        assertEquals(200, Gateways.post(gateway, "/v1/completions", WHOLE).statusCode());
    }
}
