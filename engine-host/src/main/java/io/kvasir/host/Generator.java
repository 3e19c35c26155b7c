package io.kvasir.host;

/** An engine: makes the answer of one prompt. Called by many threads at once. */
@FunctionalInterface
public interface Generator {
    /**
     * Makes an answer, part by part; it is complete when this returns. Runs on a virtual thread of
     * its own and may block.
     *
     * @param request the prompt and how to go on from it
     * @param output takes the answer; of this thread and this call alone
     * @throws ClientLeftException as {@code output} throws it: the client has left
     * @throws RefusedException to answer with an error of the engine's choice
     * @throws Exception whatever else fails: 500, or the last event of a stream that has begun
     */
    void generate(GenerateRequest request, Output output) throws Exception;
}
