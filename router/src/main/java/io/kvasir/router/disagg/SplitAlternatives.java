package io.kvasir.router.disagg;

/**
 * What is known of one request when it is decided whether to split it.
 *
 * @param promptTokens of the prompt; 0 where they are unknown
 * @param localUncached tokens that the decode worker would compute
 * @param localQueue tokens that it has to compute before
 * @param localDecodes requests that generate on it
 * @param localPace its times beside those of all that compute prompts and generate, as of {@link
 *     WorkerPace#factor}
 * @param remoteUncached tokens that the prefill worker would compute
 * @param remoteQueue tokens that it has to compute before
 * @param remotePace its times beside those of all prefill workers
 * @param distance of the prefill worker and the decode worker, as of {@link TransferCosts}
 */
public record SplitAlternatives(
        int promptTokens,
        double localUncached,
        double localQueue,
        long localDecodes,
        double localPace,
        double remoteUncached,
        double remoteQueue,
        double remotePace,
        int distance) {}
