package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.ModelConfig;
import io.kvasir.gateway.config.WorkerConfig;
import io.kvasir.gateway.openai.Json;
import io.kvasir.gateway.testing.FakeEngine;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.router.settings.LoraMode;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;

/** Adapters of workers, as they list them, and where requests for one go. */
class AdaptersHttpTest {
    private static final String ANSWER =
            "{\"choices\":[{\"text\":\"ab\"}],\"usage\":{\"prompt_tokens\":1}}";

    private final List<FakeEngine> engines = new ArrayList<>();
    private GatewayServer gateway;

    @AfterEach
    void stop() {
        if (gateway != null) {
            gateway.close();
        }
        engines.forEach(FakeEngine::close);
    }

    private FakeEngine engine(String... adapters) {
        final FakeEngine engine = new FakeEngine(call -> call.json(200, ANSWER));
        engines.add(engine);
        list(engine, adapters);
        return engine;
    }

    /** As vLLM and SGLang list them: the base model has no parent. */
    private static void list(FakeEngine engine, String... adapters) {
        final ObjectNode page = Json.MAPPER.createObjectNode().put("object", "list");
        final ArrayNode data = page.putArray("data");
        data.addObject().put("id", "m").put("root", "/models/m").putNull("parent");
        for (String adapter : adapters) {
            data.addObject().put("id", adapter).put("root", "/loras/x").put("parent", "m");
        }
        final String text = page.toString();
        engine.models = call -> call.json(200, text);
    }

    private static WorkerConfig worker(FakeEngine engine, String name, String keys) {
        return WorkerConfig.parse(engine.url() + ",name=" + name + keys);
    }

    private GatewayConfig.Builder config(LoraMode mode, WorkerConfig... workers) {
        return Gateways.config(workers)
                .set(RouterSettings.LORA_MODE, mode)
                .set(GatewaySettings.LORA_INTERVAL, Duration.ofMillis(100));
    }

    private void start(GatewayConfig.Builder config) throws Exception {
        gateway = Gateways.started(config);
    }

    private HttpResponse<String> complete(String model, String... headers) throws Exception {
        return Gateways.post(
                gateway,
                "/v1/completions",
                "{\"model\":\"" + model + "\",\"prompt\":[1,2,3]}",
                headers);
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

    private JsonNode page(String path) throws Exception {
        return GatewayHttpTest.json(Gateways.admin(gateway, path));
    }

    private JsonNode worker(String name) throws Exception {
        return GatewayHttpTest.json(Gateways.workers(gateway, "GET", "/" + name, ""));
    }

    private void awaitListed(String name) throws InterruptedException {
        Eventually.holds(
                name + " has listed its adapters",
                () -> {
                    try {
                        return worker(name).path("lists_adapters").asBoolean();
                    } catch (Exception e) {
                        throw new IllegalStateException(e);
                    }
                });
    }

    @Test
    void aRequestForAnAdapterGoesToTheWorkersThatListIt() throws Exception {
        final FakeEngine with = engine("a", "b");
        final FakeEngine without = engine("b");
        start(config(LoraMode.REQUIRED, worker(with, "with", ""), worker(without, "without", "")));
        awaitStatus("a", 200);
        awaitListed("without");
        for (int i = 0; i < 10; i++) {
            assertEquals(200, complete("a").statusCode());
        }
        assertEquals(0, without.calls.size());
        assertEquals("a", worker("with").path("adapters").path(0).asText());
        for (JsonNode candidate : page("/debug/decisions").at("/decisions/0/candidates")) {
            assertEquals(
                    candidate.path("worker").asText().equals("with") ? "null" : "no_adapter",
                    candidate.path("excluded").asText());
        }
        assertEquals(200, complete("m").statusCode(), "the base model is on all");
        final JsonNode models = GatewayHttpTest.json(Gateways.get(gateway, "/v1/models"));
        assertEquals(List.of("m", "a", "b"), models.findValuesAsText("id"));
    }

    @Test
    void anAdapterIsNamedBehindItsModelToo() throws Exception {
        final FakeEngine with = engine("a");
        final FakeEngine without = engine();
        start(config(LoraMode.REQUIRED, worker(with, "with", ""), worker(without, "without", "")));
        awaitStatus("a", 200);
        awaitListed("without");
        for (int i = 0; i < 10; i++) {
            assertEquals(200, complete("m:a").statusCode());
        }
        assertEquals(0, without.calls.size());
        assertTrue(with.calls.getLast().text().contains("\"m:a\""), "as the client wrote it");
        for (String unknown : List.of("m:b", "m:", "x:a", "m:m", "m:a:a", ":a")) {
            assertEquals(404, complete(unknown).statusCode(), unknown);
        }
    }

    @Test
    void adaptersThatAreLoadedAndUnloadedMeanwhileComeAndGo() throws Exception {
        final FakeEngine engine = engine();
        start(config(LoraMode.REQUIRED, worker(engine, "w", "")));
        assertEquals(404, complete("late").statusCode());
        list(engine, "late");
        awaitStatus("late", 200);
        list(engine);
        awaitStatus("late", 404);
    }

    @Test
    void anAdapterOnNoWorkerIsRefusedByNameAndCountWhenAllHaveSaidWhatTheyHave() throws Exception {
        final FakeEngine first = engine("a");
        final FakeEngine second = engine();
        second.models = call -> call.json(500, "{}");
        start(
                config(LoraMode.REQUIRED, worker(first, "first", ""), worker(second, "second", ""))
                        .set(GatewaySettings.LORA, List.of("configured")));
        awaitListed("first");
        final HttpResponse<String> unknown = complete("configured");
        assertEquals(503, unknown.statusCode(), "the second may have it");
        assertTrue(unknown.body().contains("no_adapter"), unknown.body());
        list(second);
        awaitStatus("configured", 404);
        final JsonNode error = GatewayHttpTest.json(complete("configured")).path("error");
        assertEquals("model_not_found", error.path("code").asText());
        assertEquals(
                "no worker can serve the adapter 'configured': of 2 workers looked at none has it",
                error.path("message").asText());
    }

    @Test
    void anAdapterWhoseWorkersAreDownIsThereLater() throws Exception {
        final FakeEngine with = engine("a");
        start(config(LoraMode.REQUIRED, worker(with, "with", ""), worker(engine(), "other", "")));
        awaitStatus("a", 200);
        Gateways.workers(gateway, "POST", "/with/drain", "");
        final HttpResponse<String> refused = complete("a");
        assertEquals(503, refused.statusCode());
        assertTrue(refused.body().contains("1 have it, none of which"), refused.body());
        Gateways.workers(gateway, "POST", "/with/resume", "");
        assertEquals(200, complete("a").statusCode());
    }

    @Test
    void bothLegsOfASplitRequestGoToWorkersThatHaveIt() throws Exception {
        final FakeEngine[] all = {engine("a"), engine(), engine("a"), engine()};
        start(
                config(
                        LoraMode.REQUIRED,
                        worker(all[0], "p-with", ",role=prefill"),
                        worker(all[1], "p-without", ",role=prefill"),
                        worker(all[2], "d-with", ",role=decode"),
                        worker(all[3], "d-without", ",role=decode")));
        awaitStatus("a", 200);
        awaitListed("p-with");
        awaitListed("p-without");
        awaitListed("d-without");
        for (int i = 0; i < 8; i++) {
            assertEquals(200, complete("a").statusCode());
        }
        assertTrue(all[0].calls.size() > 0, "it was split");
        assertEquals(0, all[1].calls.size());
        assertEquals(0, all[3].calls.size());
    }

    @ParameterizedTest
    @ValueSource(strings = {"[]", "{}", "{\"data\":7}", "nonsense", ""})
    void aListThatCannotBeReadChangesNothing(String bad) throws Exception {
        final FakeEngine engine = engine("a");
        start(config(LoraMode.REQUIRED, worker(engine, "w", ""), worker(engine(), "other", "")));
        awaitStatus("a", 200);
        final AtomicInteger asked = new AtomicInteger();
        engine.models =
                call -> {
                    asked.incrementAndGet();
                    call.json(200, bad);
                };
        Eventually.holds("it was asked again", () -> asked.get() > 2);
        assertEquals(200, complete("a").statusCode());
    }

    @Test
    void moreAdaptersThanMayBeAreNotTaken() throws Exception {
        final FakeEngine engine = engine("a");
        start(config(LoraMode.REQUIRED, worker(engine, "w", "")));
        awaitStatus("a", 200);
        list(engine, IntStream.range(0, 5_000).mapToObj(i -> "x" + i).toArray(String[]::new));
        final AtomicInteger asked = new AtomicInteger();
        final FakeEngine.Script many = engine.models;
        engine.models =
                call -> {
                    asked.incrementAndGet();
                    many.answer(call);
                };
        Eventually.holds("it was asked again", () -> asked.get() > 2);
        assertEquals(200, complete("a").statusCode());
        assertEquals(404, complete("x1").statusCode());
    }

    @Test
    void offLooksAtNoAdaptersThatAreListed() throws Exception {
        final FakeEngine engine = engine("a");
        start(
                config(LoraMode.OFF, worker(engine, "w", ",lora=b"))
                        .set(GatewaySettings.LORA, List.of("c")));
        assertEquals(200, complete("c").statusCode());
        assertEquals(404, complete("a").statusCode());
    }

    @Test
    void aModeThatChangesAsksWorkersFromThenOnAndForgetsWhatTheyListedWhenItIsOff()
            throws Exception {
        final FakeEngine with = engine("a");
        final FakeEngine without = engine();
        start(
                config(
                        LoraMode.OFF,
                        worker(with, "with", ",lora=b"),
                        worker(without, "without", "")));
        assertEquals(404, complete("a").statusCode(), "no worker was asked");
        for (int round = 0; round < 2; round++) {
            change("required");
            awaitStatus("a", 200);
            awaitListed("without");
            final int before = without.calls.size();
            for (int i = 0; i < 10; i++) {
                assertEquals(200, complete("a").statusCode());
            }
            assertEquals(before, without.calls.size());
            change("off");
            awaitStatus("a", 404);
            assertFalse(worker("with").path("lists_adapters").asBoolean());
            assertEquals("[\"b\"]", worker("with").path("adapters").toString());
        }
    }

    private void change(String mode) throws Exception {
        final HttpResponse<String> changed =
                Gateways.send(
                        Gateways.adminRequest(gateway, "/settings")
                                .method(
                                        "PATCH",
                                        HttpRequest.BodyPublishers.ofString(
                                                "{\"settings\":{\"lora-mode\":\""
                                                        + mode
                                                        + "\"}}")));
        assertEquals(200, changed.statusCode(), changed.body());
    }

    @Test
    void preferredGoesToOthersWhereNoneHasIt() throws Exception {
        final FakeEngine with = engine("a");
        final FakeEngine other = engine();
        start(
                config(LoraMode.PREFERRED, worker(with, "with", ""), worker(other, "other", ""))
                        .set(GatewaySettings.LORA, List.of("c")));
        awaitStatus("a", 200);
        final int before = other.calls.size();
        for (int i = 0; i < 10; i++) {
            assertEquals(200, complete("a").statusCode());
        }
        assertEquals(before, other.calls.size());
        assertEquals(200, complete("c").statusCode(), "on none of them");
    }

    @Test
    void whatIsConfiguredCountsBesideWhatIsListed() throws Exception {
        final FakeEngine engine = engine("b");
        start(
                config(
                        LoraMode.REQUIRED,
                        worker(engine, "w", ",lora=a;c,lora-ids=a:7,taints=spot,labels=zone:x"),
                        worker(engine(), "other", "")));
        awaitListed("w");
        final JsonNode shown = worker("w");
        assertEquals("[\"a\",\"b\",\"c\"]", shown.path("adapters").toString());
        assertEquals("[\"spot\"]", shown.path("taints").toString());
        assertEquals("{\"a\":7}", shown.path("lora_ids").toString(), "as configured");
        final HttpResponse<String> said =
                Gateways.workers(gateway, "POST", "/w/lora-ids", "{\"b\":9,\"c\":\"10\"}");
        assertEquals(200, said.statusCode());
        assertEquals(
                "{\"a\":7,\"b\":9,\"c\":10}",
                Json.MAPPER.readTree(said.body()).path("lora_ids").toString());
        for (String bad : List.of("{\"b\":0}", "{\"b\":\"x\"}", "{\"a\":1,\"b\":1}", "[]", "7")) {
            assertEquals(
                    400, Gateways.workers(gateway, "POST", "/w/lora-ids", bad).statusCode(), bad);
        }
        final HttpResponse<String> taken =
                Gateways.workers(gateway, "POST", "/w/lora-ids", "{\"b\":7}");
        assertEquals(400, taken.statusCode());
        assertTrue(taken.body().contains("'b' cannot have the number 7"), taken.body());
        assertTrue(taken.body().contains("'a'"), taken.body());
        assertEquals(
                200, Gateways.workers(gateway, "POST", "/w/lora-ids", "{\"a\":11}").statusCode());
        assertEquals("{\"a\":11}", worker("w").path("lora_ids").toString(), "loaded once more");
        assertEquals(404, Gateways.workers(gateway, "POST", "/z/lora-ids", "{}").statusCode());
        assertEquals(405, Gateways.workers(gateway, "GET", "/w/lora-ids", "").statusCode());
        assertEquals(200, complete("a", "x-kvasir-tolerate", "spot").statusCode());
        assertEquals(503, complete("a").statusCode(), "its only worker is tainted");
    }

    @Test
    void anAdapterOfTheSecondModelIsFoundByItsWorkers() throws Exception {
        final FakeEngine first = engine("m-fr");
        final FakeEngine second = engine("n-fr");
        start(
                config(LoraMode.REQUIRED, worker(first, "a", ""), worker(second, "b", ",model=n"))
                        .set(GatewaySettings.MODELS, List.of(ModelConfig.parse("name=n"))));
        awaitStatus("n-fr", 200);
        assertEquals(1, second.calls.size());
        assertEquals(0, first.calls.size());
        assertFalse(complete("o-fr").statusCode() == 200);
    }
}
