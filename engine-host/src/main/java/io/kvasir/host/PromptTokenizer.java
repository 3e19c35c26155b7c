package io.kvasir.host;

import com.fasterxml.jackson.databind.node.ObjectNode;

/** How an engine cuts text into tokens. Any thread. */
@FunctionalInterface
public interface PromptTokenizer {
    /**
     * Tokens of a prompt, for {@code POST /tokenize}: a gateway compares them with its own before
     * it trusts its predictions.
     *
     * @param body with {@code prompt}, a string, or {@code messages}
     * @return token ids as the engine computes the prompt
     * @throws RefusedException for what cannot be cut
     */
    int[] tokens(ObjectNode body) throws RefusedException;
}
