package io.kvasir.core.load;

/**
 * The part of an engine's load that is not booked here: what other clients have sent there.
 *
 * @param prefillTokens of requests that wait
 * @param blocks in use
 * @param requests running and waiting
 */
public record OthersLoad(long prefillTokens, long blocks, long requests) {
    /** Nothing. */
    public static final OthersLoad NONE = new OthersLoad(0, 0, 0);

    private static final double MOST_TOKENS = 1L << 40;

    /** Checks the values. */
    public OthersLoad {
        if (prefillTokens < 0 || blocks < 0 || requests < 0) {
            throw new IllegalArgumentException(
                    "load of others is negative: prefillTokens="
                            + prefillTokens
                            + ", blocks="
                            + blocks
                            + ", requests="
                            + requests);
        }
    }

    /**
     * What of a report is not of requests that are booked here. Booked load counts in full by
     * itself, so only what is beyond it is of others; where it cannot be known whose a request is,
     * it is taken for a booked one.
     *
     * <ul>
     *   <li>requests: running and waiting, less those that are booked
     *   <li>blocks: in use, less those that are booked. Where all requests are booked ones the rest
     *       is their output, unless nothing is booked
     *   <li>prefill tokens: of the waiting requests, but no more of them than there are requests of
     *       others, and less the tokens that are booked; where the engine does not say how many
     *       tokens wait, a request counts as many as a running one has in blocks
     * </ul>
     *
     * @param load as reported
     * @param bookedPrefillTokens at the time of the report, as all that follows
     * @param blockSize tokens of a block
     */
    public static OthersLoad of(
            EngineLoad load,
            long bookedPrefillTokens,
            long bookedBlocks,
            long bookedRequests,
            int blockSize) {
        final boolean counted = load.running() >= 0 || load.waiting() >= 0;
        final long waiting = Math.max(0, load.waiting());
        final long all = Math.max(0, load.running()) + waiting;
        final long requests = Math.max(0, all - Math.max(0, bookedRequests));
        final long beyond = Math.max(0, Math.max(0, load.usedBlocks()) - Math.max(0, bookedBlocks));
        final long blocks = requests > 0 || bookedRequests <= 0 || !counted ? beyond : 0;
        return new OthersLoad(
                prefillTokens(load, Math.min(waiting, requests), bookedPrefillTokens, blockSize),
                blocks,
                requests);
    }

    private static long prefillTokens(
            EngineLoad load, long waitingOfOthers, long bookedPrefillTokens, int blockSize) {
        final double waiting = waitingTokens(load, blockSize);
        final double share = load.waiting() > 0 ? (double) waitingOfOthers / load.waiting() : 1;
        final double unbooked = waiting - Math.max(0, bookedPrefillTokens);
        return (long) Math.clamp(Math.min(waiting * share, unbooked), 0, MOST_TOKENS);
    }

    private static double waitingTokens(EngineLoad load, int blockSize) {
        if (load.waitingTokens() >= 0) {
            return load.waitingTokens();
        }
        final double perRunning =
                load.running() > 0 && load.usedBlocks() > 0
                        ? (double) load.usedBlocks() / load.running()
                        : 1;
        return Math.max(0, load.waiting()) * perRunning * blockSize;
    }
}
