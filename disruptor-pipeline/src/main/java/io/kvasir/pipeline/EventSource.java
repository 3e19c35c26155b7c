package io.kvasir.pipeline;

/** A running source of events of one (worker, rank). All methods may be called by any thread. */
public interface EventSource extends AutoCloseable {
    /** Counters, state and the last problem, as of now. */
    SourceStatus status();

    /** How far the index can be trusted; one volatile read. */
    IndexState state();

    /**
     * Empties the slot in the index, in order behind the events already received. For a caller that
     * has just made the engine drop its cache: the engine itself announces that only later.
     */
    void clear();

    /**
     * Compares what was predicted for a request with what the engine then said. Under {@link
     * RemovalRule#AUTO}, repeated over-prediction changes the rule and loads the slot again.
     *
     * @param predictedCachedTokens prompt tokens that the index expected the engine to have cached
     * @param engineCachedTokens prompt tokens that the engine reports as cached
     */
    void reportEngineHit(int predictedCachedTokens, int engineCachedTokens);

    /** Stops the source; its blocks stay in the index until the slot is retired. Idempotent. */
    @Override
    void close();
}
