package io.kvasir.cli.load;

/**
 * What became of one request, as its client saw it.
 *
 * @param error what went wrong in one line, or null when the stream ended as it should
 * @param worker name of the server: the gateway's worker name, with {@code /rank} when the rank is
 *     not 0; empty when the answer did not say
 * @param prefilledBy name of the server that computed the prompt: another one than {@code worker}
 *     where the request was split
 * @param scheduledNs when the request was due (by the client's clock); latencies count from here,
 *     so waiting in the client counts too
 * @param sentNs when the client sent it
 * @param firstTokenNs when the first generated text arrived
 * @param doneNs when the stream ended
 * @param promptTokens prompt length by the engine's usage
 * @param cachedTokens part of it the engine took from its cache, by the engine's usage
 * @param outputTokens generated tokens by the engine's usage
 * @param predictedCachedTokens the gateway's forecast of {@code cachedTokens}; -1 when it made none
 * @param routerSequence last event of the worker the gateway had applied when it chose; -1 none,
 *     {@link #UNSTATED}
 * @param engineSequence last event the engine had published when it looked up the prompt; -1 none,
 *     {@link #UNSTATED}
 * @param text generated text when it was asked for, else empty
 */
public record Outcome(
        String error,
        String worker,
        String prefilledBy,
        long scheduledNs,
        long sentNs,
        long firstTokenNs,
        long doneNs,
        long promptTokens,
        long cachedTokens,
        long outputTokens,
        long predictedCachedTokens,
        long routerSequence,
        long engineSequence,
        String text) {

    /** Sequence where the answer has none; real engines state none. */
    static final long UNSTATED = -2;

    /** Whether there is an error. */
    public boolean failed() {
        return error != null;
    }

    /** Prompt tokens the engine had to compute. */
    long computedTokens() {
        return promptTokens - cachedTokens;
    }
}
