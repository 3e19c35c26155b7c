package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.ModelConfig;
import io.kvasir.gateway.config.WorkerConfig;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.router.Worker;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.sim.SimEngine;
import io.kvasir.sim.config.HandoffConfig;
import io.kvasir.sim.config.SimConfig;
import io.kvasir.sim.config.SimHandoff;
import io.kvasir.sim.config.SimRole;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.FreePorts;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

import java.net.http.HttpResponse;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;

/** Two models in front of simulated engines, which have block pools and events of their own. */
class SeveralModelsSimTest {
    private static final int SAME_SEED = 7;

    private final List<SimEngine> engines = new ArrayList<>();
    private GatewayServer gateway;

    @AfterEach
    void stop() {
        if (gateway != null) {
            gateway.close();
        }
        engines.forEach(SimEngine::close);
    }

    private WorkerConfig worker(String model, String name, SimConfig.Builder config, String keys) {
        final SimEngine engine = SimEngine.start(config.model(model).blocks(512).build());
        engines.add(engine);
        return WorkerConfig.parse(
                engine.url()
                        + ",name="
                        + name
                        + ",model="
                        + model
                        + ",events="
                        + engine.eventsEndpoint(0)
                        + ",replay="
                        + engine.replayEndpoint(0)
                        + keys);
    }

    private WorkerConfig worker(String model, String name) {
        return worker(model, name, SimConfig.builder().speedUp(50), "");
    }

    private WorkerConfig worker(String model, String name, SimRole role) {
        final int ports = FreePorts.run(1);
        return worker(
                model,
                name,
                SimConfig.builder()
                        .speedUp(50)
                        .handoff(HandoffConfig.of(role, SimHandoff.VLLM).withSidePort(ports)),
                ",role=" + (role == SimRole.PREFILL ? "prefill" : "decode"));
    }

    private static GatewayConfig.Builder config(WorkerConfig... workers) {
        return Gateways.config(workers)
                .set(GatewaySettings.MODELS, List.of(ModelConfig.parse("name=n")))
                .set(RouterSettings.HASH_SEED, 1337L); // the same hashes in all indexes
    }

    private HttpResponse<String> complete(String model, int... prompt) throws Exception {
        final HttpResponse<String> answer =
                Gateways.post(
                        gateway,
                        "/v1/completions",
                        "{\"model\":\""
                                + model
                                + "\",\"max_tokens\":2,\"prompt\":"
                                + Arrays.toString(prompt)
                                + "}");
        assertEquals(200, answer.statusCode(), answer.body());
        return answer;
    }

    private static int[] prompt(int tokens) {
        return new Random(SAME_SEED).ints(tokens, 32, 127).toArray();
    }

    private JsonNode newest() throws Exception {
        return GatewayHttpTest.json(Gateways.get(gateway, "/debug/decisions?limit=1"))
                .at("/decisions/0");
    }

    private void awaitBlocks(String model, long least) throws InterruptedException {
        final Worker worker = gateway.router(model).workers().getFirst();
        Eventually.holds("blocks of " + model, () -> worker.indexedBlocks() >= least);
    }

    @Test
    void aPromptThatOneModelHoldsIsNotCachedForTheOther() throws Exception {
        gateway = Gateways.started(config(worker("m", "a"), worker("n", "b")));
        final int[] prompt = prompt(64);
        complete("m", prompt);
        awaitBlocks("m", 4);
        assertEquals(0, gateway.router("n").workers().getFirst().indexedBlocks());
        complete("n", prompt);
        assertEquals("b", newest().path("worker").asText());
        assertEquals(0, newest().path("overlap_blocks").asInt(), newest().toPrettyString());
        assertEquals(0, newest().path("engine_cached_tokens").asInt());
        awaitBlocks("n", 4);
        for (String model : List.of("m", "n")) {
            complete(model, prompt);
            assertTrue(newest().path("overlap_blocks").asInt() > 0, newest().toPrettyString());
            assertEquals(
                    newest().path("engine_cached_tokens").asInt(),
                    newest().path("predicted_cached_tokens").asInt(),
                    newest().toPrettyString());
        }
    }

    @Test
    void whatIsPredictedOfOneModelIsNotOfTheOther() throws Exception {
        gateway =
                Gateways.started(
                        config(
                                        WorkerConfig.parse(engine("m").url() + ",name=a"),
                                        WorkerConfig.parse(engine("n").url() + ",name=b,model=n"))
                                .set(RouterSettings.APPROXIMATE, true));
        final int[] prompt = prompt(64);
        complete("m", prompt);
        complete("m", prompt);
        Eventually.holds(
                "the first model's is predicted",
                () -> {
                    try {
                        complete("m", prompt);
                        return newest().path("overlap_blocks").asInt() > 0;
                    } catch (Exception e) {
                        throw new IllegalStateException(e);
                    }
                });
        complete("n", prompt);
        assertEquals(0, newest().path("overlap_blocks").asInt(), newest().toPrettyString());
    }

    private SimEngine engine(String model) {
        final SimEngine engine =
                SimEngine.start(SimConfig.builder().model(model).blocks(512).speedUp(50).build());
        engines.add(engine);
        return engine;
    }

    @Test
    void eachModelSplitsRequestsBetweenPrefillAndDecodeWorkersOfItsOwn() throws Exception {
        gateway =
                Gateways.started(
                        config(
                                worker("m", "pm", SimRole.PREFILL),
                                worker("m", "dm", SimRole.DECODE),
                                worker("n", "pn", SimRole.PREFILL),
                                worker("n", "dn", SimRole.DECODE)));
        for (int i = 0; i < 10; i++) {
            final String model = i % 2 == 0 ? "m" : "n";
            complete(model, prompt(64 + i));
            final JsonNode legs =
                    GatewayHttpTest.json(Gateways.get(gateway, "/debug/decisions?limit=2"))
                            .path("decisions");
            assertEquals("d" + model, legs.at("/0/worker").asText(), legs.toPrettyString());
            assertEquals("decode", legs.at("/0/leg").asText());
            assertEquals("p" + model, legs.at("/1/worker").asText());
            assertEquals("prefill", legs.at("/1/leg").asText());
            assertEquals(1, legs.at("/1/candidates").size(), "no other model's worker is one");
        }
    }
}
