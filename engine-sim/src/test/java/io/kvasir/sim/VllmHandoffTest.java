package io.kvasir.sim;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.sim.config.HandoffFault;
import io.kvasir.sim.config.PullStage;
import io.kvasir.sim.config.SimConfig;
import io.kvasir.sim.config.SimHandoff;
import io.kvasir.sim.config.SimRole;
import io.kvasir.sim.config.VirtualClock;
import io.kvasir.sim.state.HandoffState;
import io.kvasir.sim.testing.EventClient;
import io.kvasir.sim.testing.Http;
import io.kvasir.sim.testing.Pair;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;

import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.TimeUnit;

@Execution(ExecutionMode.CONCURRENT) // each waits for its engines
class VllmHandoffTest {
    private static final int[] PROMPT = Pair.tokens(100, 22);

    private static JsonNode params(JsonNode answer) {
        return answer.get("kv_transfer_params");
    }

    private static String ok(HttpResponse<String> answer) {
        assertEquals(200, answer.statusCode(), answer.body());
        return Pair.text(Http.tree(answer.body()));
    }

    @Test
    void aDecodeAfterARemotePrefillSaysWhatOneEngineSays() {
        try (Pair pair = Pair.of(SimHandoff.VLLM)) {
            final JsonNode prefilled = pair.vllmPrefill(PROMPT);
            assertEquals(1, pair.prefill().handoffs(0).heldPrefills());
            assertEquals(6, pair.prefill().handoffs(0).heldBlocks());
            assertEquals(58, pair.prefill().state(0).freeBlocks());

            final HttpResponse<String> answer = pair.vllmDecode(PROMPT, 12, params(prefilled));
            assertEquals(Pair.aggregated(PROMPT, 12), ok(answer));
            final JsonNode json = Http.tree(answer.body());
            assertEquals(21, Http.cachedTokens(json), "all but the last token");
            assertTrue(params(json).isNull());

            final HandoffState prefill = pair.prefill().handoffs(0);
            assertEquals(0, prefill.heldPrefills());
            assertEquals(1, prefill.freedByPull());
            assertEquals(0, prefill.lateNotifications());
            assertEquals(64, pair.prefill().state(0).freeBlocks());
            final HandoffState decode = pair.decode().handoffs(0);
            assertEquals(1, decode.pulls());
            assertEquals(0, decode.stalePulls());
            assertEquals(6, decode.transferredBlocks());
            assertEquals(6L * 4 * (128 << 10), decode.transferredBytes());
        }
    }

    @Test
    void chatsAreHandedOffAsCompletionsAre() {
        final String chat =
                "{\"messages\":[{\"role\":\"user\",\"content\":\"hello there\"}],\"max_tokens\":9,"
                        + "\"ignore_eos\":true,\"kv_transfer_params\":";
        try (Pair pair = Pair.of(SimHandoff.VLLM)) {
            final String path = "/v1/chat/completions";
            final JsonNode whole = new Http(pair.decode()).post(path, chat + "null}");
            assertEquals(1, whole.at("/choices").size());
            assertEquals(
                    0, pair.decode().handoffs(0).pulls(), "a decode engine serves by itself, too");
            new Http(pair.decode()).post("/reset_prefix_cache", "");
            final JsonNode prefilled =
                    new Http(pair.prefill())
                            .post(
                                    path,
                                    chat.replace("\"max_tokens\":9", "\"max_tokens\":1")
                                            + "{\"do_remote_decode\":true}}");
            final JsonNode decoded =
                    new Http(pair.decode()).post(path, chat + params(prefilled) + "}");
            assertEquals(whole.at("/choices"), decoded.at("/choices"));
            assertEquals(1, pair.decode().handoffs(0).pulls());
        }
    }

    @Test
    void receivedBlocksAreAnnouncedAndHitByTheNextTurn() {
        try (Pair pair = Pair.of(SimHandoff.VLLM);
                EventClient events = new EventClient(pair.decode(), 0)) {
            ok(pair.vllmDecode(PROMPT, 3, params(pair.vllmPrefill(PROMPT))));
            assertEquals(
                    pair.decode().heldBlocks(0),
                    EventClient.held(events.replay(pair.decode(), 0, 0)));
            assertEquals(20, new Http(pair.decode()).cachedTokens(PROMPT, 1));
            // the next turn pulls only what is new
            final int[] longer = Pair.tokens(100, 40);
            ok(pair.vllmDecode(longer, 3, params(pair.vllmPrefill(longer))));
            assertEquals(6 + 5, pair.decode().handoffs(0).transferredBlocks());
            assertEquals(0, pair.prefill().handoffs(0).heldPrefills());
        }
    }

    @Test
    void parametersThatWereUsedGiveAnotherTextAndAreCounted() {
        try (Pair pair = Pair.of(SimHandoff.VLLM)) {
            final JsonNode params = params(pair.vllmPrefill(PROMPT));
            final String right = ok(pair.vllmDecode(PROMPT, 12, params));
            new Http(pair.decode()).post("/reset_prefix_cache", "");
            assertNotEquals(right, ok(pair.vllmDecode(PROMPT, 12, params)));
            assertEquals(1, pair.decode().handoffs(0).stalePulls());
            assertEquals(1, pair.prefill().handoffs(0).lateNotifications());
            final String page = new Http(pair.decode()).get("/metrics");
            assertTrue(page.contains("kvasir_sim_stale_pulls_total{engine=\"0\""), page);
        }
    }

    @Test
    void parametersOfAnotherPromptOfOtherBlocksOrOfAnotherLifeAreStale() {
        try (Pair pair = Pair.of(SimHandoff.VLLM)) {
            final int[] other = Pair.tokens(500, 22);
            final String text = ok(pair.vllmDecode(other, 12, params(pair.vllmPrefill(PROMPT))));
            assertNotEquals(Pair.aggregated(other, 12), text);
            assertEquals(1, pair.decode().handoffs(0).stalePulls());

            final ObjectNode wrong = (ObjectNode) params(pair.vllmPrefill(other));
            wrong.putArray("remote_block_ids").addArray().add(1).add(2);
            ok(pair.vllmDecode(other, 12, wrong));
            assertEquals(2, pair.decode().handoffs(0).stalePulls());

            final JsonNode params = params(pair.vllmPrefill(PROMPT));
            final String life = pair.prefill().engineId(0);
            pair.prefill().faults().restart();
            assertNotEquals(life, pair.prefill().engineId(0));
            ok(pair.vllmDecode(PROMPT, 12, params));
            assertEquals(3, pair.decode().handoffs(0).stalePulls());
        }
    }

    @Test
    void aStrictDecodeRefusesStaleParametersWithAReason() {
        try (Pair pair = Pair.of(SimHandoff.VLLM, h -> h.withStrict(true))) {
            final JsonNode params = params(pair.vllmPrefill(PROMPT));
            ok(pair.vllmDecode(PROMPT, 12, params));
            final HttpResponse<String> again = pair.vllmDecode(PROMPT, 12, params);
            assertEquals(500, again.statusCode());
            assertTrue(again.body().contains("no prefill is held"), again.body());
            assertEquals(1, pair.decode().handoffs(0).failedPulls());
            assertEquals(64, pair.decode().state(0).freeBlocks());
        }
    }

    @Test
    void aNotificationFreesAPrefillOnce() {
        try (Pair pair = Pair.of(SimHandoff.VLLM)) {
            final String id = params(pair.vllmPrefill(PROMPT)).get("remote_request_id").textValue();
            assertTrue(pair.prefill().notifyFreed(id));
            assertFalse(pair.prefill().notifyFreed(id));
            assertEquals(64, pair.prefill().state(0).freeBlocks());
            assertEquals(1, pair.prefill().handoffs(0).freedByNotification());
            assertEquals(1, pair.prefill().handoffs(0).lateNotifications());
        }
    }

    @Test
    void aSidePortWithNobodyBehindFailsTheDecodeAndFreesItsBlocks() {
        try (Pair pair = Pair.of(SimHandoff.VLLM, h -> h.withPatience(Duration.ofMillis(50)))) {
            final JsonNode params = params(pair.vllmPrefill(PROMPT));
            new Http(pair.prefill()).post("/sim/faults", "{\"side_port\":\"closed\"}");
            final HttpResponse<String> answer = pair.vllmDecode(PROMPT, 12, params);
            assertEquals(500, answer.statusCode());
            assertEquals(
                    "Internal server error",
                    Http.tree(answer.body()).at("/error/message").textValue());
            assertEquals(64, pair.decode().state(0).freeBlocks());
            assertEquals(1, pair.prefill().handoffs(0).heldPrefills());
            new Http(pair.prefill()).post("/sim/faults", "{\"side_port\":\"open\"}");
            try (Pair later =
                    new Pair(
                            pair.prefill(),
                            SimEngine.start(
                                    Pair.config(SimRole.DECODE, SimHandoff.VLLM, h -> h)
                                            .build()))) {
                assertEquals(Pair.aggregated(PROMPT, 12), ok(later.vllmDecode(PROMPT, 12, params)));
            }
        }
    }

    @Test
    void aLeaseEndsInTimeAndLetsWaitingRequestsIn() throws InterruptedException {
        final VirtualClock clock = new VirtualClock();
        final SimConfig config =
                Pair.config(SimRole.PREFILL, SimHandoff.VLLM, h -> h)
                        .blocks(8)
                        .maxModelLength(32)
                        .build();
        try (SimEngine engine = SimEngine.start(config, clock)) {
            final Http http = new Http(engine);
            final CompletableFuture<HttpResponse<String>> held =
                    http.sendAsync(
                            "/v1/completions",
                            Http.body(
                                    PROMPT,
                                    1,
                                    ",\"kv_transfer_params\":{\"do_remote_decode\":true}"));
            Eventually.holds(() -> engine.state(0).running() == 1);
            while (engine.state(0).finished() == 0) {
                assertTrue(clock.advanceToNext());
            }
            final long heldSince = clock.nanoTime();
            held.join();
            final CompletableFuture<HttpResponse<String>> waits =
                    http.sendAsync("/v1/completions", Http.body(Pair.tokens(500, 20), 1, ""));
            Eventually.holds(() -> engine.state(0).waiting() == 1);
            clock.advance(TimeUnit.SECONDS.toNanos(30) - 1);
            assertEquals(1, engine.handoffs(0).heldPrefills());
            assertEquals(1, engine.state(0).waiting());
            clock.advance(1);
            Eventually.holds(() -> engine.handoffs(0).freedByLeaseEnd() == 1);
            while (engine.state(0).finished() < 2) {
                assertTrue(clock.advanceToNext());
            }
            assertEquals(
                    heldSince + TimeUnit.SECONDS.toNanos(30) + TimeUnit.MILLISECONDS.toNanos(2),
                    clock.nanoTime(),
                    "20 tokens after the lease");
            assertEquals(200, waits.join().statusCode());
            assertEquals(8, engine.state(0).freeBlocks());
        }
    }

    @Test
    void anAnswerThatEndsByItselfLeavesNothingToBePulled() {
        try (Pair pair = Pair.of(SimHandoff.VLLM)) {
            final String stop = Pair.aggregated(PROMPT, 1);
            final JsonNode answer =
                    new Http(pair.prefill())
                            .post(
                                    "/v1/completions",
                                    Http.body(
                                            PROMPT,
                                            1,
                                            ",\"kv_transfer_params\":{\"do_remote_decode\":true},"
                                                    + "\"stop\":[\""
                                                    + stop
                                                    + "\"]"));
            assertEquals("stop", answer.at("/choices/0/finish_reason").textValue());
            assertTrue(params(answer).isNull());
            assertEquals(64, pair.prefill().state(0).freeBlocks());
        }
    }

    @Test
    void prefillsGoWrongOnDemand() {
        try (Pair pair = Pair.of(SimHandoff.VLLM)) {
            final Http faults = new Http(pair.prefill());
            faults.post("/sim/faults", "{\"handoff\":\"answers_without_parameters\"}");
            assertTrue(params(pair.vllmPrefill(PROMPT)).isNull());
            assertEquals(1, pair.prefill().handoffs(0).heldPrefills());

            faults.post("/sim/faults", "{\"handoff\":\"answers_with_malformed_parameters\"}");
            final JsonNode malformed = params(pair.vllmPrefill(PROMPT));
            assertEquals(500, pair.vllmDecode(PROMPT, 3, malformed).statusCode());

            faults.post("/sim/faults", "{\"handoff\":\"lease_ends_early\"}");
            final JsonNode expired = params(pair.vllmPrefill(PROMPT));
            Eventually.holds(() -> pair.prefill().handoffs(0).freedByLeaseEnd() == 1);
            ok(pair.vllmDecode(PROMPT, 3, expired));
            assertEquals(1, pair.decode().handoffs(0).stalePulls());

            faults.post("/sim/faults", "{\"handoff\":\"dies_after_answer\"}");
            final JsonNode dead = params(pair.vllmPrefill(PROMPT));
            Eventually.holds(() -> pair.prefill().state(0).life() == 1);
            assertNotEquals(pair.prefill().engineId(0), dead.get("remote_engine_id").textValue());

            pair.prefill().faults().handoffs(HandoffFault.DIES_BEFORE_ANSWER, 1);
            assertThrows(AssertionError.class, () -> pair.vllmPrefill(PROMPT));
            assertEquals(2, pair.prefill().state(0).life());
            assertEquals(
                    400, faults.send("/sim/faults", "{\"handoff\":\"explodes\"}").statusCode());
        }
    }

    @Test
    void decodesStandStillWhereTheyAreToldTo() {
        try (Pair pair = Pair.of(SimHandoff.VLLM)) {
            for (PullStage stage : PullStage.values()) {
                final JsonNode params = params(pair.vllmPrefill(PROMPT));
                pair.decode().faults().stallPulls(stage, Duration.ofDays(1), 1);
                final CompletableFuture<HttpResponse<String>> answer =
                        pair.vllmDecodeAsync(PROMPT, 3, params);
                Eventually.holds(() -> pair.decode().handoffs(0).receiving() == 1);
                final int held = stage == PullStage.AFTER ? 0 : 1;
                Eventually.holds(() -> pair.prefill().handoffs(0).heldPrefills() == held);
                pair.decode().faults().restart();
                assertThrows(CompletionException.class, answer::join);
                assertEquals(64, pair.decode().state(0).freeBlocks());
                pair.prefill().notifyFreed(params.get("remote_request_id").textValue());
            }
        }
    }

    @Test
    void aPrefillThatDiesDuringThePullFailsTheDecode() throws InterruptedException {
        final VirtualClock clock = new VirtualClock();
        final SimConfig prefills = Pair.config(SimRole.PREFILL, SimHandoff.VLLM, h -> h).build();
        final SimConfig decodes = Pair.config(SimRole.DECODE, SimHandoff.VLLM, h -> h).build();
        try (Pair pair = new Pair(SimEngine.start(prefills), SimEngine.start(decodes, clock))) {
            final JsonNode params = params(pair.vllmPrefill(PROMPT));
            pair.decode().faults().stallPulls(PullStage.DURING, Duration.ofDays(1), 1);
            final CompletableFuture<HttpResponse<String>> answer =
                    pair.vllmDecodeAsync(PROMPT, 3, params);
            Eventually.holds(() -> pair.decode().moving(0) == 1);
            pair.prefill().close();
            clock.advance(TimeUnit.DAYS.toNanos(1) + TimeUnit.SECONDS.toNanos(1));
            assertEquals(500, answer.join().statusCode());
            assertEquals(64, pair.decode().state(0).freeBlocks());
        }
    }

    @Test
    void aClientThatGoesAwayDuringThePullFreesTheDecodesBlocks() {
        try (Pair pair = Pair.of(SimHandoff.VLLM)) {
            final JsonNode params = params(pair.vllmPrefill(PROMPT));
            pair.decode().faults().stallPulls(PullStage.DURING, Duration.ofDays(1), 1);
            final CompletableFuture<HttpResponse<String>> answer =
                    pair.vllmDecodeAsync(PROMPT, 3, params);
            Eventually.holds(() -> pair.decode().handoffs(0).receiving() == 1);
            answer.cancel(true);
            Eventually.holds(() -> pair.decode().state(0).aborted() == 1);
            assertEquals(64, pair.decode().state(0).freeBlocks());
            assertEquals(0, pair.decode().handoffs(0).receiving());
        }
    }

    @Test
    void manyHandoffsAtOnceLeaveNothingBehind() {
        try (Pair pair = Pair.of(SimHandoff.VLLM)) {
            final int count = 60;
            final CompletableFuture<?>[] answers = new CompletableFuture<?>[count];
            for (int i = 0; i < count; i++) {
                final int[] prompt = Pair.tokens(1000 * (i % 9), 5 + i % 30);
                answers[i] =
                        new Http(pair.prefill())
                                .sendAsync(
                                        "/v1/completions",
                                        Http.body(
                                                prompt,
                                                1,
                                                ",\"kv_transfer_params\":{\"do_remote_decode\":true}"))
                                .thenCompose(
                                        prefilled ->
                                                new Http(pair.decode())
                                                        .sendAsync(
                                                                "/v1/completions",
                                                                Http.body(
                                                                        prompt,
                                                                        7,
                                                                        ",\"kv_transfer_params\":"
                                                                                + params(
                                                                                        Http.tree(
                                                                                                prefilled
                                                                                                        .body())))))
                                .thenAccept(
                                        decoded ->
                                                assertEquals(
                                                        Pair.text(
                                                                new Http(pair.decode())
                                                                        .complete(prompt, 7)),
                                                        ok(decoded)));
            }
            CompletableFuture.allOf(answers).join();
            assertEquals(count, pair.decode().handoffs(0).pulls());
            assertEquals(0, pair.decode().handoffs(0).stalePulls());
            assertEquals(count, pair.prefill().handoffs(0).freedByPull());
            assertEquals(64, pair.prefill().state(0).freeBlocks());
            assertEquals(64, pair.decode().state(0).freeBlocks());
        }
    }

    @Test
    void answersHaveTheFieldsOfARealEngineInItsOrderAndTypes() {
        try (Pair pair = Pair.of(SimHandoff.VLLM, h -> h.withPatience(Duration.ofMillis(50)))) {
            for (JsonNode line : Captured.lines("vllm-0.32.0-nixl.jsonl")) {
                final String note = line.get("note").textValue();
                final ObjectNode request = (ObjectNode) line.get("request");
                request.remove("model");
                final boolean decode =
                        request.at("/kv_transfer_params/do_remote_prefill").asBoolean();
                final HttpResponse<String> answer =
                        new Http(decode ? pair.decode() : pair.prefill())
                                .send(line.get("path").textValue(), request.toString());
                if (line.get("status").intValue() == 500 || !decode) {
                    assertEquals(line.get("status").intValue(), answer.statusCode(), note);
                    Captured.assertShape(
                            note,
                            line.at("/response/kv_transfer_params"),
                            Http.tree(answer.body()).at("/kv_transfer_params"));
                    Captured.assertShape(
                            note,
                            line.at("/response/error"),
                            Http.tree(answer.body()).at("/error"));
                }
            }
        }
    }
}
