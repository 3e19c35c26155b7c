package io.kvasir.services.indexer;

import io.kvasir.services.http.GroupKey;

/**
 * What an engine is registered with.
 *
 * @param instance id of the instance, unique over all models
 * @param key model and routing group
 * @param blockSize tokens per block
 * @param dpRank data-parallel rank
 * @param endpoint address of its publisher
 * @param replayEndpoint address of its replay socket; null for none
 */
public record Registration(
        long instance,
        GroupKey key,
        int blockSize,
        int dpRank,
        String endpoint,
        String replayEndpoint) {}
