package io.kvasir.router.load;

import io.kvasir.core.load.EngineLoad;

/**
 * What was read of one report, number by number, as the engine wrote it. What is not set is not
 * known. A number that no engine can have makes the whole report a bad one. Reusable; one thread at
 * a time.
 */
public final class LoadReading {
    /** Most requests of an engine that are believed. */
    public static final long MOST_REQUESTS = 1L << 24;

    /** Most tokens or blocks of an engine that are believed. */
    public static final long MOST_TOKENS = 1L << 40;

    /** A cache that is in use as a whole; some engines round up. */
    private static final double MOST_USAGE = 1.001;

    private static final long UNKNOWN = EngineLoad.UNKNOWN;

    private long running;
    private long waiting;
    private long waitingTokens;
    private long usedBlocks;
    private long blocks;
    private long batchTokens;
    private double usage; // NaN where it is not set
    private String problem; // null as long as there is none

    /** An empty one. */
    public LoadReading() {
        reset();
    }

    /**
     * Forgets all numbers.
     *
     * @return this
     */
    public LoadReading reset() {
        running = UNKNOWN;
        waiting = UNKNOWN;
        waitingTokens = UNKNOWN;
        usedBlocks = UNKNOWN;
        blocks = UNKNOWN;
        batchTokens = UNKNOWN;
        usage = Double.NaN;
        problem = null;
        return this;
    }

    /**
     * Requests in the engine's batches.
     *
     * @return this
     */
    public LoadReading running(double requests) {
        running = checked("running", requests, MOST_REQUESTS);
        return this;
    }

    /**
     * Requests that wait for a batch.
     *
     * @return this
     */
    public LoadReading waiting(double requests) {
        waiting = checked("waiting", requests, MOST_REQUESTS);
        return this;
    }

    /**
     * Tokens to be prefilled of those that wait.
     *
     * @return this
     */
    public LoadReading waitingTokens(double tokens) {
        waitingTokens = checked("waiting tokens", tokens, MOST_TOKENS);
        return this;
    }

    /**
     * KV blocks in use by running requests.
     *
     * @return this
     */
    public LoadReading usedBlocks(double count) {
        usedBlocks = checked("used blocks", count, MOST_TOKENS);
        return this;
    }

    /**
     * The part of the KV blocks that is in use, where their number is not stated.
     *
     * @param share 0..1
     * @return this
     */
    public LoadReading usage(double share) {
        if (share >= 0 && share <= MOST_USAGE) {
            usage = Math.min(1, share);
        } else {
            refuse("cache usage", share, "0..1");
        }
        return this;
    }

    /**
     * KV blocks of the cache.
     *
     * @return this
     */
    public LoadReading blocks(double count) {
        blocks = checked("blocks", count, MOST_TOKENS);
        return this;
    }

    /**
     * Most tokens of one step.
     *
     * @return this
     */
    public LoadReading batchTokens(double tokens) {
        batchTokens = checked("batch tokens", tokens, MOST_TOKENS);
        return this;
    }

    private long checked(String what, double value, long most) {
        if (value >= 0 && value <= most) { // not of NaN
            return (long) value;
        }
        refuse(what, value, "0.." + most);
        return UNKNOWN;
    }

    private void refuse(String what, double value, String limits) {
        problem = what + " out of range: value=" + value + ", limits=" + limits;
    }

    /**
     * What is wrong with a number.
     *
     * @return null where nothing is
     */
    public String problemOrNull() {
        return problem;
    }

    /** Whether it says nothing of the load: what an engine has is none. */
    public boolean isEmpty() {
        return running == UNKNOWN
                && waiting == UNKNOWN
                && waitingTokens == UNKNOWN
                && usedBlocks == UNKNOWN
                && Double.isNaN(usage);
    }

    /**
     * The numbers together.
     *
     * @param knownBlocks KV blocks of the cache where the report does not say it; 0 where they are
     *     not known
     */
    public EngineLoad load(long knownBlocks) {
        final long all = blocks != UNKNOWN ? blocks : knownBlocks > 0 ? knownBlocks : UNKNOWN;
        final long used =
                usedBlocks != UNKNOWN || Double.isNaN(usage) || all == UNKNOWN
                        ? usedBlocks
                        : Math.round(usage * all);
        return new EngineLoad(running, waiting, waitingTokens, used, all, batchTokens);
    }
}
