package io.kvasir.host;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

/**
 * One prompt of a request. Immutable.
 *
 * @param id of the answer, such as {@code cmpl-…}
 * @param model the name that the request has given: the model's or an adapter's
 * @param body all of the request's members
 * @param promptTokens token ids of the prompt; null where it is text or a chat. Not copied
 * @param promptText text of the prompt; null where it is ids or a chat
 * @param sample number of the answer to this prompt, from 0; above 0 only with {@code n} above 1
 * @param dpRank data-parallel rank that a router has chosen, 0 where it has not
 */
@SuppressWarnings("ArrayRecordComponent") // never compared
public record GenerateRequest(
        String id,
        String model,
        ObjectNode body,
        int[] promptTokens,
        String promptText,
        int sample,
        int dpRank) {

    /** Messages of a chat; null where this is no chat. */
    public JsonNode messages() {
        return body.get("messages");
    }

    /** Whether the request is a chat. */
    public boolean isChat() {
        return promptTokens == null && promptText == null;
    }

    /**
     * Most output tokens.
     *
     * @param otherwise where the request says nothing
     */
    public int maxTokens(int otherwise) {
        final JsonNode most =
                body.hasNonNull("max_completion_tokens")
                        ? body.get("max_completion_tokens")
                        : body.path("max_tokens");
        return most.isInt() ? most.intValue() : otherwise;
    }
}
