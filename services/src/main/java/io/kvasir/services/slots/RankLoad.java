package io.kvasir.services.slots;

import io.kvasir.services.http.GroupKey;

/**
 * Load of one rank at one moment.
 *
 * @param key model and routing group
 * @param worker id of the worker
 * @param dpRank rank
 * @param prefillTokens tokens still to be prefilled
 * @param decodeBlocks blocks in use
 * @param requests running requests
 */
public record RankLoad(
        GroupKey key,
        long worker,
        long dpRank,
        long prefillTokens,
        long decodeBlocks,
        long requests) {}
