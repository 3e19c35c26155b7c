package io.kvasir.gateway;

/**
 * Says whether a request is tried again. One per exchange, one attempt at a time; knows no sockets.
 */
final class RetryPolicy {
    private final int retries;
    private int attempts;
    private int staleRetries;

    /**
     * @param retries further attempts after the first
     */
    RetryPolicy(int retries) {
        this.retries = retries;
    }

    /** An attempt begins. */
    void begun() {
        attempts++;
    }

    /** Number of the attempt under way, 0 before the first. */
    int attempt() {
        return attempts;
    }

    /** Attempts at most. */
    int limit() {
        return retries + 1;
    }

    /** Whether an attempt that failed, or was refused, is followed by another one. */
    boolean allowsAnother() {
        return attempts <= retries;
    }

    /**
     * Whether an attempt over a connection that the worker had closed before is repeated; if so it
     * was none.
     */
    boolean repeatsStale() {
        if (staleRetries == AnsweredConnections.STALE_RETRIES) {
            return false;
        }
        staleRetries++;
        attempts--;
        return true;
    }
}
