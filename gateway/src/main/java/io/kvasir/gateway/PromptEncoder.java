package io.kvasir.gateway;

import com.fasterxml.jackson.databind.node.ObjectNode;

/** Turns prompts into the token ids that the engine computes. Safe from any thread. */
interface PromptEncoder {
    /** Ids of a text prompt. */
    int[] text(String prompt, boolean addSpecialTokens);

    /**
     * Ids of a chat.
     *
     * @param members the members of the request body that shape the prompt, {@code messages} among
     *     them
     */
    int[] chat(ObjectNode members, boolean addSpecialTokens);
}
