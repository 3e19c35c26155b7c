package io.kvasir.services.select;

import io.kvasir.services.http.GroupKey;

import java.util.SortedMap;

/**
 * The worker that was chosen for a prompt.
 *
 * @param key model and routing group
 * @param worker what is said of it
 * @param dpRank the rank
 * @param prompt what it was chosen for
 * @param tokensByRank leading tokens of the prompt that each of its ranks holds
 * @param decodeBlocks blocks in use there if the prompt ran on it, its last one too
 */
record Selection(
        GroupKey key,
        WorkerSheet worker,
        long dpRank,
        Prompt prompt,
        SortedMap<Long, Integer> tokensByRank,
        long decodeBlocks) {
    /** Tokens that the rank has to prefill. */
    int prefillTokens() {
        return Math.max(0, prompt.tokens - tokensByRank.get(dpRank));
    }
}
