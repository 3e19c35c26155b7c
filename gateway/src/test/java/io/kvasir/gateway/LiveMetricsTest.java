package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.gateway.config.DiscoveredWorker;
import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.testing.FakeEngine;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.gateway.testing.MetricsPage;
import io.kvasir.gateway.testing.RawClient;
import io.kvasir.gateway.upstream.AdminDiscovery;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

import java.util.List;
import java.util.Set;
import java.util.concurrent.CountDownLatch;

/** What {@code /metrics} shows of requests under way and of the tokens that workers generate. */
class LiveMetricsTest {
    private static final String TTFT = "kvasir_time_to_first_token_seconds_count";
    private static final String PER_TOKEN = "kvasir_time_per_output_token_seconds_count";
    private static final String OUTPUT = "kvasir_output_tokens_total";
    private static final String CHAT =
            "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],\"stream\":true}";

    private final FakeEngine engine = new FakeEngine(FakeEngine.chatStream(5, 1));
    private GatewayServer gateway = start(Gateways.config(engine.worker("w1")));

    private static GatewayServer start(GatewayConfig.Builder config) {
        return GatewayServer.start(config.build());
    }

    @AfterEach
    void stop() {
        gateway.close();
        engine.close();
    }

    private MetricsPage page() {
        return MetricsPage.of(gateway);
    }

    @Test
    void tokensOfStreamsAreTimedByWorkerAndRoute() throws Exception {
        assertEquals(200, Gateways.post(gateway, "/v1/chat/completions", CHAT).statusCode());
        final MetricsPage page = page();
        assertEquals(1, page.sum(TTFT, "worker", "w1", "route", "chat"), "" + page.series(TTFT));
        assertEquals(1, page.sum(PER_TOKEN, "worker", "w1", "route", "chat"));
        assertEquals(5, page.sum(OUTPUT, "worker", "w1"));
        final double sum = page.sum("kvasir_time_per_output_token_seconds_sum", "worker", "w1");
        assertTrue(sum > 0 && sum < 5, "seconds a token: " + sum);
    }

    @Test
    void whatComesBetweenTokensIsTimedAndShownUnderAllNames() throws Exception {
        final CountDownLatch first = new CountDownLatch(1);
        final CountDownLatch second = new CountDownLatch(1);
        engine.script =
                call -> {
                    call.beginEvents();
                    call.chunk(FakeEngine.event("{\"index\":0,\"text\":\"t0\"}"));
                    first.await();
                    call.chunk(FakeEngine.event("{\"index\":0,\"text\":\"t1\"}"));
                    second.await();
                    call.chunk(FakeEngine.event("{\"index\":0,\"text\":\"t2\"}"));
                    call.chunk(FakeEngine.event("{\"index\":0,\"text\":\"t3\"}"));
                    call.chunk(FakeEngine.usageEvent(3, 4, 2));
                    call.chunk("data: [DONE]\n\n");
                    call.endChunks();
                };
        try (RawClient client = new RawClient(gateway.port())) {
            client.post("/v1/completions", "{\"model\":\"m\",\"prompt\":[1,2,3],\"stream\":true}");
            client.readUntil("t0");
            assertEquals(1, page().sum("dynamo_frontend_inflight_requests", "model", "m"));
            first.countDown();
            client.readUntil("t1");
            second.countDown();
            client.readUntil("[DONE]");
        }
        Eventually.holds( // which it is when all of it is counted, after its last bytes
                "over", () -> page().sum("dynamo_frontend_inflight_requests", "model", "m") == 0);
        final MetricsPage page = page();
        for (String name :
                List.of(
                        "kvasir_inter_token_seconds",
                        "dynamo_frontend_inter_token_latency_seconds",
                        "dynamo_component_router_inter_token_latency_seconds")) {
            assertEquals(3, page.sum(name + "_count", "model", "m"), name);
        }
        for (String name :
                List.of(
                        "dynamo_frontend_time_to_first_token_seconds",
                        "dynamo_component_router_time_to_first_token_seconds",
                        "dynamo_frontend_input_sequence_tokens",
                        "dynamo_component_router_output_sequence_tokens",
                        "kvasir_input_sequence_tokens",
                        "kvasir_output_sequence_tokens",
                        "dynamo_frontend_cached_tokens")) {
            assertEquals(1, page.sum(name + "_count", "model", "m"), name);
        }
        assertEquals(3, page.sum("kvasir_input_sequence_tokens_sum"));
        assertEquals(4, page.sum("kvasir_output_sequence_tokens_sum"));
        assertEquals(2, page.sum("kvasir_cached_tokens_sum"));
        assertEquals(2, page.sum("dynamo_component_router_kv_worker_reused_tokens_total"));
        assertEquals(4, page.sum("dynamo_frontend_output_tokens_total", "model", "m"));
        assertEquals(
                1,
                page.sum(
                        "dynamo_frontend_requests_total",
                        "endpoint",
                        "completions",
                        "request_type",
                        "stream",
                        "status",
                        "success"));
        assertEquals(1, page.sum("dynamo_component_router_requests_started_total", "model", "m"));
        assertEquals(1, page.sum("dynamo_component_router_requests_total", "model", "m"));
        assertEquals(1, page.sum("dynamo_component_router_worker_registered"));
        assertEquals(
                3,
                page.sum("dynamo_frontend_worker_last_input_sequence_tokens", "worker_id", "w1"));
        assertTrue(
                page.sum("dynamo_frontend_worker_last_inter_token_latency_seconds") > 0,
                "a time between tokens");
    }

    @Test
    void requestsThatNoWorkerTakesAreOverToo() throws Exception {
        engine.close();
        assertTrue(
                Gateways.post(gateway, "/v1/completions", "{\"model\":\"m\",\"prompt\":[1]}")
                                .statusCode()
                        >= 500);
        assertEquals(1, page().sum("dynamo_frontend_requests_total", "status", "error"));
        Eventually.holds("over", () -> page().sum("dynamo_frontend_inflight_requests") == 0);
    }

    @Test
    void anAnswerThatIsNoStreamHasTokensAndNoTimes() throws Exception {
        engine.script =
                call -> call.json(200, "{\"choices\":[],\"usage\":{\"completion_tokens\":7}}");
        Gateways.post(gateway, "/v1/completions", "{\"prompt\":[1]}");
        assertEquals(7, page().sum(OUTPUT, "worker", "w1"));
        assertEquals(0, page().sum(TTFT));
        assertEquals(0, page().sum(PER_TOKEN));
    }

    @Test
    void aStreamOfOneTokenOrOfSeveralAnswersHasNoTimePerToken() throws Exception {
        engine.script = FakeEngine.chatStream(1, 0);
        Gateways.post(gateway, "/v1/chat/completions", CHAT);
        engine.script = FakeEngine.chatStream(6, 0);
        Gateways.post(
                gateway,
                "/v1/chat/completions",
                "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],\"stream\":true,\"n\":2}");
        assertEquals(2, page().sum(TTFT));
        assertEquals(0, page().sum(PER_TOKEN));
        assertEquals(7, page().sum(OUTPUT));
    }

    @Test
    void tokensOfAStreamThatIsCutCountAsFarAsTheyCame() throws Exception {
        engine.script =
                call -> {
                    call.beginEvents();
                    for (int i = 0; i < 3; i++) {
                        call.chunk(FakeEngine.event("{\"index\":0,\"text\":\"a\"}"));
                    }
                    call.cut();
                };
        Gateways.post(gateway, "/v1/completions", "{\"prompt\":[1],\"stream\":true}");
        assertEquals(3, page().sum(OUTPUT, "worker", "w1"));
    }

    @Test
    void seriesOfARemovedWorkerVanish() throws Exception {
        gateway.close();
        gateway = start(Gateways.config().set(GatewaySettings.LAME_DUCK, java.time.Duration.ZERO));
        final AdminDiscovery admin = gateway.admin();
        admin.add(DiscoveredWorker.of("m", engine.worker("one")));
        Eventually.holds(
                "answered",
                () -> {
                    try {
                        return Gateways.post(gateway, "/v1/chat/completions", CHAT).statusCode()
                                == 200;
                    } catch (Exception e) {
                        throw new IllegalStateException(e);
                    }
                });
        for (String name : List.of(TTFT, PER_TOKEN, OUTPUT)) {
            assertEquals(Set.of("one"), page().values(name, "worker"));
        }
        admin.remove("one");
        for (String name : List.of(TTFT, PER_TOKEN, OUTPUT)) {
            Eventually.holds(name, () -> page().values(name, "worker").isEmpty());
        }
        assertEquals(
                Set.of(),
                page().values(
                                "dynamo_frontend_worker_last_time_to_first_token_seconds",
                                "worker_id"));
    }

    @Test
    void requestsUnderWayAreSeen() throws Exception {
        final CountDownLatch answered = new CountDownLatch(1);
        engine.script =
                call -> {
                    answered.await();
                    FakeEngine.chatStream(1, 0).answer(call);
                };
        try (RawClient stream = new RawClient(gateway.port());
                RawClient whole = new RawClient(gateway.port())) {
            stream.post("/v1/chat/completions", CHAT);
            whole.post("/v1/completions", "{\"prompt\":[1]}");
            Eventually.holds("sent", () -> engine.inFlight.get() == 2);
            Eventually.holds("prepared", () -> page().sum("kvasir_requests_preparing") == 0);
            final MetricsPage page = page();
            assertEquals(2, page.sum("kvasir_requests_in_flight"));
            assertEquals(1, page.sum("kvasir_streams_in_flight"));
            assertTrue(page.sum("kvasir_body_bytes_in_flight") > 0);
            assertEquals(0, page.sum("kvasir_requests_preparing"));
            assertEquals(0, page.sum("kvasir_prompts_waiting"));
            assertTrue(page.sum("kvasir_open_connections") >= 2);
            answered.countDown();
            stream.readUntil("[DONE]");
            whole.readUntil("[DONE]");
        }
        for (String name :
                List.of(
                        "kvasir_requests_in_flight",
                        "kvasir_streams_in_flight",
                        "kvasir_body_bytes_in_flight")) {
            Eventually.holds(name + " is 0", () -> page().sum(name) == 0);
        }
    }
}
