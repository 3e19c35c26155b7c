package io.kvasir.sim;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.sim.config.KvBytes;
import io.kvasir.sim.config.PullStage;
import io.kvasir.sim.config.SimConfig;
import io.kvasir.sim.config.SimHandoff;
import io.kvasir.sim.config.SimRole;
import io.kvasir.sim.config.VirtualClock;
import io.kvasir.sim.testing.Http;
import io.kvasir.sim.testing.Pair;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;

import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

@Execution(ExecutionMode.CONCURRENT) // each waits for its engines
class KvBytesTest {
    private static final int[] PROMPT = Pair.tokens(100, 22);
    private static final KvBytes BYTES = new KvBytes(4, 16, false);

    private static Pair pair(SimHandoff protocol) {
        return Pair.of(protocol, h -> h.withBytes(BYTES).withPatience(Duration.ofMinutes(1)));
    }

    private static SimConfig.Builder config(SimRole role, SimHandoff protocol) {
        return Pair.config(role, protocol, h -> h.withBytes(BYTES));
    }

    private static JsonNode params(Pair pair, int[] prompt) {
        return pair.vllmPrefill(prompt).get("kv_transfer_params");
    }

    private static String text(HttpResponse<String> answer) {
        assertEquals(200, answer.statusCode(), answer.body());
        return Pair.text(Http.tree(answer.body()));
    }

    @Test
    void bytesArriveAndTheTextIsThatOfOneEngine() {
        try (Pair pair = pair(SimHandoff.VLLM)) {
            for (int length : new int[] {1, 3, 4, 5, 8, 22, 41}) {
                final int[] prompt = Pair.tokens(1000 * length, length);
                assertEquals(
                        Pair.aggregated(prompt, 12),
                        text(pair.vllmDecode(prompt, 12, params(pair, prompt))));
            }
            assertEquals(7, pair.decode().handoffs(0).pulls());
            assertEquals(0, pair.decode().handoffs(0).stalePulls());
        }
    }

    @Test
    void bytesOfAnAnswerGoOnWithTheNextTurn() {
        try (Pair pair = pair(SimHandoff.VLLM)) {
            int[] prompt = PROMPT;
            for (int turn = 0; turn < 3; turn++) {
                final HttpResponse<String> answer =
                        pair.vllmDecode(prompt, 7, params(pair, prompt));
                final String expected = Pair.aggregated(prompt, 7);
                assertEquals(expected, text(answer));
                final int[] output = Http.outputIds(Http.tree(answer.body()));
                final int[] next = java.util.Arrays.copyOf(prompt, prompt.length + output.length);
                System.arraycopy(output, 0, next, prompt.length, output.length);
                prompt = next;
            }
            assertEquals(0, pair.decode().handoffs(0).failedPulls());
        }
    }

    @Test
    void roomsOfSeveralRanksFindTheirBytes() {
        try (Pair pair =
                new Pair(
                        SimEngine.start(
                                config(SimRole.PREFILL, SimHandoff.SGLANG)
                                        .dataParallelSize(3)
                                        .build()),
                        SimEngine.start(
                                config(SimRole.DECODE, SimHandoff.SGLANG)
                                        .dataParallelSize(2)
                                        .build()))) {
            final String whole = Pair.aggregated(PROMPT, 12);
            for (int room = 0; room < 6; room++) {
                final var prefill = pair.inRoom(pair.prefill(), PROMPT, 12, room);
                assertEquals(whole, text(pair.inRoom(pair.decode(), PROMPT, 12, room).join()));
                assertEquals(200, prefill.join().statusCode());
            }
        }
    }

    @Test
    void aWrongByteFailsTheDecodeBeforeItGenerates() {
        try (Pair pair = pair(SimHandoff.VLLM)) {
            new Http(pair.prefill()).post("/sim/faults", "{\"handoff\":\"spoils_bytes\"}");
            final HttpResponse<String> answer = pair.vllmDecode(PROMPT, 12, params(pair, PROMPT));
            assertEquals(500, answer.statusCode());
            assertEquals(1, pair.decode().handoffs(0).spoiledPulls());
            assertEquals(1, pair.decode().handoffs(0).failedPulls());
            assertEquals(64, pair.decode().state(0).freeBlocks());
            assertEquals(0, pair.decode().state(0).cachedBlocks(), "nothing wrong is kept");
            assertEquals(0, pair.prefill().handoffs(0).heldPrefills());
            assertTrue(
                    new Http(pair.decode())
                            .get("/metrics")
                            .contains("kvasir_sim_spoiled_pulls_total{"));
        }
    }

    @Test
    void blocksThatAreUsedAnewInTheMiddleOfAPullAreNoticed() throws InterruptedException {
        final VirtualClock clock = new VirtualClock();
        final SimConfig decodes =
                Pair.config(
                                SimRole.DECODE,
                                SimHandoff.VLLM,
                                h -> h.withBytes(BYTES).withPatience(Duration.ofDays(2)))
                        .build();
        final SimConfig prefills = config(SimRole.PREFILL, SimHandoff.VLLM).blocks(8).build();
        try (Pair pair = new Pair(SimEngine.start(prefills), SimEngine.start(decodes, clock))) {
            final JsonNode params = params(pair, PROMPT);
            pair.decode().faults().stallPulls(PullStage.DURING, Duration.ofDays(1), 1);
            final CompletableFuture<HttpResponse<String>> answer =
                    pair.vllmDecodeAsync(PROMPT, 3, params);
            // an offer that is here makes the pull due in a day and not in two
            Eventually.holds(() -> pair.decode().handoffs(0).receiving() == 1);
            Eventually.holds(() -> pair.decode().moving(0) == 1);
            pair.prefill().notifyFreed(params.get("remote_request_id").textValue());
            new Http(pair.prefill()).complete(Pair.tokens(5000, 30), 1);
            clock.advance(TimeUnit.DAYS.toNanos(1) + TimeUnit.SECONDS.toNanos(1));
            assertEquals(500, answer.join().statusCode());
            assertEquals(1, pair.decode().handoffs(0).spoiledPulls());
        }
    }

    @Test
    void aClientThatGoesAwayLeavesBlocksThatCanBeUsedAtOnce() {
        try (Pair pair = pair(SimHandoff.VLLM)) {
            for (int i = 0; i < 5; i++) {
                final int[] prompt = Pair.tokens(1000 * i, 22);
                pair.decode().faults().stallPulls(PullStage.DURING, Duration.ofDays(1), 1);
                final var answer = pair.vllmDecodeAsync(prompt, 3, params(pair, prompt));
                Eventually.holds(() -> pair.decode().handoffs(0).receiving() == 1);
                answer.cancel(true);
                Eventually.holds(() -> pair.decode().state(0).freeBlocks() == 64);
                assertEquals(
                        Pair.aggregated(prompt, 12),
                        text(pair.vllmDecode(prompt, 12, params(pair, prompt))));
            }
        }
    }

    @Test
    void aClientThatLeavesAPrefillInMidStepLeavesBlocksWithTheirBytes()
            throws InterruptedException {
        final VirtualClock clock = new VirtualClock();
        try (Pair pair =
                new Pair(
                        SimEngine.start(config(SimRole.PREFILL, SimHandoff.VLLM).build(), clock),
                        SimEngine.start(config(SimRole.DECODE, SimHandoff.VLLM).build()))) {
            final var left =
                    new Http(pair.prefill()).sendAsync("/v1/completions", Http.body(PROMPT, 1, ""));
            Eventually.holds(() -> pair.prefill().state(0).running() == 1);
            left.cancel(true);
            Eventually.holds(() -> pair.prefill().state(0).aborted() == 1);
            final CompletableFuture<JsonNode> prefill =
                    CompletableFuture.supplyAsync(() -> pair.vllmPrefill(PROMPT));
            Eventually.holds(() -> pair.prefill().state(0).waiting() == 1);
            clock.advance(TimeUnit.SECONDS.toNanos(1));
            assertEquals(
                    20, prefill.join().at("/usage/prompt_tokens_details/cached_tokens").intValue());
            assertEquals(
                    Pair.aggregated(PROMPT, 12),
                    text(pair.vllmDecode(PROMPT, 12, prefill.join().get("kv_transfer_params"))));
        }
    }

    @Test
    void anEngineWithoutBytesOrWithOthersCannotBePulledFrom() {
        for (KvBytes other : new KvBytes[] {KvBytes.NONE, KvBytes.SMALL}) {
            try (Pair pair =
                    new Pair(
                            SimEngine.start(
                                    Pair.config(
                                                    SimRole.PREFILL,
                                                    SimHandoff.VLLM,
                                                    h -> h.withBytes(other))
                                            .build()),
                            SimEngine.start(
                                    Pair.config(
                                                    SimRole.DECODE,
                                                    SimHandoff.VLLM,
                                                    h ->
                                                            h.withBytes(BYTES)
                                                                    .withPatience(
                                                                            Duration.ofMillis(200)))
                                            .build()))) {
                assertEquals(500, pair.vllmDecode(PROMPT, 3, params(pair, PROMPT)).statusCode());
                assertEquals(64, pair.decode().state(0).freeBlocks());
            }
        }
    }

    @Test
    void rowsAreWholeNumbers() {
        assertThrows(IllegalArgumentException.class, () -> new KvBytes(1, 12, false));
        assertThrows(IllegalArgumentException.class, () -> new KvBytes(-1, 8, false));
        assertThrows(IllegalArgumentException.class, () -> new KvBytes(1, 0, false));
    }
}
