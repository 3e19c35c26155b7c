package io.kvasir.host;

import com.fasterxml.jackson.databind.node.ObjectNode;

/**
 * Takes the answer to one prompt. Used by the thread that generates it.
 *
 * <p>In a stream each part is an event at once and its write blocks while the client does not read;
 * otherwise parts are collected.
 */
public interface Output {
    /**
     * Adds text.
     *
     * @param part the next part; may be empty
     * @param tokens output tokens that it is made of, at least 0, for the usage
     * @throws ClientLeftException if the client has left: the answer may end here
     * @throws IllegalArgumentException if the number is negative; nothing is added then
     */
    void text(String part, int tokens) throws ClientLeftException;

    /**
     * Adds what is not text: a {@code delta} of OpenAI's chat streams, such as tool calls or
     * reasoning. Of an answer that is not streamed, members of several deltas are joined: text is
     * appended, arrays are concatenated, null says nothing new where something is known (engines
     * name all members in every delta), anything else is replaced.
     *
     * @param delta members of the delta; not changed later
     * @param tokens output tokens that it is made of, at least 0
     * @throws ClientLeftException if the client has left
     * @throws IllegalArgumentException if the number is negative; nothing is added then
     * @throws IllegalStateException if the request is no chat
     */
    void delta(ObjectNode delta, int tokens) throws ClientLeftException;

    /**
     * Says how much the prompt cost, for the usage.
     *
     * @param tokens tokens of the prompt; where nothing is said, as many as the request has ids
     * @param cachedTokens those of them that were not computed
     * @throws IllegalArgumentException if one is negative, or more are cached than there are
     */
    void prompt(int tokens, int cachedTokens);

    /**
     * Says why the answer ends.
     *
     * @param reason {@code stop}, {@code length}, {@code tool_calls}…; {@code stop} where nothing
     *     is said
     */
    void finish(String reason);

    /** Whether the client has left, for long work between two parts; checks every 50 ms at most. */
    boolean clientLeft();
}
