package io.kvasir.core.load;

/**
 * What an engine says of its own load. What it does not say is {@link #UNKNOWN}.
 *
 * @param running requests in its batches
 * @param waiting requests that wait for a batch
 * @param waitingTokens of those that wait, to be prefilled
 * @param usedBlocks KV blocks in use by running requests
 * @param blocks KV blocks of its cache
 * @param batchTokens most tokens of one step
 */
public record EngineLoad(
        long running,
        long waiting,
        long waitingTokens,
        long usedBlocks,
        long blocks,
        long batchTokens) {
    /** In place of a number that the engine does not state. */
    public static final long UNKNOWN = -1;

    /** An engine that says nothing. */
    public static final EngineLoad SILENT =
            new EngineLoad(UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN);

    /** The part of a cache that is in use; NaN where a number of the two is not known. */
    public static double usage(long usedBlocks, long blocks) {
        return usedBlocks < 0 || blocks <= 0 ? Double.NaN : (double) usedBlocks / blocks;
    }
}
