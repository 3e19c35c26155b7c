package io.kvasir.pipeline.source;

/** What one stream has counted of its messages and its transport. Guarded by the stream's lock. */
final class MessageCounts {
    private static final long NONE = Long.MIN_VALUE;

    long messages;
    long events;
    long duplicates;
    long late;
    long gaps;
    long lostMessages;
    long replays;
    long replayFailures;
    long restarts;
    long reconnects;
    long disconnects;
    long connectFailures;
    private long lastMessageNs = NONE;

    /**
     * Adds to a count; where numbers that no engine gives make it too large, it stays the largest.
     *
     * @param count 0 or more
     * @param more 0 or more, or below 0 where it was too large itself
     */
    static long sum(long count, long more) {
        final long sum = count + more;
        return more < 0 || sum < 0 ? Long.MAX_VALUE : sum;
    }

    /** Messages are lost, the first and the last of them included. */
    void lost(long from, long to) {
        lostMessages = sum(lostMessages, to - from + 1);
    }

    /** A live message of the engine has come. */
    void received(long nowNs) {
        lastMessageNs = nowNs;
    }

    /** Time since the last live message, −1 before the first. */
    long ageNs(long nowNs) {
        return lastMessageNs == NONE ? -1 : nowNs - lastMessageNs;
    }
}
