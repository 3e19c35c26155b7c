package io.kvasir.gateway.server;

/**
 * A connection of a client that is closed where others need its room and nothing is under way.
 * Called by any thread.
 */
interface IdleConnection {
    /** Since when nothing is under way, as {@link #nowNs} says it; 0 where something is. */
    long idleSinceNs();

    /** Closes it if nothing is under way. */
    void closeIfIdle();

    /**
     * Since when nothing of a request has come, and none is under way, as {@link #nowNs} says it; 0
     * where one is.
     */
    default long silentSinceNs() {
        return idleSinceNs();
    }

    /**
     * Refuses a request whose head is still arriving, because the gateway ends. By one thread.
     *
     * @return whether one was refused, now or before: the connection ends with its answer
     */
    default boolean cutHead() {
        return false;
    }

    /** The time, never 0, which is no time. */
    static long nowNs() {
        return System.nanoTime() | 1;
    }
}
