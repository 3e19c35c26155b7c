package io.kvasir.pipeline.source;

/** Counters of one stream, and the last thing that went wrong. Not thread-safe. */
final class StreamStatus {
    private static final long NONE = Long.MIN_VALUE;

    String problem = "";
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
    long refused;
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
