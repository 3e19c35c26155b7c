package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.gateway.config.WorkerConfig;
import io.kvasir.gateway.openai.Json;
import io.kvasir.gateway.testing.FakeEngine;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.gateway.testing.MetricsPage;
import io.kvasir.router.Decision;
import io.kvasir.router.Lease;
import io.kvasir.router.Worker;
import io.kvasir.router.load.BusyState;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.testsupport.Cores;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.io.IOException;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;

/** Workers beyond a limit of load. */
class BusyWorkersTest {
    private static final String ANSWER = "{\"choices\":[],\"usage\":{\"prompt_tokens\":64}}";
    private static final String PROMPT = "{\"prompt\":[" + "7,".repeat(63) + "7]}";

    private final CountDownLatch goOn = new CountDownLatch(1);

    private void answer(FakeEngine.Call call) throws IOException, InterruptedException {
        goOn.await(10, TimeUnit.MINUTES);
        call.json(200, ANSWER);
    }

    @Test
    void whereAllAreBusyRequestsAreRefusedUntilOneIsNot() throws Exception {
        try (FakeEngine engine = new FakeEngine(this::answer);
                GatewayServer gateway =
                        GatewayServer.start(
                                Gateways.config(
                                                WorkerConfig.parse(
                                                        engine.url()
                                                                + ",name=w,max-batched-tokens=32"))
                                        .set(RouterSettings.BUSY_PREFILL_SHARE, 1.5)
                                        .build())) {
            Gateways.awaitContact(gateway);
            final Worker worker = gateway.router().workers().getFirst();
            assertEquals(32, worker.batchTokens());
            final CompletableFuture<HttpResponse<String>> first =
                    Gateways.postAsync(gateway, "/v1/completions", PROMPT);
            Eventually.holds("it waits", () -> worker.prefillTokens() == 64);
            final HttpResponse<String> refused = Gateways.post(gateway, "/v1/completions", PROMPT);
            assertEquals(503, refused.statusCode());
            assertTrue(refused.body().contains("all_workers_busy"), refused.body());
            assertFalse(refused.body().contains("threshold"), "limits are the operator's");
            assertTrue(
                    Gateways.admin(gateway, "/metrics")
                            .body()
                            .contains(
                                    "kvasir_routing_refused_total{cause=\"all_workers_busy\","
                                            + "model=\"m\",pool=\"main\"} 1"));
            goOn.countDown();
            assertEquals(200, first.get(1, TimeUnit.MINUTES).statusCode());
            Eventually.holds("it is idle", () -> worker.prefillTokens() == 0);
            assertEquals(200, Gateways.post(gateway, "/v1/completions", PROMPT).statusCode());
        }
    }

    /** Books a prompt in the gateway's own router. */
    private static Lease book(GatewayServer gateway, int tokens) throws Exception {
        final int[] prompt = new int[tokens];
        prompt[0] = tokens; // like no other one
        return gateway.router()
                .reserve(gateway.router().newRequest().tokens(prompt, tokens), new Decision());
    }

    @Test
    void whereNoFirstTokenIsExpectedInTimeTheRefusalSaysLimitValueAndWhen() throws Exception {
        goOn.countDown();
        try (FakeEngine engine = new FakeEngine(this::answer);
                GatewayServer gateway =
                        GatewayServer.start(
                                Gateways.config(WorkerConfig.parse(engine.url() + ",name=w"))
                                        .set(RouterSettings.BUSY_TTFT, Duration.ofMillis(20))
                                        .build())) {
            Gateways.awaitContact(gateway);
            final Worker worker = gateway.router().workers().getFirst();
            final Lease learned = book(gateway, 64);
            final long beganNs = System.nanoTime();
            while (System.nanoTime() - beganNs < 64_000_000) {
                Cores.giveWay(); // a millisecond a token, or more
            }
            learned.prefillComplete();
            learned.close();
            Eventually.holds("it is computed", () -> worker.prefillTokens() == 0);
            final Lease before = book(gateway, 640);
            Eventually.holds("it is booked", () -> worker.prefillTokens() == 640);
            final HttpResponse<String> refused = Gateways.post(gateway, "/v1/completions", PROMPT);
            assertEquals(503, refused.statusCode(), refused.body());
            final JsonNode error = Json.MAPPER.readTree(refused.body()).path("error");
            assertEquals("all_workers_busy", error.at("/kvasir/kind").asText());
            assertEquals("busy-ttft-ms", error.at("/kvasir/limit").asText());
            assertEquals(20, error.at("/kvasir/limit_value").asLong());
            assertTrue(error.at("/kvasir/observed").asLong() >= 320, refused.body());
            assertTrue(Integer.parseInt(header(refused, "retry-after")) >= 1);
            assertEquals(
                    header(refused, "retry-after"),
                    error.at("/kvasir/retry_after_seconds").asText());
            assertFalse(refused.body().contains("\"w\""), "workers are the operator's");
            final HttpResponse<String> changed =
                    Gateways.send(
                            Gateways.adminRequest(gateway, "/settings")
                                    .method(
                                            "PATCH",
                                            HttpRequest.BodyPublishers.ofString(
                                                    "{\"settings\":{\"busy-ttft-ms\":0}}")));
            assertEquals(200, changed.statusCode(), changed.body());
            assertEquals(200, Gateways.post(gateway, "/v1/completions", PROMPT).statusCode());
            before.close();
        }
    }

    private static String header(HttpResponse<String> answer, String name) {
        return answer.headers().firstValue(name).orElse("none");
    }

    @Test
    void aWorkerThatRefusesForItsLoadIsLeftOutThenTriedWithOneRequest() throws Exception {
        final AtomicBoolean isFull = new AtomicBoolean(true);
        try (FakeEngine first =
                        new FakeEngine(call -> call.json(isFull.get() ? 429 : 200, ANSWER));
                FakeEngine second = new FakeEngine(call -> call.json(200, ANSWER));
                GatewayServer gateway =
                        GatewayServer.start(
                                Gateways.config(
                                                WorkerConfig.parse(first.url() + ",name=first"),
                                                WorkerConfig.parse(second.url() + ",name=second"))
                                        .set(RouterSettings.BUSY_LEASE, Duration.ofMillis(200))
                                        .build())) {
            Gateways.awaitContact(gateway);
            final Worker worker = gateway.router().workers().getFirst();
            for (int i = 0; i < 200 && first.calls.isEmpty(); i++) {
                assertEquals(200, Gateways.post(gateway, "/v1/completions", PROMPT).statusCode());
            }
            assertEquals("status 429", worker.whyFullOrNull());
            // many leases, each of which lets one request in
            Eventually.holds(
                    "it is tried again and again",
                    () -> {
                        assertEquals(200, post(gateway).statusCode());
                        return first.calls.size() >= 4;
                    });
            assertEquals("up", state(gateway), "a refusal for load is no fault");
            isFull.set(false);
            Eventually.holds(
                    "its answer ends it",
                    () -> {
                        assertEquals(200, post(gateway).statusCode());
                        return worker.busyState() == BusyState.OPEN;
                    });
        }
    }

    private static HttpResponse<String> post(GatewayServer gateway) {
        try {
            return Gateways.post(gateway, "/v1/completions", PROMPT);
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }

    private static String state(GatewayServer gateway) throws Exception {
        return GatewayHttpTest.json(Gateways.get(gateway, "/debug/workers"))
                .at("/workers/0/health")
                .textValue();
    }

    @ParameterizedTest
    @CsvSource({"59, 59", "1000000000000, 60", "soon, 20"})
    void aWorkerThatSaysWhenToTryAgainIsLeftOutForAsLong(String said, int mostSeconds)
            throws Exception {
        final int leaseSeconds = 20;
        try (FakeEngine engine =
                        new FakeEngine(
                                call ->
                                        call.raw(
                                                "HTTP/1.1 429 Too Many Requests\r\nRetry-After: "
                                                        + said
                                                        + "\r\nContent-Length: 2\r\n\r\n{}"));
                GatewayServer gateway =
                        GatewayServer.start(
                                Gateways.config(WorkerConfig.parse(engine.url() + ",name=w"))
                                        .set(
                                                RouterSettings.BUSY_LEASE,
                                                Duration.ofSeconds(leaseSeconds))
                                        .build())) {
            Gateways.awaitContact(gateway);
            final Worker worker = gateway.router().workers().getFirst();
            assertEquals(429, Gateways.post(gateway, "/v1/completions", PROMPT).statusCode());
            assertEquals("status 429", worker.whyFullOrNull());
            final int seconds =
                    Integer.parseInt(
                            header(
                                    Gateways.post(gateway, "/v1/completions", PROMPT),
                                    "retry-after"));
            assertTrue(seconds >= 1 && seconds <= mostSeconds, "seconds=" + seconds);
            assertTrue(
                    mostSeconds == leaseSeconds || seconds > leaseSeconds,
                    "longer than the lease: " + seconds);
        }
    }

    @Test
    void whereAllAreFullTheClientIsSaidWhenToTryAgain() throws Exception {
        try (FakeEngine engine = new FakeEngine(call -> call.json(503, ANSWER));
                GatewayServer gateway =
                        GatewayServer.start(
                                Gateways.config(WorkerConfig.parse(engine.url() + ",name=w"))
                                        .set(RouterSettings.BUSY_LEASE, Duration.ofSeconds(90))
                                        .build())) {
            Gateways.awaitContact(gateway);
            assertEquals(503, Gateways.post(gateway, "/v1/completions", PROMPT).statusCode());
            for (int i = 0; i < 10; i++) {
                final HttpResponse<String> refused =
                        Gateways.post(gateway, "/v1/completions", PROMPT);
                assertEquals(503, refused.statusCode());
                assertTrue(refused.body().contains("all_workers_busy"), refused.body());
                final int seconds = Integer.parseInt(header(refused, "retry-after"));
                assertTrue(seconds > 1 && seconds <= 90, "seconds=" + seconds);
            }
            assertEquals(1, engine.calls.size(), "it is left alone");
            assertEquals("up", state(gateway), "a refusal for load is no fault");
            assertEquals(1, MetricsPage.of(gateway).sum("kvasir_worker_busy", "state", "full"));
        }
    }
}
