package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.openai.Json;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.gateway.testing.MetricsPage;
import io.kvasir.gateway.testing.SimFleet;
import io.kvasir.sim.config.SimHandoff;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

import java.net.http.HttpResponse;
import java.util.Arrays;

/** What answers of split requests predict is what they state. */
class SplitPredictionTest {
    private static final int ANSWERS = 6;

    @ParameterizedTest
    @EnumSource(
            value = SimHandoff.class,
            names = {"VLLM", "TRTLLM"})
    void theTokensThatAreStatedAsCachedWerePredicted(SimHandoff protocol) throws Exception {
        final int[] prompt = new int[100];
        Arrays.setAll(prompt, i -> 32 + i % 90);
        final String body =
                "{\"model\":\"m\",\"max_tokens\":3,\"prompt\":" + Arrays.toString(prompt) + "}";
        try (SimFleet fleet = new SimFleet(protocol)) {
            final GatewayConfig.Builder config = Gateways.config();
            fleet.workers(protocol).forEach(config::worker);
            try (GatewayServer gateway = GatewayServer.start(config.build())) {
                Gateways.awaitContact(gateway);
                int most = 0;
                for (int i = 0; i < ANSWERS; i++) {
                    final HttpResponse<String> answer =
                            Gateways.post(gateway, "/v1/completions", body);
                    assertEquals(200, answer.statusCode(), answer.body());
                    assertTrue(answer.headers().firstValue("x-kvasir-prefill-worker").isPresent());
                    final JsonNode usage = Json.MAPPER.readTree(answer.body()).get("usage");
                    final int stated = usage.at("/prompt_tokens_details/cached_tokens").asInt();
                    assertEquals(
                            stated,
                            Integer.parseInt(
                                    GatewayHttpTest.header(
                                            answer, "x-kvasir-predicted-cached-tokens")));
                    most = Math.max(most, stated);
                    awaitEvents(gateway, fleet);
                }
                assertEquals(96, most, "all but the block that ends within the prompt");
            }
        }
    }

    /** Until the index has what the engines hold. */
    private static void awaitEvents(GatewayServer gateway, SimFleet fleet)
            throws InterruptedException {
        final long held =
                fleet.prefills.stream().mapToLong(e -> e.heldBlocks(0).size()).sum()
                        + fleet.decodes.stream().mapToLong(e -> e.heldBlocks(0).size()).sum();
        Eventually.holds(
                "the index has all blocks",
                () -> MetricsPage.of(gateway).sum("kvasir_worker_index_blocks") == held);
    }
}
