package io.kvasir.protocol.handoff;

import java.util.List;

/** Makes of a client's request one that computes the prompt and one token, answered whole. */
final class PromptOnly {
    private static final List<String> FURTHER_LIMITS =
            List.of("max_completion_tokens", "min_tokens");

    private PromptOnly() {}

    /**
     * Begins such a body: {@code max_tokens} 1, other token limits lowered to 1 where given, {@code
     * stream} false and no {@code stream_options}.
     *
     * @param body the client's body; unchanged
     * @return an edit that may be added to
     */
    static VerbatimJson.Edit edit(VerbatimJson body) {
        final VerbatimJson.Edit edit =
                body.edit().set("max_tokens", 1).set("stream", false).remove("stream_options");
        for (String limit : FURTHER_LIMITS) {
            if (body.names().contains(limit)) {
                edit.set(limit, 1);
            }
        }
        return edit;
    }
}
