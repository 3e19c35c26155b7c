package io.kvasir.sim;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.sim.config.HandoffFault;
import io.kvasir.sim.config.SimHandoff;
import io.kvasir.sim.testing.Http;
import io.kvasir.sim.testing.Pair;

import org.junit.jupiter.api.Test;

import java.net.http.HttpResponse;
import java.util.Base64;

class TrtllmHandoffTest {
    private static final int[] PROMPT = Pair.tokens(100, 22);
    private static final String CONTEXT =
            ",\"disaggregated_params\":{\"request_type\":\"context_only\"}";

    private static ObjectNode prefill(Pair pair) {
        final JsonNode answer =
                new Http(pair.prefill()).post("/v1/completions", Http.body(PROMPT, 12, CONTEXT));
        assertEquals(1, answer.at("/usage/completion_tokens").intValue());
        final JsonNode params = answer.at("/choices/0/disaggregated_params");
        return ((ObjectNode) params).put("request_type", "generation_only");
    }

    private static HttpResponse<String> decode(Pair pair, JsonNode params) {
        return new Http(pair.decode())
                .send(
                        "/v1/completions",
                        Http.body(PROMPT, 12, ",\"disaggregated_params\":" + params));
    }

    @Test
    void theStateOfAContextAnswerLetsAnotherEngineGenerate() {
        try (Pair pair = Pair.of(SimHandoff.TRTLLM)) {
            final ObjectNode params = prefill(pair);
            assertTrue(params.get("ctx_request_id").isIntegralNumber());
            assertEquals(1, params.get("first_gen_tokens").size());
            assertTrue(
                    Base64.getDecoder()
                                    .decode(params.get("encoded_opaque_state").textValue())
                                    .length
                            > 0);
            assertEquals(1, pair.prefill().handoffs(0).heldPrefills());
            final HttpResponse<String> answer = decode(pair, params);
            assertEquals(Pair.aggregated(PROMPT, 12), Pair.text(Http.tree(answer.body())));
            assertEquals(0, pair.prefill().handoffs(0).heldPrefills());
            assertEquals(0, pair.decode().handoffs(0).stalePulls());
        }
    }

    @Test
    void whatTheStateOrTheFirstTokenDoesNotSayIsSeen() {
        try (Pair pair = Pair.of(SimHandoff.TRTLLM)) {
            final ObjectNode params = prefill(pair);
            assertEquals(
                    400,
                    decode(pair, params.deepCopy().put("encoded_opaque_state", "*")).statusCode());
            final ObjectNode withoutFirst = params.deepCopy();
            withoutFirst.remove("first_gen_tokens");
            assertEquals(400, decode(pair, withoutFirst).statusCode());
            final ObjectNode otherFirst = params.deepCopy();
            otherFirst.putArray("first_gen_tokens").add(1);
            final HttpResponse<String> answer = decode(pair, otherFirst);
            assertEquals(200, answer.statusCode());
            assertNotEquals(Pair.aggregated(PROMPT, 12), Pair.text(Http.tree(answer.body())));
            assertEquals(1, pair.decode().handoffs(0).stalePulls());
        }
    }

    @Test
    void requestsWithoutParametersAreServedByBothRoles() {
        try (Pair pair = Pair.of(SimHandoff.TRTLLM)) {
            final String whole = Pair.aggregated(PROMPT, 12);
            assertEquals(whole, Pair.text(new Http(pair.prefill()).complete(PROMPT, 12)));
            assertEquals(whole, Pair.text(new Http(pair.decode()).complete(PROMPT, 12)));
        }
    }

    @Test
    void aContextAnswerCanLackItsParametersOnDemand() {
        try (Pair pair = Pair.of(SimHandoff.TRTLLM)) {
            pair.prefill().faults().handoffs(HandoffFault.ANSWERS_WITHOUT_PARAMETERS, 1);
            final JsonNode answer =
                    new Http(pair.prefill())
                            .post("/v1/completions", Http.body(PROMPT, 12, CONTEXT));
            assertTrue(answer.at("/choices/0/disaggregated_params").isMissingNode());
            pair.prefill().faults().handoffs(HandoffFault.ANSWERS_WITH_MALFORMED_PARAMETERS, 1);
            assertEquals(400, decode(pair, prefill(pair)).statusCode());
        }
    }
}
