package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewayException;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.ModelConfig;
import io.kvasir.gateway.config.WorkerConfig;
import io.kvasir.gateway.openai.Json;
import io.kvasir.gateway.testing.FakeEngine;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.gateway.testing.MetricsPage;
import io.kvasir.gateway.testing.ReplacedFile;
import io.kvasir.prompt.chat.SimModel;
import io.kvasir.router.policy.RoutingMode;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;

/** Several models in one gateway, as operators and clients see them. */
@Order(1) // takes long: begins first, beside the others
class SeveralModelsTest {
    private static final String ANSWER = "{\"choices\":[],\"usage\":{\"prompt_tokens\":1}}";

    private final FakeEngine first = new FakeEngine(call -> call.json(200, ANSWER));
    private final FakeEngine second = new FakeEngine(call -> call.json(200, ANSWER));
    private final FakeEngine third = new FakeEngine(call -> call.json(200, ANSWER));
    private GatewayServer gateway;

    private static WorkerConfig worker(FakeEngine engine, String name, String keys) {
        return WorkerConfig.parse(engine.url() + ",name=" + name + keys);
    }

    private static GatewayConfig.Builder config(WorkerConfig... workers) {
        return Gateways.config(workers)
                .set(GatewaySettings.LORA, List.of("m-fr"))
                .set(
                        GatewaySettings.MODELS,
                        List.of(ModelConfig.parse("name=n,block-size=32,lora=n-fr")));
    }

    private void start(GatewayConfig.Builder config) throws Exception {
        gateway = Gateways.started(config);
    }

    /** Models m and n with a worker each. */
    private void start() throws Exception {
        start(config(worker(first, "a", ""), worker(second, "b", ",model=n")));
    }

    @AfterEach
    void stop() {
        if (gateway != null) {
            gateway.close();
        }
        first.close();
        second.close();
        third.close();
    }

    private static String body(String modelOrNull) {
        final ObjectNode body = Json.MAPPER.createObjectNode();
        if (modelOrNull != null) {
            body.put("model", modelOrNull);
        }
        body.putArray("prompt").add(1);
        return body.toString();
    }

    private HttpResponse<String> complete(String modelOrNull, String... headers) throws Exception {
        return Gateways.post(gateway, "/v1/completions", body(modelOrNull), headers);
    }

    private HttpResponse<String> admin(String method, String path, String body) throws Exception {
        return Gateways.workers(gateway, method, path, body);
    }

    private static String json(FakeEngine engine, String name, String modelOrNull) {
        final ObjectNode body = Json.MAPPER.createObjectNode();
        body.put("url", engine.url()).put("name", name);
        if (modelOrNull != null) {
            body.put("model", modelOrNull);
        }
        return body.toString();
    }

    private JsonNode page(String path) throws Exception {
        return GatewayHttpTest.json(Gateways.admin(gateway, path));
    }

    private void awaitStatus(String model, int status) throws InterruptedException {
        Eventually.holds(
                model + " is answered with " + status,
                () -> {
                    try {
                        return complete(model).statusCode() == status;
                    } catch (Exception e) {
                        throw new IllegalStateException(e);
                    }
                });
    }

    @Test
    void aModelThatIsNotServedIsRefusedAsWithOneModel() throws Exception {
        start();
        for (String unknown : List.of("o", "", "M", "m ", "n/../m", "模", "x".repeat(10_000))) {
            final HttpResponse<String> answer = complete(unknown);
            assertEquals(404, answer.statusCode(), answer.body());
            final JsonNode error = GatewayHttpTest.json(answer).path("error");
            assertEquals("model_not_found", error.path("code").asText());
            assertEquals("model", error.path("param").asText());
            assertTrue(answer.body().length() < 1000, "a long name is cut");
            assertEquals(404, Gateways.post(gateway, "/tokenize", body(unknown)).statusCode());
        }
        assertEquals(0, first.calls.size() + second.calls.size());
        assertEquals(
                Set.of("none"), MetricsPage.of(gateway).values("kvasir_requests_total", "model"));
    }

    @Test
    void aRequestThatNamesNoneIsTheFirstModels() throws Exception {
        start();
        assertEquals(200, complete(null).statusCode());
        assertEquals(
                200,
                Gateways.post(gateway, "/v1/completions", "{\"model\":null,\"prompt\":[1]}")
                        .statusCode());
        assertEquals(2, first.calls.size());
        assertEquals(0, second.calls.size());
    }

    @Test
    void everyModelAndAdapterHasTheWorkersOfItsModel() throws Exception {
        start();
        for (String model : List.of("m", "m-fr")) {
            assertEquals(200, complete(model).statusCode());
        }
        assertEquals(2, first.calls.size());
        for (String model : List.of("n", "n-fr", "n")) {
            assertEquals(200, complete(model).statusCode());
        }
        assertEquals(2, first.calls.size());
        assertEquals(3, second.calls.size());
        assertTrue(second.calls.get(1).text().contains("\"model\":\"n-fr\""), "as it was sent");
        assertEquals(
                Set.of("m", "m-fr", "n", "n-fr"),
                MetricsPage.of(gateway).values("kvasir_requests_total", "model"));
    }

    @Test
    void anAdapterBehindItsModelsNameIsThatModels() throws Exception {
        start();
        assertEquals(200, complete("n:n-fr").statusCode());
        assertEquals(200, complete("m:m-fr").statusCode());
        assertEquals(1, first.calls.size());
        assertEquals(1, second.calls.size());
        for (String unknown : List.of("m:n-fr", "n:m-fr", "o:n-fr", "n:", ":n-fr")) {
            assertEquals(404, complete(unknown).statusCode(), unknown);
        }
    }

    @Test
    void modelsAreListedWithTheirAdaptersAndLengths() throws Exception {
        second.tokenize =
                call -> call.json(200, "{\"tokens\":[1],\"count\":1,\"max_model_len\":4096}");
        start(
                config(worker(first, "a", ""), worker(second, "b", ",model=n"))
                        .set(
                                GatewaySettings.MODELS,
                                List.of(
                                        new ModelConfig.Builder()
                                                .name("n")
                                                .set(GatewaySettings.LORA, List.of("n-fr"))
                                                .set(GatewaySettings.TOKENIZER, SimModel.files())
                                                .build())));
        Eventually.holds(
                "the length is known",
                () -> {
                    try {
                        return Gateways.get(gateway, "/v1/models").body().contains("4096");
                    } catch (Exception e) {
                        throw new IllegalStateException(e);
                    }
                });
        final JsonNode page = GatewayHttpTest.json(Gateways.get(gateway, "/v1/models"));
        assertEquals(
                List.of("m null null", "m-fr m null", "n null 4096", "n-fr n 4096"),
                page.path("data")
                        .valueStream()
                        .map(
                                each ->
                                        each.path("id").asText()
                                                + " "
                                                + each.path("parent").asText("null")
                                                + " "
                                                + each.path("max_model_len").asText())
                        .toList());
        final String text = "{\"model\":\"%s\",\"prompt\":\"a b\"}";
        final HttpResponse<String> tokens =
                Gateways.post(gateway, "/tokenize", String.format(text, "n-fr"));
        assertEquals(200, tokens.statusCode(), tokens.body());
        assertTrue(tokens.body().contains("\"max_model_len\":4096"), tokens.body());
        assertEquals(
                501,
                Gateways.post(gateway, "/tokenize", String.format(text, "m")).statusCode(),
                "the first model has no tokenizer");
    }

    @Test
    void aWorkerIsPinnedAmongThoseOfTheRequestsModel() throws Exception {
        start();
        assertEquals(200, complete("n", "x-kvasir-worker", "b").statusCode());
        final HttpResponse<String> refused = complete("n", "x-kvasir-worker", "a");
        assertEquals(400, refused.statusCode());
        assertTrue(refused.body().contains("no worker is named 'a'"), refused.body());
        assertEquals(0, first.calls.size());
    }

    @Test
    void theAdminPortMovesAWorkerToAnotherModel() throws Exception {
        start();
        final long before = page("/admin/workers/b").path("generation").asLong();
        assertEquals(201, admin("POST", "", json(second, "b", "m")).statusCode());
        assertEquals("m", page("/admin/workers/b").path("model").asText());
        assertNotEquals(before, page("/admin/workers/b").path("generation").asLong());
        awaitStatus("n", 503);
        assertEquals(200, admin("POST", "", json(second, "b", "m")).statusCode(), "known by now");
        assertEquals(200, admin("DELETE", "/a", "").statusCode());
        awaitStatus("m", 200);
        assertEquals(1, second.calls.size());
        assertEquals(0, first.calls.size());

        assertEquals(201, admin("POST", "", json(second, "b", "n")).statusCode());
        awaitStatus("n", 200);
        awaitStatus("m", 503);
        assertEquals(201, admin("POST", "", json(third, "c", null)).statusCode());
        assertEquals("m", page("/admin/workers/c").path("model").asText(), "where none is named");
        awaitStatus("m", 200);
    }

    @Test
    void aWorkerOfAModelThatIsNotServedIsRefusedByTheAdminPort() throws Exception {
        start();
        for (String model : List.of("o", "m-fr", "", "x".repeat(10_000))) {
            final HttpResponse<String> answer = admin("POST", "", json(third, "c", model));
            assertEquals(400, answer.statusCode(), answer.body());
            assertTrue(answer.body().contains("this gateway routes to workers of m, n"));
        }
        assertEquals(404, admin("GET", "/c", "").statusCode());
        assertEquals(400, admin("POST", "", json(third, "b", "o")).statusCode());
        assertEquals("n", page("/admin/workers/b").path("model").asText(), "it stays");
    }

    @Test
    void aWorkersFileMixesModelsAndMovesNamesBetweenThem(@TempDir Path folder) throws Exception {
        final Path file = folder.resolve("workers.yaml");
        final String line = "- {url: '%s', name: %s, model: %s}%n";
        Files.writeString(
                file,
                String.format(line, first.url(), "a", "m")
                        + String.format(line, second.url(), "b", "n")
                        + String.format(line, third.url(), "c", "unknown"));
        start(config().set(GatewaySettings.WORKERS_FILE, file));
        assertEquals(200, complete("m").statusCode());
        assertEquals(200, complete("n").statusCode());
        assertEquals(2, page("/admin/workers").path("workers").size());
        ReplacedFile.write(
                file,
                String.format(line, first.url(), "a", "n")
                        + String.format(line, second.url(), "b", "m")
                        + "- "
                        + third.url()
                        + ",name=c,model=n\n");
        gateway.reload();
        Eventually.holds(
                "they have changed places",
                () -> {
                    try {
                        return page("/admin/workers/a").path("model").asText().equals("n")
                                && page("/admin/workers/b").path("model").asText().equals("m")
                                && page("/admin/workers/c").path("model").asText().equals("n");
                    } catch (Exception e) {
                        throw new IllegalStateException(e);
                    }
                });
        awaitStatus("m", 200);
        assertEquals(1, first.calls.size());
        assertEquals(0, third.calls.size());
        assertTrue(second.calls.size() >= 2);
    }

    @Test
    void aModelWhoseWorkersAllDieIsRefusedWhileTheOtherServes() throws Exception {
        start();
        second.close();
        awaitStatus("n", 503);
        for (int i = 0; i < 20; i++) {
            assertEquals(200, complete("m").statusCode());
        }
        assertEquals(503, complete("n").statusCode());
        assertEquals(200, Gateways.get(gateway, "/ready").statusCode(), "one model can be served");
        assertEquals(200, Gateways.get(gateway, "/health").statusCode());
        final JsonNode health = page("/health");
        assertEquals("ok", health.path("status").asText());
        assertEquals("m", health.at("/models/0/model").asText());
        assertEquals("ok", health.at("/models/0/status").asText());
        assertEquals("n", health.at("/models/1/model").asText());
        assertEquals("no worker can be used", health.at("/models/1/status").asText());

        assertEquals(200, admin("DELETE", "/a", "").statusCode());
        assertEquals(503, Gateways.get(gateway, "/ready").statusCode());
        assertEquals(503, Gateways.admin(gateway, "/health").statusCode());
        try (FakeEngine back = new FakeEngine(call -> call.json(200, ANSWER))) {
            assertEquals(201, admin("POST", "", json(back, "b", "n")).statusCode());
            awaitStatus("n", 200);
            assertEquals(200, Gateways.get(gateway, "/ready").statusCode());
            assertEquals(503, complete("m").statusCode());
        }
    }

    @Test
    void poolsOfBothModelsStayApart() throws Exception {
        start(
                config(
                        worker(first, "p", ",role=prefill"),
                        worker(second, "d", ",role=decode,model=n")));
        final HttpResponse<String> m = complete("m");
        assertEquals(503, m.statusCode(), "its decode worker has another model");
        assertEquals(0, first.calls.size());
        assertEquals(200, complete("n").statusCode(), "a decode worker of vLLM does all of it");
        assertEquals(1, second.calls.size());
        assertFalse(second.calls.getFirst().text().contains("kv_transfer_params"));
        final JsonNode health = page("/health");
        assertEquals("no decode worker can be used", health.at("/models/0/status").asText());
        final String named = "{\"model\":\"%s\",\"prompt\":[1],\"kv_transfer_params\":{}}";
        try (GatewayServer strict =
                Gateways.started(
                        config(worker(first, "p", ",role=prefill"), worker(second, "b", ",model=n"))
                                .set(GatewaySettings.TRUSTED_NETWORKS, List.of()))) {
            assertEquals(
                    200,
                    Gateways.post(strict, "/v1/completions", String.format(named, "n"))
                            .statusCode(),
                    "this model has neither prefill nor decode workers");
            assertEquals(
                    400,
                    Gateways.post(strict, "/v1/completions", String.format(named, "m"))
                            .statusCode());
        }
    }

    @Test
    void pagesAndDecisionsSayWhichModel() throws Exception {
        start();
        complete("m");
        complete("n-fr");
        final JsonNode decisions = page("/debug/decisions").path("decisions");
        assertEquals("n", decisions.at("/0/model").asText());
        assertEquals("b", decisions.at("/0/worker").asText());
        assertEquals(1, decisions.at("/0/candidates").size());
        assertEquals("m", decisions.at("/1/model").asText());
        final JsonNode workers = page("/debug/workers");
        assertEquals(16, workers.path("block_size").asInt());
        assertEquals("n", workers.at("/models/1/model").asText());
        assertEquals(32, workers.at("/models/1/block_size").asInt());
        assertEquals("kv", workers.at("/models/0/mode").asText());
        assertEquals("m", workers.at("/workers/0/model").asText());
        assertEquals("n", workers.at("/workers/1/model").asText());
        assertEquals("n", page("/admin/workers").at("/workers/1/model").asText());
        assertEquals("n", page("/health").at("/workers/1/model").asText());
    }

    @Test
    void pagesOfAGatewayOfOneModelNameNone() throws Exception {
        start(Gateways.config(worker(first, "a", ",model=m")));
        complete("m");
        for (String path :
                List.of("/debug/decisions", "/debug/workers", "/admin/workers", "/health")) {
            final String page = Gateways.admin(gateway, path).body();
            assertFalse(page.contains("\"model"), page);
        }
        final MetricsPage metrics = MetricsPage.of(gateway);
        assertTrue(
                metrics.series("kvasir_resource_used").stream()
                        .noneMatch(series -> series.contains("model")));
        assertTrue(
                metrics.series("kvasir_worker_role").stream()
                        .noneMatch(series -> series.contains("model")));
    }

    @Test
    void seriesOfRoutersHaveTheirModel() throws Exception {
        final String hostile = "n\"\\\n模/" + "x".repeat(10_000);
        start(
                Gateways.config(worker(first, "a", ""))
                        .set(RouterSettings.MAX_ACTIVE_REQUESTS, 100)
                        .set(
                                GatewaySettings.MODELS,
                                List.of(
                                        new ModelConfig.Builder()
                                                .name(hostile)
                                                .set(RouterSettings.MAX_ACTIVE_REQUESTS, 50)
                                                .set(RouterSettings.APPROXIMATE, true)
                                                .build())));
        final ObjectNode added = Json.MAPPER.createObjectNode();
        added.put("url", second.url()).put("name", "b").put("model", hostile);
        added.put("role", "decode");
        assertEquals(201, admin("POST", "", added.toString()).statusCode());
        awaitStatus(hostile, 200);
        final MetricsPage page = MetricsPage.of(gateway);
        final Set<String> models = page.values("kvasir_resource_limit", "model");
        assertEquals(2, models.size(), "" + models);
        assertEquals(
                100,
                page.sum("kvasir_resource_limit", "model", "m", "resource", "active-requests"));
        assertEquals(150, page.sum("kvasir_resource_limit", "resource", "active-requests"));
        for (String name :
                List.of(
                        "kvasir_refused_total",
                        "kvasir_failures_total",
                        "kvasir_bookings_expired_total",
                        "kvasir_disagg_active",
                        "kvasir_worker_role")) {
            assertEquals(models, page.values(name, "model"), name);
        }
        assertEquals(1, page.values("kvasir_routed_blocks", "model").size(), "one predicts");
        assertFalse(page.values("kvasir_routed_blocks", "model").contains("m"));
        assertTrue(
                page.values("kvasir_prefill_pool_failures_total", "model").isEmpty(),
                "no model has prefill workers");
    }

    @Test
    void hostileNamesOfModelsAreServedAsTheyAre() throws Exception {
        final List<String> names =
                List.of(
                        "meta-llama/Llama-3.1-8B-Instruct",
                        "../../etc",
                        "模型 🙂",
                        "prefill",
                        "a,b;c=d",
                        "\"quoted\"\\\n\u001b[2J",
                        "x".repeat(10_000),
                        "x".repeat(9_999) + "y");
        final GatewayConfig.Builder config =
                Gateways.config(worker(first, "w", ""))
                        .set(
                                GatewaySettings.MODELS,
                                names.stream()
                                        .map(name -> new ModelConfig.Builder().name(name).build())
                                        .toList());
        start(config);
        for (int i = 0; i < names.size(); i++) {
            assertEquals(503, complete(names.get(i)).statusCode(), "it has no worker");
            assertEquals(201, admin("POST", "", json(second, "w" + i, names.get(i))).statusCode());
            awaitStatus(names.get(i), 200);
            assertEquals(i + 1, second.calls.size());
        }
        final JsonNode listed = GatewayHttpTest.json(Gateways.get(gateway, "/v1/models"));
        assertEquals(names.get(5), listed.at("/data/6/id").asText());
        assertEquals(names.size() + 1, listed.path("data").size());
        assertEquals(0, first.calls.size());
        MetricsPage.of(gateway);
    }

    @Test
    void admissionCountsRequestsOfAllModels() throws Exception {
        final CountDownLatch go = new CountDownLatch(1);
        for (FakeEngine engine : List.of(first, second)) {
            engine.script =
                    call -> {
                        go.await();
                        call.json(200, ANSWER);
                    };
        }
        start(
                config(worker(first, "a", ""), worker(second, "b", ",model=n"))
                        .set(RouterSettings.MAX_ACTIVE_REQUESTS, 4));
        final List<CompletableFuture<HttpResponse<String>>> running = new ArrayList<>();
        for (int i = 0; i < 4; i++) {
            running.add(
                    Gateways.postAsync(gateway, "/v1/completions", body(i % 2 == 0 ? "m" : "n")));
        }
        Eventually.holds("they run", () -> first.calls.size() + second.calls.size() == 4);
        assertEquals(429, complete("m").statusCode());
        assertEquals(429, complete("n").statusCode());
        go.countDown();
        for (CompletableFuture<HttpResponse<String>> each : running) {
            assertEquals(200, each.get(1, TimeUnit.MINUTES).statusCode());
        }
        awaitStatus("n", 200);
    }

    @Test
    void aDrainLetsRequestsOfAllModelsEnd() throws Exception {
        final CountDownLatch go = new CountDownLatch(1);
        for (FakeEngine engine : List.of(first, second)) {
            engine.script =
                    call -> {
                        go.await();
                        call.json(200, ANSWER);
                    };
        }
        start(
                config(worker(first, "a", ""), worker(second, "b", ",model=n"))
                        .set(GatewaySettings.LAME_DUCK, Duration.ofMillis(1))
                        .set(GatewaySettings.DRAIN_TIMEOUT, Duration.ofMinutes(1)));
        final CompletableFuture<HttpResponse<String>> m =
                Gateways.postAsync(gateway, "/v1/completions", body("m"));
        final CompletableFuture<HttpResponse<String>> n =
                Gateways.postAsync(gateway, "/v1/completions", body("n"));
        Eventually.holds("they run", () -> first.calls.size() + second.calls.size() == 2);
        try (ExecutorService threads = Executors.newSingleThreadExecutor()) {
            final Future<?> drained =
                    threads.submit(
                            () -> {
                                gateway.drain();
                                return null;
                            });
            go.countDown();
            drained.get(1, TimeUnit.MINUTES);
        }
        assertEquals(200, m.get(1, TimeUnit.MINUTES).statusCode());
        assertEquals(200, n.get(1, TimeUnit.MINUTES).statusCode());
        gateway.close(); // twice
    }

    @Test
    void aCloseCutsRequestsOfAllModelsAndFreesTheirBookings() throws Exception {
        for (FakeEngine engine : List.of(first, second)) {
            engine.script = call -> call.awaitClientGone(60);
        }
        start(config(worker(first, "a", ""), worker(second, "b", ",model=n")));
        final List<CompletableFuture<HttpResponse<String>>> running =
                List.of(
                        Gateways.postAsync(gateway, "/v1/completions", body("m")),
                        Gateways.postAsync(gateway, "/v1/completions", body("n")));
        Eventually.holds("they run", () -> first.calls.size() + second.calls.size() == 2);
        gateway.close();
        for (CompletableFuture<HttpResponse<String>> each : running) {
            assertNotEquals(200, each.get(1, TimeUnit.MINUTES).statusCode());
        }
        for (String model : List.of("m", "n")) {
            assertEquals(0, gateway.router(model).activeLeases());
        }
    }

    @Test
    void modelsAreServedWhileAWorkerMovesBetweenThem() throws Exception {
        start(
                config(
                        worker(first, "a", ""),
                        worker(second, "b", ",model=n"),
                        worker(third, "c", "")));
        final AtomicBoolean done = new AtomicBoolean();
        try (ExecutorService threads = Executors.newFixedThreadPool(2)) {
            final List<Future<?>> clients = new ArrayList<>();
            for (String model : List.of("m", "n")) {
                clients.add(
                        threads.submit(
                                () -> {
                                    while (!done.get()) {
                                        assertEquals(200, complete(model).statusCode());
                                    }
                                    return null;
                                }));
            }
            for (int i = 0; i < 30; i++) {
                final String model = i % 2 == 0 ? "n" : "m";
                assertEquals(201, admin("POST", "", json(third, "c", model)).statusCode());
                Eventually.holds(
                        "it is used",
                        () -> {
                            try {
                                return page("/admin/workers/c").path("in_use").asBoolean();
                            } catch (Exception e) {
                                throw new IllegalStateException(e);
                            }
                        });
            }
            done.set(true);
            for (Future<?> client : clients) {
                client.get(1, TimeUnit.MINUTES);
            }
        }
        Eventually.holds(
                "nothing stays booked",
                () -> gateway.router("m").activeLeases() + gateway.router("n").activeLeases() == 0);
        for (FakeEngine.Call call : first.calls) {
            assertTrue(call.text().contains("\"model\":\"m\""), call.text());
        }
        for (FakeEngine.Call call : second.calls) {
            assertTrue(call.text().contains("\"model\":\"n\""), call.text());
        }
    }

    @Test
    void aModelIsFoundForInspectionByItsName() throws Exception {
        start();
        assertSame(gateway.router(), gateway.router("m"));
        assertNotEquals(gateway.router(), gateway.router("n"));
        for (String name : new String[] {"o", "n-fr", "", null}) {
            final IllegalArgumentException unknown =
                    assertThrows(IllegalArgumentException.class, () -> gateway.router(name));
            assertTrue(unknown.getMessage().contains("m, n"), unknown.getMessage());
        }
        gateway.mode(RoutingMode.RANDOM);
        assertEquals(RoutingMode.RANDOM, gateway.router("m").mode());
        assertEquals(RoutingMode.RANDOM, gateway.router("n").mode());
    }

    @Test
    void everyModelIsWarmedUp() throws Exception {
        start(
                config(worker(first, "a", ""), worker(second, "b", ",model=n"))
                        .set(GatewaySettings.WARM_UP, Duration.ofMillis(600)));
        assertEquals(0, first.calls.size() + second.calls.size());
        assertEquals(200, complete("n").statusCode());
    }

    @Test
    void aTokenizerThatIsNotThereNamesItsFolder(@TempDir Path folder) {
        final Path missing = folder.resolve("missing");
        final GatewayException refused =
                assertThrows(
                        GatewayException.class,
                        () ->
                                GatewayServer.start(
                                        config().set(
                                                        GatewaySettings.MODELS,
                                                        List.of(
                                                                new ModelConfig.Builder()
                                                                        .name("n")
                                                                        .set(
                                                                                GatewaySettings
                                                                                        .TOKENIZER,
                                                                                missing)
                                                                        .build()))
                                                .build()));
        assertTrue(refused.getMessage().contains(missing.toString()), refused.getMessage());
    }

    @Test
    void indexesThatDoNotFitIntoTheMachineTogetherAreRefused() {
        final ModelConfig[] nine = new ModelConfig[9];
        Arrays.setAll(nine, i -> ModelConfig.parse("name=n" + i));
        final GatewayConfig.Builder ten =
                Gateways.config().set(GatewaySettings.MODELS, List.of(nine));
        final GatewayConfig config = ten.set(RouterSettings.INDEX_BYTES, 1L << 30).build();
        IndexMemory.check(config, 10.0 * (1L << 30));
        IndexMemory.check(config, 0); // not known
        final GatewayException refused =
                assertThrows(
                        GatewayException.class,
                        () -> IndexMemory.check(config, 10.0 * (1L << 30) - 1));
        for (String part :
                List.of(
                        "10 models",
                        Long.toString(10L << 30),
                        Long.toString((10L << 30) - 1),
                        "index-memory-share",
                        "index-bytes")) {
            assertTrue(refused.getMessage().contains(part), refused.getMessage());
        }
        IndexMemory.check(Gateways.config().set(RouterSettings.INDEX_BYTES, 1L << 30).build(), 1);
    }
}
