package io.kvasir.services.select;

import io.kvasir.services.http.GroupKey;
import io.kvasir.services.indexer.Match;

import java.util.SortedMap;

/**
 * The worker that was chosen for a prompt.
 *
 * @param key model and routing group
 * @param worker what is said of it
 * @param dpRank the rank
 * @param prompt what it was chosen for
 * @param heldByRank what each of its ranks holds of the prompt
 * @param decodeBlocks blocks in use there if the prompt ran on it, its last one too
 * @param session that the prompt is of; null for none
 */
record Selection(
        GroupKey key,
        WorkerSheet worker,
        long dpRank,
        Prompt prompt,
        SortedMap<Long, Match> heldByRank,
        long decodeBlocks,
        String session) {
    /** The same with what is said of its worker now. */
    Selection of(WorkerSheet now) {
        return new Selection(key, now, dpRank, prompt, heldByRank, decodeBlocks, session);
    }

    /** The rank, of whichever worker. */
    Match.Rank rank() {
        return new Match.Rank(worker.id(), (int) dpRank);
    }

    /** Tokens that the rank has to prefill. */
    int prefillTokens() {
        return Math.max(0, prompt.tokens - heldByRank.get(dpRank).countedTokens());
    }
}
