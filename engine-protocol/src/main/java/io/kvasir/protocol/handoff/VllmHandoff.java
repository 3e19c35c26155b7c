package io.kvasir.protocol.handoff;

import java.util.List;

/** The two bodies that vLLM's NIXL connector wants in place of a client's one. */
public final class VllmHandoff {
    private static final List<String> TOKEN_LIMITS = List.of("max_completion_tokens", "min_tokens");

    private VllmHandoff() {}

    /**
     * Makes the prefill request: one token, answered whole, blocks kept for a decode engine.
     *
     * @param body the client's body; unchanged
     * @return the same with {@code max_tokens} 1, other token limits lowered to 1 where given,
     *     {@code stream} false, {@code stream_options} gone and the transfer parameters of a
     *     prefill
     * @throws MalformedJsonException if the body has one of these members twice
     */
    public static VerbatimJson prefillBody(VerbatimJson body) {
        final VerbatimJson.Edit edit =
                body.edit()
                        .set("max_tokens", 1)
                        .set("stream", false)
                        .remove("stream_options")
                        .set(KvTransferParams.FIELD, KvTransferParams.prefillRequest().json());
        for (String limit : TOKEN_LIMITS) {
            if (body.names().contains(limit)) {
                edit.set(limit, 1);
            }
        }
        return edit.apply();
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
