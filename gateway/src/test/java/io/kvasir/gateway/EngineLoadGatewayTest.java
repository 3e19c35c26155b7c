package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.WorkerConfig;
import io.kvasir.gateway.testing.FakeEngine;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.gateway.testing.MetricsPage;
import io.kvasir.router.Worker;
import io.kvasir.router.load.ReportedLoad;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.sim.SimEngine;
import io.kvasir.sim.config.SimConfig;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;

import java.net.URI;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletableFuture;

/** The load that engines have on their pages of metrics, in what the gateway does. */
@Order(1) // takes long: begins first, beside the others
class EngineLoadGatewayTest {
    private static final int REQUESTS = 40;
    private static final int OTHERS = 4;

    private final List<CompletableFuture<?>> others = new ArrayList<>();
    private SimEngine one;
    private SimEngine two;
    private GatewayServer gateway;
    private int prompts;

    @AfterEach
    void stop() {
        others.forEach(request -> request.cancel(true));
        if (gateway != null) {
            gateway.close();
        }
        if (one != null) {
            one.close();
            two.close();
        }
    }

    private static GatewayConfig.Builder config(boolean on, WorkerConfig... workers) {
        return Gateways.config(workers)
                .set(RouterSettings.ENGINE_LOAD, on)
                .set(RouterSettings.ENGINE_LOAD_TTL, Duration.ofMinutes(1))
                .set(GatewaySettings.ENGINE_LOAD_INTERVAL, Duration.ofMillis(20));
    }

    private static SimEngine engine() {
        return SimEngine.start(
                SimConfig.builder().model("m").blocks(2_048).interTokenMillis(40).build());
    }

    private void start(boolean on) throws Exception {
        one = engine();
        two = engine();
        gateway =
                GatewayServer.start(
                        config(
                                        on,
                                        WorkerConfig.parse(one.url() + ",name=one"),
                                        WorkerConfig.parse(two.url() + ",name=two"))
                                .build());
        Gateways.awaitContact(gateway);
    }

    /** Another client has long answers computed by the first engine. */
    private void loadTheFirst() throws Exception {
        for (int i = 0; i < OTHERS; i++) {
            others.add(
                    Gateways.HTTP.sendAsync(
                            HttpRequest.newBuilder(URI.create(one.url() + "/v1/completions"))
                                    .header("Content-Type", "application/json")
                                    .POST(
                                            HttpRequest.BodyPublishers.ofString(
                                                    "{\"model\":\"m\",\"max_tokens\":4000,"
                                                            + "\"ignore_eos\":true,\"prompt\":"
                                                            + prompt(320)
                                                            + "}"))
                                    .build(),
                            HttpResponse.BodyHandlers.ofString()));
        }
        Eventually.holds("they run", () -> one.state(0).running() == OTHERS);
    }

    private String prompt(int tokens) {
        final int[] prompt = new int[tokens];
        prompt[0] = 40 + ++prompts; // each another one
        return Arrays.toString(prompt);
    }

    /** How many requests the first engine gets. */
    private int shareOfTheFirst() throws Exception {
        int share = 0;
        for (int i = 0; i < REQUESTS; i++) {
            final HttpResponse<String> answer =
                    Gateways.post(
                            gateway,
                            "/v1/completions",
                            "{\"model\":\"m\",\"max_tokens\":1,\"prompt\":" + prompt(64) + "}");
            assertEquals(200, answer.statusCode(), answer.body());
            share += GatewayHttpTest.header(answer, "x-kvasir-worker").equals("one") ? 1 : 0;
        }
        return share;
    }

    private Worker worker(int n) {
        return gateway.router().workers().get(n);
    }

    private long requestsOfOthers() {
        return requestsOfOthers(0);
    }

    private long requestsOfOthers(int worker) {
        final ReportedLoad load = worker(worker).reportedLoadOrNull();
        return load == null ? -1 : load.others().requests();
    }

    @Test
    void aWorkerThatAnotherClientLoadsGetsNoRequestsUntilThatEnds() throws Exception {
        start(true);
        Eventually.holds("the first is idle", () -> requestsOfOthers() == 0);
        loadTheFirst();
        Eventually.holds("it is reported", () -> requestsOfOthers() == OTHERS);
        assertEquals(0, shareOfTheFirst());
        final JsonNode page =
                GatewayHttpTest.json(Gateways.get(gateway, "/debug/workers")).at("/workers/0");
        assertEquals("metrics", page.at("/engine_load/source").textValue());
        assertEquals(OTHERS, page.at("/engine_load/others_requests").intValue());
        assertTrue(page.at("/engine_load/others_blocks").intValue() >= OTHERS * 20);
        assertEquals(2_048, page.at("/engine_load/blocks").intValue());
        assertEquals(0, page.get("active_requests").intValue(), "what is booked stands by itself");
        final MetricsPage metrics = MetricsPage.of(gateway);
        assertEquals(
                OTHERS,
                metrics.sum("kvasir_worker_others_load", "unit", "requests", "worker", "one"));
        assertTrue(
                metrics.sum("kvasir_load_reports_total", "source", "metrics", "outcome", "taken")
                        > 0);
        others.forEach(request -> request.cancel(true));
        Eventually.holds("it is idle again", () -> requestsOfOthers() == 0);
        final int share = shareOfTheFirst();
        assertTrue(share >= 5 && share <= REQUESTS - 5, "share=" + share);
    }

    /** The check is checked: without reports nothing keeps requests away. */
    @Test
    void switchedOffItGetsItsShareAllTheSame() throws Exception {
        start(false);
        loadTheFirst();
        final int share = shareOfTheFirst();
        assertTrue(share >= 5 && share <= REQUESTS - 5, "share=" + share);
        assertEquals(-1, requestsOfOthers());
        assertEquals(
                0, MetricsPage.of(gateway).sum("kvasir_load_reports_total", "source", "metrics"));
    }

    @Test
    void aPageThatIsBrokenOrHostileChangesNothingAndIsCounted() throws Exception {
        try (FakeEngine engine = new FakeEngine(call -> call.json(200, "{}"))) {
            engine.metricsPage = page("3.0");
            gateway =
                    GatewayServer.start(
                            config(true, WorkerConfig.parse(engine.url() + ",name=w")).build());
            Gateways.awaitContact(gateway);
            Eventually.holds("it is reported", () -> requestsOfOthers() == 3);
            engine.metricsPage = page("NaN");
            awaitOutcome("bad-value");
            engine.metricsPage = "vllm:num_requests_running{engine=\"0\" 5\n";
            awaitOutcome("unreadable");
            engine.metricsPage = "nothing of it\n";
            awaitOutcome("empty");
            engine.metricsPage = "vllm:num_requests_running{engine=\"7\"} 5\n".repeat(200_000);
            final double unreadable = outcome("unreadable");
            Eventually.holds("it is too long", () -> outcome("unreadable") > unreadable);
            engine.metricsPage =
                    """
                    vllm:num_requests_running{engine="7"} 5
                    vllm:num_requests_running{engine="8"} 5
                    """;
            awaitOutcome("unknown-worker");
            assertEquals(3, requestsOfOthers(), "what was reported before counts for its time");
            assertTrue(worker(0).available());
            engine.metricsPage = page("1.0");
            Eventually.holds("it is reported again", () -> requestsOfOthers() == 1);
        }
    }

    @Test
    void aServerOfSomeOfAnEnginesRanksNamesThemAsItsEventsDo() throws Exception {
        try (FakeEngine engine = new FakeEngine(call -> call.json(200, "{}"))) {
            engine.metricsPage =
                    """
                    vllm:num_requests_running{engine="7"} 5
                    vllm:num_requests_running{engine="8"} 6
                    """;
            gateway =
                    GatewayServer.start(
                            config(
                                            true,
                                            WorkerConfig.parse(
                                                    engine.url()
                                                            + ",name=w,dp=2,event-rank=7,"
                                                            + "events=tcp://127.0.0.1:1"))
                                    .build());
            Gateways.awaitContact(gateway);
            Eventually.holds("the first is reported", () -> requestsOfOthers(0) == 5);
            Eventually.holds("and the second", () -> requestsOfOthers(1) == 6);
        }
    }

    private static String page(String running) {
        return "vllm:num_requests_running{engine=\"0\"} "
                + running
                + "\nvllm:num_requests_waiting{engine=\"0\"} 0.0\n";
    }

    private double outcome(String outcome) {
        try {
            return MetricsPage.of(gateway)
                    .sum("kvasir_load_reports_total", "source", "metrics", "outcome", outcome);
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }

    private void awaitOutcome(String outcome) throws Exception {
        Eventually.holds(outcome, () -> outcome(outcome) > 0);
    }

    @Test
    void anIntervalThatIsNotBelowTheTimeToLiveIsRefused() {
        final GatewayConfig.Builder config =
                config(true, WorkerConfig.parse("http://127.0.0.1:1,name=w"))
                        .set(RouterSettings.ENGINE_LOAD_TTL, Duration.ofMillis(20));
        final IllegalArgumentException refused =
                assertThrows(IllegalArgumentException.class, config::build);
        assertTrue(
                refused.getMessage().contains("engine-load-interval-ms=20"), refused.getMessage());
        assertFalse(config.set(RouterSettings.ENGINE_LOAD, false).build().models().isEmpty());
    }
}
