package io.kvasir.gateway.server;

/**
 * A connection of a client that is closed where others need its room and nothing is under way, or
 * no more than the head of a request that does not end. Called by any thread.
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
     * Since when the head of a request has been arriving, as {@link #nowNs} says it; 0 where none
     * is.
     */
    default long headSinceNs() {
        return 0;
    }

    /** Refuses a request whose head is still arriving, as one that is late. */
    default void endHead() {}

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
