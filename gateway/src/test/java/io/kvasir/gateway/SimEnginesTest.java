package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.gateway.config.WorkerConfig;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.gateway.testing.MetricsPage;
import io.kvasir.router.Worker;
import io.kvasir.sim.SimEngine;
import io.kvasir.sim.config.SimConfig;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.FreePorts;
import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

import java.net.http.HttpResponse;
import java.util.Arrays;
import java.util.Random;
import java.util.concurrent.CompletableFuture;

/**
 * The gateway in front of simulated engines, which have block pools, hashes and events of their
 * own.
 */
class SimEnginesTest {
    private final SimEngine one = engine(1);
    private final SimEngine two = engine(1);
    private GatewayServer gateway;

    private static SimEngine engine(int ranks) {
        final SimConfig.Builder config =
                SimConfig.builder().model("m").blocks(512).dataParallelSize(ranks).speedUp(50);
        if (ranks > 1) {
            final int ports = FreePorts.run(2 * ranks);
            config.eventsPort(ports).replayPort(ports + ranks);
        }
        return SimEngine.start(config.build());
    }

    private static WorkerConfig worker(String name, SimEngine engine, int ranks) {
        return WorkerConfig.parse(
                engine.url()
                        + ",name="
                        + name
                        + ",events="
                        + engine.eventsEndpoint(0)
                        + ",replay="
                        + engine.replayEndpoint(0)
                        + ",dp="
                        + ranks);
    }

    private void start(WorkerConfig... workers) throws Exception {
        gateway = GatewayServer.start(Gateways.config(workers).build());
        Gateways.awaitContact(gateway);
    }

    @AfterEach
    void stop() {
        gateway.close();
        one.close();
        two.close();
    }

    @Test
    void aPrefixIsSentWhereItIsAndThePredictionIsTheEnginesOwnHit() throws Exception {
        start(worker("one", one, 1), worker("two", two, 1));
        final Random random = new Random(Seeds.next("SimEnginesTest"));
        final int[][] prefixes = new int[4][];
        for (int p = 0; p < prefixes.length; p++) {
            prefixes[p] = random.ints(16 * (2 + p) + 3, 32, 127).toArray();
        }
        int hits = 0;
        for (int i = 0; i < 60; i++) {
            final int[] prefix = prefixes[random.nextInt(prefixes.length)];
            final HttpResponse<String> answer =
                    complete(
                            prefix,
                            random.ints(1 + random.nextInt(40), 32, 127).toArray(),
                            i % 2 == 0);
            assertEquals(200, answer.statusCode(), answer.body());
            final JsonNode decision =
                    GatewayHttpTest.json(Gateways.get(gateway, "/debug/decisions?limit=1"))
                            .at("/decisions/0");
            assertEquals("ok", decision.get("outcome").textValue(), decision.toPrettyString());
            assertEquals(
                    decision.get("engine_cached_tokens").intValue(),
                    decision.get("predicted_cached_tokens").intValue(),
                    decision.toPrettyString());
            hits += decision.get("predicted_cached_tokens").intValue() > 0 ? 1 : 0;
            awaitEvents(answer);
        }
        assertTrue(hits >= 60 - 2 * prefixes.length, "hits: " + hits);
        Eventually.holds( // asked once: a message that comes later is applied a moment after
                "all is known of it",
                () ->
                        MetricsPage.of(gateway)
                                        .sum(
                                                "kvasir_worker_index_state",
                                                "dp_rank",
                                                "0",
                                                "state",
                                                "exact",
                                                "worker",
                                                "one")
                                == 1);
        final String page = Gateways.get(gateway, "/metrics").body();
        assertTrue(!page.contains("result=\"over\"") && !page.contains("result=\"under\""), page);
        assertTrue(!page.contains("kvasir_prompt_token_mismatch_total{"), page);
    }

    @Test
    void aRankIsPinnedByTheEnginesHeader() throws Exception {
        try (SimEngine ranks = engine(2)) {
            start(worker("dp", ranks, 2));
            final int[] prefix = new Random(7).ints(70, 32, 127).toArray();
            final HttpResponse<String> first =
                    complete(prefix, new int[] {40}, false, "x-kvasir-worker", "dp/1");
            assertEquals("1", GatewayHttpTest.header(first, "x-kvasir-dp-rank"));
            final Worker rank = gateway.router().workers().get(1);
            Eventually.holds(
                    "rank 1 announced its blocks, and the request has ended",
                    () -> rank.indexedBlocks() >= 4 && rank.activeRequests() == 0);
            assertEquals(0, gateway.router().workers().get(0).indexedBlocks());
            final HttpResponse<String> second = complete(prefix, new int[] {41}, false);
            assertEquals("1", GatewayHttpTest.header(second, "x-kvasir-dp-rank"));
            assertEquals("4", GatewayHttpTest.header(second, "x-kvasir-overlap-blocks"));
        }
    }

    @Test
    void aRestartedEngineIsForgottenAndLearnedAgain() throws Exception {
        start(worker("one", one, 1));
        final int[] prefix = new Random(8).ints(64, 32, 127).toArray();
        awaitEvents(complete(prefix, new int[] {40}, true));
        one.faults().restart();
        final Worker worker = gateway.router().workers().getFirst();
        Eventually.holds(
                "the next life is known",
                () -> {
                    try {
                        complete(new int[] {1, 2, 3}, new int[40], true);
                        return worker.sourceStatus().restarts() > 0
                                && worker.indexedBlocks() == one.heldBlocks(0).size();
                    } catch (Exception e) {
                        throw new IllegalStateException(e);
                    }
                });
        final HttpResponse<String> answer = complete(prefix, new int[] {40}, true);
        assertEquals("0", GatewayHttpTest.header(answer, "x-kvasir-overlap-blocks"));
        assertNotEquals("-1", GatewayHttpTest.header(answer, "x-kvasir-event-sequence"));
    }

    /** The engine takes a second a step, so the whole answer takes ten minutes. */
    @Test
    void aPromptIsNoLoadAnyMoreOnceItIsComputedThoughItsAnswerIsNoStream() throws Exception {
        try (SimEngine slow =
                SimEngine.start(
                        SimConfig.builder()
                                .model("m")
                                .blocks(512)
                                .interTokenMillis(1_000)
                                .build())) {
            start(worker("slow", slow, 1));
            final CompletableFuture<?> answer =
                    Gateways.postAsync(
                            gateway,
                            "/v1/completions",
                            "{\"model\":\"m\",\"max_tokens\":600,\"ignore_eos\":true,\"prompt\":"
                                    + Arrays.toString(new int[40])
                                    + "}");
            final Worker worker = gateway.router().workers().getFirst();
            Eventually.holds("the prompt is computed", () -> slow.state(0).lastSequence() >= 0);
            Eventually.holds("it is no load", () -> worker.prefillTokens() == 0);
            assertEquals(1, worker.activeRequests());
            answer.cancel(true);
            Eventually.holds("the request has ended", () -> worker.activeRequests() == 0);
        }
    }

    private HttpResponse<String> complete(
            int[] prefix, int[] rest, boolean stream, String... headers) throws Exception {
        final StringBuilder prompt = new StringBuilder();
        for (int token : prefix) {
            prompt.append(token).append(',');
        }
        for (int i = 0; i < rest.length; i++) {
            prompt.append(rest[i]).append(i + 1 < rest.length ? "," : "");
        }
        return Gateways.post(
                gateway,
                "/v1/completions",
                "{\"model\":\"m\",\"prompt\":["
                        + prompt
                        + "],\"max_tokens\":4,\"stream\":"
                        + stream
                        + "}",
                headers);
    }

    /** Waits until the index has the events that the engine sent for a request. */
    private void awaitEvents(HttpResponse<String> answer) throws Exception {
        final String name = GatewayHttpTest.header(answer, "x-kvasir-worker");
        final Worker worker =
                gateway.router().workers().stream()
                        .filter(w -> w.name().equals(name))
                        .findFirst()
                        .orElseThrow();
        final SimEngine engine = name.equals("one") ? one : two;
        Eventually.holds(
                "events of " + name, () -> worker.indexedBlocks() == engine.heldBlocks(0).size());
    }
}
