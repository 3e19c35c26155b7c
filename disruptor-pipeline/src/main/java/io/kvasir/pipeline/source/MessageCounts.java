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

    /** A live message of the engine has come. */
    void heard(long nowNs) {
        lastMessageNs = nowNs;
    }

    /** Time since the last live message, −1 before the first. */
    long ageNs(long nowNs) {
        return lastMessageNs == NONE ? -1 : nowNs - lastMessageNs;
    }
}
