package io.kvasir.services.indexer;

/**
 * What one rank holds of a prompt.
 *
 * @param instance id of the instance
 * @param dpRank its rank
 * @param tokens leading tokens of the prompt that it holds
 */
record Match(long instance, int dpRank, int tokens) {
    /** Whose it is. */
    record Rank(long instance, int dpRank) {}

    Rank rank() {
        return new Rank(instance, dpRank);
    }
}
