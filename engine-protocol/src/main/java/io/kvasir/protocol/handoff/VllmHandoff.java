package io.kvasir.protocol.handoff;

/** The two bodies that vLLM's NIXL connector wants in place of a client's one. */
public final class VllmHandoff {
    private VllmHandoff() {}

    /**
     * Makes the prefill request: one token, answered whole, blocks kept for a decode engine.
     *
     * @param body the client's body; unchanged
     * @return the same with {@code max_tokens} 1, other token limits lowered to 1 where given,
     *     {@code stream} false, no {@code stream_options} and the transfer parameters of a prefill
     * @throws MalformedJsonException if the body has one of these members twice
     */
    public static VerbatimJson prefillBody(VerbatimJson body) {
        return PromptOnly.edit(body)
                .set(KvTransferParams.FIELD, KvTransferParams.prefillRequest().json())
                .apply();
    }

    /**
     * Makes the decode request.
     *
     * @param body the client's body; unchanged
     * @param params what the prefill engine answered, used for this request only
     * @return the same with the transfer parameters
     * @throws MalformedJsonException if the body has the member twice
     */
    public static VerbatimJson decodeBody(VerbatimJson body, KvTransferParams params) {
        return params.spliceInto(body);
    }
}
