package io.kvasir.services.indexer;

/**
 * What one rank holds of a prompt.
 *
 * @param instance id of the instance
 * @param dpRank its rank
 * @param tokens leading tokens of the prompt that it holds
 */
public record Match(long instance, int dpRank, int tokens) {
    /** A rank of an instance. */
    public record Rank(long instance, int dpRank) {}

    /** Whose it is. */
    public Rank rank() {
        return new Rank(instance, dpRank);
    }
}
