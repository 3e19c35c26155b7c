package io.kvasir.pipeline.source;

/**
 * Lets so many lines of one kind into the log in a period of time, for what thousands of sources
 * may have to say at once. Any thread.
 */
final class LogLimit {
    private final int lines;
    private final long periodNs;
    private long sinceNs;
    private int written; // in the period that began then

    LogLimit(int lines, long periodNs) {
        this.lines = lines;
        this.periodNs = periodNs;
    }

    /**
     * Asks for a line.
     *
     * @return how many more may be written in this period, 0 for the last one; −1 for not this one
     */
    synchronized int take(long nowNs) {
        if (written == 0 || nowNs - sinceNs >= periodNs) {
            sinceNs = nowNs;
            written = 0;
        }
        return written == lines ? -1 : lines - ++written;
    }
}
