package io.kvasir.protocol.handoff;

import com.fasterxml.jackson.databind.JsonNode;

import java.nio.charset.StandardCharsets;
import java.util.Optional;
import java.util.Set;

/** The two bodies that TensorRT-LLM's server wants in place of a client's one. */
public final class TrtLlmHandoff {
    private static final String CHOICES = "choices";

    /** Reasons of a context phase that the generation phase follows. */
    private static final Set<String> UNFINISHED = Set.of("length", "not_finished");

    private TrtLlmHandoff() {}

    /**
     * Makes the request of the context phase: one token, answered whole, blocks kept for the
     * generation phase.
     *
     * @param body the client's body; unchanged
     * @return the same with {@code max_tokens} 1, other token limits lowered to 1 where given,
     *     {@code stream} false, no {@code stream_options}, and {@code disaggregated_params} of the
     *     context phase
     * @throws MalformedJsonException if the body has one of these members twice
     */
    public static VerbatimJson prefillBody(VerbatimJson body) {
        return PromptOnly.edit(body)
                .set(DisaggregatedParams.FIELD, DisaggregatedParams.contextOnly().json())
                .apply();
    }

    /**
     * Makes the request of the generation phase.
     *
     * @param body the client's body; unchanged
     * @param params what the context phase answered, used for this request only
     * @return the same with these parameters, their {@code request_type} generation_only
     * @throws MalformedJsonException if the body has the member twice
     */
    public static VerbatimJson decodeBody(VerbatimJson body, DisaggregatedParams params) {
        return params.generationOnly().spliceInto(body);
    }

    /**
     * Takes the client's answer out of that of a context phase whose token ended it, such as an end
     * mark: the engine keeps no blocks for a generation phase then, and names some all the same.
     *
     * @param answer of one choice; unchanged
     * @return the same without {@code disaggregated_params}, or empty where the generation phase
     *     follows
     * @throws MalformedJsonException if the answer has a member twice that is looked at
     */
    public static Optional<VerbatimJson> completeAnswer(VerbatimJson answer) {
        return answer.firstObject(CHOICES)
                .filter(TrtLlmHandoff::isFinished)
                .map(choice -> choice.edit().remove(DisaggregatedParams.FIELD).apply())
                .map(
                        choice ->
                                answer.edit()
                                        .remove(DisaggregatedParams.FIELD)
                                        .set(CHOICES, listOf(choice))
                                        .apply());
    }

    private static boolean isFinished(VerbatimJson choice) {
        return choice.tree("finish_reason")
                .filter(JsonNode::isTextual)
                .filter(reason -> !UNFINISHED.contains(reason.textValue()))
                .isPresent();
    }

    private static byte[] listOf(VerbatimJson choice) {
        return ("[" + choice + "]").getBytes(StandardCharsets.UTF_8);
    }
}
