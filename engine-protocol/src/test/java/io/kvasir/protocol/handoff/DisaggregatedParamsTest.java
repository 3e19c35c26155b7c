package io.kvasir.protocol.handoff;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.util.Base64;
import java.util.Optional;
import java.util.Random;

class DisaggregatedParamsTest {
    private static final String CONTEXT_ANSWER =
            "{\"id\":\"p\",\"choices\":[ {\"index\":0,\"disaggregated_params\":"
                    + "{\"request_type\": \"context_only\",\"ctx_request_id\":9007199254740993,"
                    + "\"first_gen_tokens\":[7],\"encoded_opaque_state\":\"AQID/w==\"}}]}";

    @Test
    void onlyTheRequestTypeChangesBetweenThePhases() {
        final DisaggregatedParams context =
                DisaggregatedParams.in(VerbatimJson.parse(CONTEXT_ANSWER)).orElseThrow();
        assertEquals(Optional.of("context_only"), context.requestType());
        assertArrayEquals(new byte[] {1, 2, 3, -1}, context.opaqueState().orElseThrow());
        final DisaggregatedParams generation = context.generationOnly();
        assertEquals(Optional.of("generation_only"), generation.requestType());
        assertEquals(
                context.toString().replace("context_only", "generation_only"),
                generation.toString());
        final VerbatimJson body = VerbatimJson.parse("{\"model\":\"m\"}");
        assertEquals(generation, DisaggregatedParams.in(generation.spliceInto(body)).orElseThrow());
    }

    @Test
    void theContextPhaseIsAskedForByName() {
        assertEquals(
                "{\"model\":\"m\",\"disaggregated_params\":{\"request_type\":\"context_only\"}}",
                DisaggregatedParams.contextOnly()
                        .spliceInto(VerbatimJson.parse("{\"model\":\"m\"}"))
                        .toString());
    }

    @ParameterizedTest
    @ValueSource(strings = {"\"length\"", "\"not_finished\"", "null", "1"})
    void anAnswerThatHasNotEndedIsNoneOfTheClients(String reason) {
        assertEquals(Optional.empty(), TrtLlmHandoff.completeAnswer(ended(reason)));
        assertEquals(
                Optional.empty(), TrtLlmHandoff.completeAnswer(VerbatimJson.parse(CONTEXT_ANSWER)));
    }

    @Test
    void anAnswerThatHasEndedIsTheClientsWithoutTheParameters() {
        assertEquals(
                "{\"id\":\"p\",\"choices\":[{\"index\":0,\"finish_reason\":\"stop\"}]}",
                TrtLlmHandoff.completeAnswer(ended("\"stop\"")).orElseThrow().toString());
    }

    private static VerbatimJson ended(String reason) {
        return VerbatimJson.parse(
                CONTEXT_ANSWER.replace("}]}", ",\"finish_reason\":" + reason + "}]}"));
    }

    @Test
    void bothPhasesGetTheClientsBodyWithNothingElseChanged() {
        final VerbatimJson client =
                VerbatimJson.parse(
                        "{ \"prompt\":\"a\\u0041\", \"max_tokens\":9,\"stream\":true,"
                                + "\"stream_options\":{\"include_usage\":true},\"x\":1.50}");
        assertEquals(
                "{ \"prompt\":\"a\\u0041\", \"max_tokens\":1,\"stream\":false,\"x\":1.50,"
                        + "\"disaggregated_params\":{\"request_type\":\"context_only\"}}",
                TrtLlmHandoff.prefillBody(client).toString());
        final DisaggregatedParams answered =
                DisaggregatedParams.in(VerbatimJson.parse(CONTEXT_ANSWER)).orElseThrow();
        final String decode = TrtLlmHandoff.decodeBody(client, answered).toString();
        assertEquals(
                client.toString().replace("1.50}", "1.50,\"disaggregated_params\":")
                        + answered.generationOnly()
                        + "}",
                decode);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "kv_transfer_params",
                "disaggregated_params",
                "bootstrap_host",
                "bootstrap_port",
                "bootstrap_room"
            })
    void theMembersThatNameBlocksAreKnown(String name) {
        assertTrue(HandoffMembers.contains(name));
        assertFalse(HandoffMembers.contains(name + "_"));
    }

    @Test
    void anyStateSurvivesBase64UnderBothNames() {
        final Random random = new Random(Seeds.next("anyStateSurvivesBase64UnderBothNames"));
        for (int i = 0; i < 500; i++) {
            final byte[] state = new byte[random.nextInt(200)];
            random.nextBytes(state);
            final String name = random.nextBoolean() ? "opaque_state" : "encoded_opaque_state";
            final String encoded = Base64.getEncoder().encodeToString(state);
            final DisaggregatedParams params =
                    new DisaggregatedParams(
                            VerbatimJson.parse("{\"" + name + "\":\"" + encoded + "\"}"));
            assertArrayEquals(state, params.opaqueState().orElseThrow());
        }
    }

    @Test
    void aStateThatIsNullIsAbsentAndOneThatIsNoBase64IsNamed() {
        assertEquals(
                Optional.empty(),
                new DisaggregatedParams(VerbatimJson.parse("{\"opaque_state\":null}"))
                        .opaqueState());
        final DisaggregatedParams broken =
                new DisaggregatedParams(VerbatimJson.parse("{\"opaque_state\":\"*\"}"));
        final IllegalArgumentException e =
                assertThrows(IllegalArgumentException.class, broken::opaqueState);
        assertTrue(e.getMessage().startsWith("opaque_state is no base64"), e.getMessage());
    }

    @Test
    void aBodyWithoutTheObjectHasNone() {
        for (String body :
                new String[] {
                    "{}", "{\"choices\":[]}", "{\"choices\":[null]}", "{\"choices\":3}"
                }) {
            assertEquals(Optional.empty(), DisaggregatedParams.in(VerbatimJson.parse(body)), body);
        }
    }
}
