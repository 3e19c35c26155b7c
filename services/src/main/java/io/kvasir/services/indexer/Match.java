package io.kvasir.services.indexer;

/**
 * What one rank holds of a prompt.
 *
 * @param instance id of the instance
 * @param dpRank its rank
 * @param tokens leading tokens of the prompt that it holds on its device
 * @param withHost the same if they may lie in its host memory, too
 * @param withDisk the same if they may lie there and on its disk, too
 * @param withShared the same if it may load them from shared storage, too
 */
public record Match(
        long instance, int dpRank, int tokens, int withHost, int withDisk, int withShared) {
    private static final double HOST_WEIGHT = 0.75;
    private static final double DISK_WEIGHT = 0.25;
    private static final double SHARED_WEIGHT = 0.25;

    /** A rank of an instance. */
    public record Rank(long instance, int dpRank) {}

    /** Of a rank that holds nothing. */
    public static Match none(Rank rank) {
        return new Match(rank.instance, rank.dpRank, 0, 0, 0, 0);
    }

    /** Whose it is. */
    public Rank rank() {
        return new Rank(instance, dpRank);
    }

    /** The longer of both in each tier: one rank's blocks by hashes of two kinds. */
    Match longer(Match other) {
        return new Match(
                instance,
                dpRank,
                Math.max(tokens, other.tokens),
                Math.max(withHost, other.withHost),
                Math.max(withDisk, other.withDisk),
                Math.max(withShared, other.withShared));
    }

    /**
     * Tokens that count as cached, those of the host, the disk and shared storage in part: as much
     * as Dynamo counts where nothing else is set.
     */
    public int countedTokens() {
        return (int)
                Math.round(
                        tokens
                                + HOST_WEIGHT * (withHost - tokens)
                                + DISK_WEIGHT * (withDisk - withHost)
                                + SHARED_WEIGHT * (withShared - withDisk));
    }
}
