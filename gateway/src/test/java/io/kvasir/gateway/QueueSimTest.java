package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.WorkerConfig;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.gateway.testing.MetricsPage;
import io.kvasir.gateway.testing.SimFleet;
import io.kvasir.gateway.testing.SimRelease;
import io.kvasir.router.Worker;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.router.settings.SingleFlight;
import io.kvasir.sim.SimEngine;
import io.kvasir.sim.config.SimConfig;
import io.kvasir.sim.config.SimHandoff;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.net.URI;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

/** Queues in front of simulated engines, which compute prompts and count what they compute. */
class QueueSimTest {
    private static final int PREFIX = 2_048;
    private static final int REQUESTS = 8;

    private final List<SimEngine> engines = new ArrayList<>();
    private final int[] prefix = new Random(1337).ints(PREFIX, 32, 127).toArray();

    private GatewayConfig.Builder config(int count) {
        final List<WorkerConfig> workers = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            final SimEngine engine =
                    SimEngine.start(
                            SimConfig.builder()
                                    .model("m")
                                    .blocks(2_048)
                                    .prefillTokensPerSecond(10_000) // a prefix: 200 ms
                                    .interTokenMillis(2)
                                    .build());
            engines.add(engine);
            workers.add(
                    WorkerConfig.parse(
                            engine.url()
                                    + ",name=w"
                                    + i
                                    + ",events="
                                    + engine.eventsEndpoint(0)
                                    + ",replay="
                                    + engine.replayEndpoint(0)));
        }
        return Gateways.config(workers.toArray(WorkerConfig[]::new));
    }

    private CompletableFuture<HttpResponse<String>> ask(
            GatewayServer gateway, int tail, boolean stream) {
        final int[] prompt = Arrays.copyOf(prefix, PREFIX + 20);
        Arrays.fill(prompt, PREFIX, prompt.length, 32 + tail);
        return Gateways.postAsync(
                gateway,
                "/v1/completions",
                "{\"model\":\"m\",\"max_tokens\":8,\"stream\":"
                        + stream
                        + ",\"prompt\":"
                        + Arrays.toString(prompt)
                        + "}");
    }

    /** Tokens of prompts that all engines have computed. */
    private double computed() throws Exception {
        double tokens = 0;
        for (SimEngine engine : engines) {
            tokens += counter(engine, "prefix_cache_queries");
            tokens -= counter(engine, "prefix_cache_hits");
        }
        return tokens;
    }

    private static double counter(SimEngine engine, String name) throws Exception {
        return Gateways.send(HttpRequest.newBuilder(URI.create(engine.url() + "/metrics")))
                .body()
                .lines()
                .filter(line -> line.startsWith("vllm:" + name + "_total"))
                .mapToDouble(line -> Double.parseDouble(line.substring(line.lastIndexOf(' '))))
                .sum();
    }

    @ParameterizedTest
    @CsvSource({"WAIT, true", "WAIT, false", "DRAW, true", "OFF, true"})
    void ofRequestsThatArriveTogetherTheCommonPrefixIsComputedOnce(
            SingleFlight mode, boolean stream) throws Exception {
        try (GatewayServer gateway =
                Gateways.started(
                        config(3)
                                .set(RouterSettings.SINGLE_FLIGHT, mode)
                                .set(RouterSettings.SINGLE_FLIGHT_TOKENS, 1_024)
                                .set(RouterSettings.SINGLE_FLIGHT_WAIT, Duration.ofMinutes(1)))) {
            Eventually.holds(
                    "the events of all are followed",
                    () -> gateway.router().workers().stream().allMatch(Worker::ready));
            final List<CompletableFuture<HttpResponse<String>>> asked = new ArrayList<>();
            for (int i = 0; i < REQUESTS; i++) {
                asked.add(ask(gateway, i, stream));
            }
            for (CompletableFuture<HttpResponse<String>> each : asked) {
                assertEquals(200, each.get(1, TimeUnit.MINUTES).statusCode());
            }
            final double computed = computed();
            final long served =
                    engines.stream().filter(engine -> engine.state(0).admitted() > 0).count();
            final MetricsPage page = MetricsPage.of(gateway);
            switch (mode) {
                case WAIT -> {
                    assertTrue(
                            computed < PREFIX + REQUESTS * 64,
                            computed + " tokens of " + PREFIX + " in common");
                    assertEquals(1, page.sum("kvasir_single_flight_total", "event", "led"));
                    assertEquals(
                            REQUESTS - 1,
                            page.sum("kvasir_single_flight_total", "event", "followed"));
                }
                case DRAW -> assertEquals(1, served, "engines that had any of them");
                case OFF -> assertTrue(computed >= 2 * PREFIX, computed + " tokens");
            }
        } finally {
            engines.forEach(SimEngine::close);
        }
    }

    /** The engine has one prompt at a time, so that they are computed in the order of the queue. */
    @Test
    void anEngineHasNoMoreWorkThanItsThresholdAllows() throws Exception {
        try (GatewayServer gateway =
                Gateways.started(config(2).set(RouterSettings.QUEUE_PREFILL_TOKENS, 0L))) {
            final List<CompletableFuture<HttpResponse<String>>> asked = new ArrayList<>();
            for (int i = 0; i < 3 * REQUESTS; i++) {
                asked.add(ask(gateway, i, true));
            }
            for (CompletableFuture<HttpResponse<String>> each : asked) {
                for (Worker worker : gateway.router().workers()) {
                    assertTrue(worker.prefillTokens() <= PREFIX + 20, "two prompts at once");
                }
                assertEquals(200, each.get(1, TimeUnit.MINUTES).statusCode());
            }
            assertEquals(0, gateway.queueOrNull().status().requests());
            assertTrue(gateway.queueOrNull().status().waited() > 0);
            Eventually.holds("no load is left", () -> gateway.router().activeLeases() == 0);
        } finally {
            engines.forEach(SimEngine::close);
        }
    }

    @Test
    void splitRequestsWaitForAPrefillWorker() throws Exception {
        try (SimFleet fleet = new SimFleet(SimHandoff.VLLM);
                GatewayServer gateway =
                        GatewayServer.startWith(
                                Gateways.config(
                                                fleet.workers(SimHandoff.VLLM)
                                                        .toArray(WorkerConfig[]::new))
                                        .set(RouterSettings.QUEUE_PREFILL_TOKENS, 0L)
                                        .build(),
                                new SimRelease(fleet.prefills, true))) {
            Gateways.awaitContact(gateway);
            final List<CompletableFuture<HttpResponse<String>>> asked = new ArrayList<>();
            for (int i = 0; i < 12; i++) {
                asked.add(
                        Gateways.postAsync(
                                gateway,
                                "/v1/completions",
                                "{\"model\":\"m\",\"max_tokens\":4,\"prompt\":"
                                        + Arrays.toString(
                                                new Random(i).ints(2_000, 32, 127).toArray())
                                        + "}"));
            }
            for (CompletableFuture<HttpResponse<String>> each : asked) {
                final HttpResponse<String> answer = each.get(1, TimeUnit.MINUTES);
                assertEquals(200, answer.statusCode(), answer.body());
            }
            final MetricsPage page = MetricsPage.of(gateway);
            assertEquals(12, page.sum("kvasir_split_requests_total"));
            assertEquals(12, page.sum("kvasir_queue_wait_seconds_count", "pool", "prefill"));
            assertTrue(
                    page.sum("kvasir_queue_admitted_total", "pool", "prefill", "waited", "yes")
                            > 0);
            assertEquals(12, page.sum("kvasir_queue_admitted_total", "pool", "prefill"));
            Eventually.holds("nothing is left", () -> fleet.unfinished().isEmpty());
        }
    }
}
