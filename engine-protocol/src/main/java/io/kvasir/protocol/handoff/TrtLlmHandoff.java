package io.kvasir.protocol.handoff;

/** The two bodies that TensorRT-LLM's server wants in place of a client's one. */
public final class TrtLlmHandoff {
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
}
