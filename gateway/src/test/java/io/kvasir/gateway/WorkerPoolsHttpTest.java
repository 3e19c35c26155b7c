package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.WorkerConfig;
import io.kvasir.gateway.testing.FakeEngine;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.gateway.testing.ReplacedFile;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;

/** Roles and pools of workers, as operators and clients see them. */
class WorkerPoolsHttpTest {
    private static final String ANSWER = "{\"choices\":[],\"usage\":{\"prompt_tokens\":1}}";
    private static final String PROMPT = "{\"prompt\":[1]}";

    private final FakeEngine first = new FakeEngine(call -> call.json(200, ANSWER));
    private final FakeEngine second = new FakeEngine(call -> call.json(200, ANSWER));
    private final FakeEngine third = new FakeEngine(call -> call.json(200, ANSWER));
    private GatewayServer gateway;

    private void start(GatewayConfig.Builder config) throws Exception {
        gateway = Gateways.started(config);
    }

    @AfterEach
    void stop() {
        gateway.close();
        first.close();
        second.close();
        third.close();
    }

    private static WorkerConfig worker(FakeEngine engine, String name, String role) {
        return WorkerConfig.parse(engine.url() + ",name=" + name + ",role=" + role);
    }

    private HttpResponse<String> admin(String method, String path, String body) throws Exception {
        return Gateways.workers(gateway, method, path, body);
    }

    private HttpResponse<String> post(FakeEngine engine, String name, String role)
            throws Exception {
        return admin(
                "POST",
                "",
                "{\"url\":\""
                        + engine.url()
                        + "\",\"name\":\""
                        + name
                        + "\",\"role\":\""
                        + role
                        + "\"}");
    }

    private void awaitReady(String state) throws Exception {
        Eventually.holds(
                "/ready says: " + state,
                () -> {
                    try {
                        return Gateways.get(gateway, "/ready").body().contains(state);
                    } catch (Exception e) {
                        throw new IllegalStateException(e);
                    }
                });
    }

    private HttpResponse<String> complete(String... headers) throws Exception {
        return Gateways.post(gateway, "/v1/completions", PROMPT, headers);
    }

    @Test
    void aGatewayWithPrefillWorkersAloneIsNotReadyAndSaysWhy() throws Exception {
        start(Gateways.config(worker(first, "p", "prefill")));
        awaitReady("no decode worker");
        assertEquals(503, Gateways.get(gateway, "/ready").statusCode());
        assertEquals(503, Gateways.get(gateway, "/health").statusCode());
        assertTrue(
                Gateways.admin(gateway, "/health").body().contains("no decode worker"),
                "the details, too");
        assertEquals(503, complete().statusCode());
        assertEquals(0, first.calls.size(), "no whole request goes there");

        assertEquals(201, post(second, "d", "decode").statusCode());
        awaitReady("ready");
        assertEquals(200, Gateways.get(gateway, "/ready").statusCode());
        assertEquals(200, complete().statusCode());
        assertEquals(200, admin("DELETE", "/d", "").statusCode());
        awaitReady("no decode worker");
    }

    @Test
    void decodeWorkersThatComputeNoPromptsNeedAPrefillWorker() throws Exception {
        start(
                Gateways.config(
                        WorkerConfig.parse(first.url() + ",name=d,role=decode,handoff=sglang")));
        awaitReady("no prefill worker");
        assertEquals(503, complete().statusCode());
        assertEquals(0, first.calls.size());
        assertEquals(
                201,
                admin(
                                "POST",
                                "",
                                "{\"url\":\""
                                        + second.url()
                                        + "\",\"name\":\"p\",\"role\":\"prefill\","
                                        + "\"bootstrap\":\"h:1\"}")
                        .statusCode());
        awaitReady("ready");
    }

    @Test
    void pagesAndMetricsSayWhatAWorkerIsThereFor() throws Exception {
        start(
                Gateways.config(
                        worker(first, "b", "both"),
                        WorkerConfig.parse(
                                second.url()
                                        + ",name=p,role=prefill,bootstrap=h:1,labels=zone:a;rack:7"),
                        WorkerConfig.parse(third.url() + ",name=d,role=decode,handoff=sglang")));
        final JsonNode registered = GatewayHttpTest.json(admin("GET", "/p", ""));
        assertEquals("prefill", registered.path("role").asText());
        assertEquals("prefill", registered.path("pool").asText());
        assertEquals("sglang", registered.path("handoff").asText());
        assertEquals("h:1", registered.path("bootstrap").asText());
        assertEquals("{\"zone\":\"a\",\"rack\":\"7\"}", registered.path("labels").toString());
        final JsonNode page = GatewayHttpTest.json(Gateways.get(gateway, "/debug/workers"));
        assertEquals("kv", page.path("prefill_mode").asText());
        assertTrue(page.path("split").asBoolean());
        assertEquals(
                List.of("both/main", "prefill/prefill", "decode/main"),
                page.path("workers")
                        .valueStream()
                        .map(w -> w.path("role").asText() + "/" + w.path("pool").asText())
                        .toList());
        final String health = Gateways.admin(gateway, "/health").body();
        assertTrue(health.contains("\"role\":\"decode\",\"pool\":\"main\""), health);
        final String metrics = Gateways.get(gateway, "/metrics").body();
        assertTrue(metrics.contains("kvasir_disagg_active 1.0"), metrics);
        assertTrue(
                metrics.contains(
                        "kvasir_worker_role{handoff=\"sglang\",pool=\"prefill\",role=\"prefill\","
                                + "worker=\"p\"} 1.0"),
                metrics);
        assertTrue(metrics.contains("kvasir_worker_up{dp_rank=\"0\",worker=\"p\"} 1.0"), metrics);
        assertTrue(
                metrics.contains("kvasir_prefill_pool_resource_limit{resource=\"index-blocks\"}"),
                metrics);
    }

    @Test
    void aDrainIsShownOfWorkersOfBothPools() throws Exception {
        start(
                Gateways.config(
                        worker(first, "p", "prefill"),
                        worker(second, "d", "decode"),
                        worker(third, "b", "both")));
        for (String name : List.of("p", "d")) {
            assertEquals(200, admin("POST", "/" + name + "/drain", "").statusCode());
        }
        final String drained = Gateways.get(gateway, "/metrics").body();
        for (String series : List.of("p\"} 1.0", "d\"} 1.0", "b\"} 0.0")) {
            assertTrue(
                    drained.contains("kvasir_worker_draining{worker=\"" + series + "\n"), drained);
        }
        assertEquals(200, admin("POST", "/d/resume", "").statusCode());
        final String resumed = Gateways.get(gateway, "/metrics").body();
        assertTrue(resumed.contains("kvasir_worker_draining{worker=\"d\"} 0.0\n"), resumed);
    }

    @Test
    void withoutPrefillWorkersNothingIsShownOfTheirPool() throws Exception {
        start(Gateways.config(worker(first, "b", "both")));
        final String metrics = Gateways.get(gateway, "/metrics").body();
        assertTrue(metrics.contains("kvasir_disagg_active 0.0"), metrics);
        assertFalse(metrics.contains("\nkvasir_prefill_pool_"), metrics);
        final JsonNode page = GatewayHttpTest.json(Gateways.get(gateway, "/debug/workers"));
        assertTrue(page.path("prefill_mode").isNull());
        assertFalse(page.path("split").asBoolean());
    }

    @Test
    void aPinNamesAWorkerOfItsPool() throws Exception {
        start(
                Gateways.config(
                        worker(first, "p", "prefill"),
                        worker(second, "d", "decode"),
                        worker(third, "b", "both")));
        assertEquals(400, complete("x-kvasir-worker", "p").statusCode());
        assertEquals(400, complete("x-kvasir-prefill-worker", "d").statusCode());
        assertEquals(400, complete("x-kvasir-prefill-worker", "none").statusCode());
        assertEquals(200, complete("x-kvasir-worker", "b").statusCode());
        assertEquals(1, third.calls.size());
    }

    @Test
    void workersAreDrainedAndResumedInBothPools() throws Exception {
        start(Gateways.config(worker(first, "p", "prefill"), worker(second, "d", "decode")));
        awaitReady("ready");
        for (String name : List.of("p", "d")) {
            assertEquals(200, admin("POST", "/" + name + "/drain", "").statusCode());
            assertTrue(
                    GatewayHttpTest.json(admin("GET", "/" + name, ""))
                            .path("draining")
                            .asBoolean());
            assertTrue(Gateways.get(gateway, "/metrics").body().contains("kvasir_disagg_active 0"));
            assertEquals(200, admin("POST", "/" + name + "/resume", "").statusCode());
            assertTrue(Gateways.get(gateway, "/metrics").body().contains("kvasir_disagg_active 1"));
        }
    }

    @Test
    void aWorkersFileTakesRolesAndMovesAWorkerThatChangesItsOwn(@TempDir Path dir)
            throws Exception {
        final Path file =
                Files.writeString(
                        dir.resolve("w"),
                        "- url: "
                                + first.url()
                                + "\n  name: a\n  role: decode\n- "
                                + second.url()
                                + ",name=b,role=prefill\n");
        start(
                Gateways.config()
                        .set(GatewaySettings.WORKERS_FILE, file)
                        .set(GatewaySettings.WORKERS_FILE_INTERVAL, Duration.ofMillis(5)));
        awaitReady("ready");
        assertEquals("decode", GatewayHttpTest.json(admin("GET", "/a", "")).path("role").asText());
        ReplacedFile.write(
                file,
                "- "
                        + first.url()
                        + ",name=a,role=prefill\n- "
                        + second.url()
                        + ",name=b,role=decode\n");
        Eventually.holds(
                "both have moved",
                () -> {
                    try {
                        return GatewayHttpTest.json(admin("GET", "/a", ""))
                                        .path("pool")
                                        .asText()
                                        .equals("prefill")
                                && GatewayHttpTest.json(admin("GET", "/b", ""))
                                        .path("pool")
                                        .asText()
                                        .equals("main");
                    } catch (Exception e) {
                        throw new IllegalStateException(e);
                    }
                });
        awaitReady("ready");
        assertEquals(200, complete().statusCode());
    }

    @Test
    void noRequestIsLostWhileAWorkerChangesItsRole() throws Exception {
        start(Gateways.config(worker(first, "stays", "both"), worker(second, "moves", "both")));
        final AtomicBoolean ends = new AtomicBoolean();
        final AtomicInteger answered = new AtomicInteger();
        try (ExecutorService clients = Executors.newFixedThreadPool(3)) {
            final List<Future<?>> running = new ArrayList<>();
            for (int i = 0; i < 3; i++) {
                running.add(
                        clients.submit(
                                () -> {
                                    while (!ends.get()) {
                                        assertEquals(200, complete().statusCode());
                                        answered.incrementAndGet();
                                    }
                                    return null;
                                }));
            }
            final String[] roles = {"prefill", "decode", "both"};
            for (int i = 0; i < 30; i++) {
                assertEquals(201, post(second, "moves", roles[i % 3]).statusCode());
                final int before = answered.get();
                Eventually.holds("another answer", () -> answered.get() > before || ends.get());
            }
            ends.set(true);
            for (Future<?> client : running) {
                client.get(60, TimeUnit.SECONDS);
            }
        }
        assertTrue(answered.get() >= 30);
        assertEquals(0, gateway.router().activeLeases());
    }

    @Test
    void aRoleOrProtocolThatIsNoneIsRefusedAndNamed() throws Exception {
        start(Gateways.config(worker(first, "b", "both")));
        for (String[] each :
                new String[][] {
                    {"\"role\":\"cook\"", "role=cook; one of: both, prefill, decode"},
                    {"\"handoff\":\"mail\"", "handoff=mail; one of: vllm, sglang, trtllm"},
                    {"\"role\":\"decode\",\"bootstrap\":\"h:1\"", "with role=decode"},
                    {"\"handoff\":\"vllm\",\"bootstrap\":\"h:1\"", "with handoff=vllm"},
                    {"\"role\":\"prefill\",\"bootstrap\":\"h\"", "must be HOST:PORT"},
                    {"\"labels\":\"zone\"", "is not key:value"},
                    {"\"role\":\"prefill\",\"dp\":9", "max-workers=8"},
                }) {
            final HttpResponse<String> answer =
                    admin("POST", "", "{\"url\":\"http://h:1\"," + each[0] + "}");
            assertEquals(400, answer.statusCode(), each[0]);
            assertTrue(answer.body().contains(each[1]), answer.body());
        }
    }
}
