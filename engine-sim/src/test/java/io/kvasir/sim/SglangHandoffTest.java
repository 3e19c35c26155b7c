package io.kvasir.sim;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.sim.config.SimConfig;
import io.kvasir.sim.config.SimHandoff;
import io.kvasir.sim.config.SimRole;
import io.kvasir.sim.testing.Http;
import io.kvasir.sim.testing.Pair;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.Arrays;
import java.util.concurrent.CompletableFuture;

class SglangHandoffTest {
    private static final int[] PROMPT = Pair.tokens(100, 22);

    private static JsonNode ok(CompletableFuture<HttpResponse<String>> answer) {
        assertEquals(200, answer.join().statusCode(), answer.join().body());
        return Http.tree(answer.join().body());
    }

    @Test
    void bothLegsMeetInTheirRoomWhicheverComesFirst() {
        final String whole = Pair.aggregated(PROMPT, 12);
        try (Pair pair = Pair.of(SimHandoff.SGLANG, h -> h.withPatience(Duration.ofMinutes(1)))) {
            CompletableFuture<HttpResponse<String>> decode =
                    pair.inRoom(pair.decode(), PROMPT, 12, 7);
            Eventually.holds(() -> pair.decode().handoffs(0).receiving() == 1);
            CompletableFuture<HttpResponse<String>> prefill =
                    pair.inRoom(pair.prefill(), PROMPT, 12, 7);
            assertEquals(whole, Pair.text(ok(decode)));
            assertEquals(1, ok(prefill).at("/usage/completion_tokens").intValue());

            final int[] other = Pair.tokens(500, 9);
            prefill = pair.inRoom(pair.prefill(), other, 12, 8);
            Eventually.holds(() -> pair.prefill().handoffs(0).heldPrefills() == 1);
            assertFalse(prefill.isDone(), "a prefill is answered after its pull");
            decode = pair.inRoom(pair.decode(), other, 12, 8);
            ok(prefill);
            assertEquals(Pair.aggregated(other, 12), Pair.text(ok(decode)));
            assertEquals(2, pair.prefill().handoffs(0).freedByPull());
            assertEquals(64, pair.prefill().state(0).freeBlocks());
            assertEquals(64, pair.decode().state(0).freeBlocks());
        }
    }

    @Test
    void aRequestWithoutARoomIsRefusedAsByARealEngine() {
        final JsonNode real =
                Captured.lines("sglang-0.5.23-nixl.jsonl").stream()
                        .filter(line -> line.get("status").intValue() == 400)
                        .findAny()
                        .orElseThrow();
        final String said = real.at("/response/error/message").textValue();
        assertTrue(said.contains("Disaggregated request received without bootstrap room id."));
        try (Pair pair = Pair.of(SimHandoff.SGLANG)) {
            for (SimEngine engine : new SimEngine[] {pair.prefill(), pair.decode()}) {
                for (String fields : new String[] {"", pair.bootstrap(null)}) {
                    final HttpResponse<String> answer =
                            new Http(engine).send("/v1/completions", Http.body(PROMPT, 2, fields));
                    assertEquals(400, answer.statusCode());
                    assertTrue(
                            answer.body()
                                    .contains(
                                            "Disaggregated request received without bootstrap"
                                                    + " room id."),
                            answer.body());
                }
            }
        }
    }

    @Test
    void theLegsOfARecordedExchangeGetAnswersOfTheRecordedLengths() {
        try (Pair pair = Pair.of(SimHandoff.SGLANG)) {
            for (JsonNode line : Captured.lines("sglang-0.5.23-nixl.jsonl")) {
                if (line.get("status").intValue() != 200) {
                    continue;
                }
                // both legs of the recording carry the same body
                final String fields =
                        ",\"temperature\":0" + pair.bootstrap(line.at("/request/bootstrap_room"));
                final String body = Http.body(PROMPT, 8, fields);
                final var prefill = new Http(pair.prefill()).sendAsync("/v1/completions", body);
                final var decode = new Http(pair.decode()).sendAsync("/v1/completions", body);
                final boolean isPrefill = line.get("note").textValue().endsWith("prefill");
                final JsonNode simulated = ok(isPrefill ? prefill : decode);
                assertEquals(
                        line.at("/response/usage/completion_tokens"),
                        simulated.at("/usage/completion_tokens"));
                assertEquals(
                        line.at("/response/choices/0/finish_reason"),
                        simulated.at("/choices/0/finish_reason"));
                ok(isPrefill ? decode : prefill);
            }
        }
    }

    @Test
    void aBatchHasARoomPerPrompt() {
        try (Pair pair = Pair.of(SimHandoff.SGLANG)) {
            final String prompts = Arrays.toString(PROMPT) + "," + Arrays.toString(PROMPT);
            for (Object rooms : new Object[] {new long[] {5, 9}, 20L}) {
                final String body =
                        "{\"prompt\":["
                                + prompts
                                + "],\"max_tokens\":3,\"ignore_eos\":true"
                                + pair.bootstrap(rooms)
                                + "}";
                final var prefill = new Http(pair.prefill()).sendAsync("/v1/completions", body);
                final var decode = new Http(pair.decode()).sendAsync("/v1/completions", body);
                assertEquals(2, ok(prefill).at("/choices").size());
                assertEquals(2, ok(decode).at("/choices").size());
            }
            assertEquals(4, pair.prefill().handoffs(0).freedByPull());
            assertEquals(
                    400,
                    new Http(pair.decode())
                            .send(
                                    "/v1/completions",
                                    Http.body(PROMPT, 3, pair.bootstrap(new long[] {1, 2})))
                            .statusCode());
        }
    }

    @Test
    void theRoomChoosesTheRankOfThePrefill() {
        final SimConfig.Builder config =
                Pair.config(SimRole.PREFILL, SimHandoff.SGLANG, h -> h).dataParallelSize(3);
        try (Pair pair =
                new Pair(
                        SimEngine.start(config.build()),
                        SimEngine.start(
                                Pair.config(SimRole.DECODE, SimHandoff.SGLANG, h -> h)
                                        .dataParallelSize(2)
                                        .build()))) {
            for (int room = 30; room < 36; room++) {
                final var prefill = pair.inRoom(pair.prefill(), PROMPT, 3, room);
                ok(pair.inRoom(pair.decode(), PROMPT, 3, room));
                ok(prefill);
                assertEquals(room < 33 ? 1 : 2, pair.prefill().handoffs(room % 3).freedByPull());
            }
        }
    }

    @Test
    void aDecodeWhosePrefillNeverComesFailsAndSoDoesAPrefillWithoutDecode() {
        try (Pair pair =
                Pair.of(
                        SimHandoff.SGLANG,
                        h ->
                                h.withPatience(Duration.ofMillis(100))
                                        .withLease(Duration.ofMillis(100)))) {
            final HttpResponse<String> decode = pair.inRoom(pair.decode(), PROMPT, 3, 1).join();
            assertEquals(500, decode.statusCode());
            assertEquals(1, pair.decode().handoffs(0).failedPulls());
            assertEquals(64, pair.decode().state(0).freeBlocks());
            final HttpResponse<String> prefill = pair.inRoom(pair.prefill(), PROMPT, 3, 2).join();
            assertEquals(500, prefill.statusCode());
            assertTrue(prefill.body().contains("no decode pulled"), prefill.body());
            assertEquals(64, pair.prefill().state(0).freeBlocks());
        }
    }

    @Test
    void aRoomThatIsInUseIsRefusedAndKeepsItsFirstPrefill() {
        try (Pair pair = Pair.of(SimHandoff.SGLANG)) {
            final var first = pair.inRoom(pair.prefill(), PROMPT, 3, 4);
            Eventually.holds(() -> pair.prefill().handoffs(0).heldPrefills() == 1);
            final HttpResponse<String> second = pair.inRoom(pair.prefill(), PROMPT, 3, 4).join();
            assertEquals(500, second.statusCode());
            assertTrue(second.body().contains("room-4 is in use"), second.body());
            ok(pair.inRoom(pair.decode(), PROMPT, 3, 4));
            ok(first);
            assertEquals(64, pair.prefill().state(0).freeBlocks());
        }
    }

    @Test
    void aPrefillWhoseClientGoesAwayIsFreed() {
        try (Pair pair = Pair.of(SimHandoff.SGLANG)) {
            final var prefill = pair.inRoom(pair.prefill(), PROMPT, 3, 4);
            Eventually.holds(() -> pair.prefill().handoffs(0).heldPrefills() == 1);
            prefill.cancel(true);
            Eventually.holds(() -> pair.prefill().handoffs(0).heldPrefills() == 0);
            assertEquals(64, pair.prefill().state(0).freeBlocks());
        }
    }

    @Test
    void streamsAreHandedOffToo() throws IOException {
        try (Pair pair = Pair.of(SimHandoff.SGLANG)) {
            final String body = Http.body(PROMPT, 6, ",\"stream\":true" + pair.bootstrap(11L));
            final var prefill = new Http(pair.prefill()).sendAsync("/v1/completions", body);
            final int ids =
                    new Http(pair.decode())
                            .events("/v1/completions", body).stream()
                                    .mapToInt(e -> e.at("/choices/0/token_ids").size())
                                    .sum();
            assertEquals(6, ids);
            assertEquals(200, prefill.join().statusCode());
        }
    }

    @Test
    void aRestartOfThePrefillEndsDecodesThatWaitForIt() {
        try (Pair pair = Pair.of(SimHandoff.SGLANG, h -> h.withPatience(Duration.ofDays(1)))) {
            final var decode = pair.inRoom(pair.decode(), PROMPT, 3, 1);
            final SimEngine prefill = pair.prefill();
            Eventually.holds(
                    () -> {
                        prefill.faults().restart(); // the order may not be there yet
                        return decode.isDone();
                    });
            assertEquals(500, decode.join().statusCode());
        }
    }
}
