package io.kvasir.pipeline.log;

import java.util.concurrent.TimeUnit;

/**
 * Lets so many lines of one kind into the log in a period of time, for what thousands of sources,
 * or messages, may have to say at once. Any thread.
 */
public final class LogLimit {
    /** Lines in a period, where nothing else is said. */
    public static final int LINES = 20;

    /** Length of a period, where nothing else is said: 10 s. */
    public static final long PERIOD_NS = TimeUnit.SECONDS.toNanos(10);

    private static final long NS_PER_SECOND = TimeUnit.SECONDS.toNanos(1);

    private final int lines;
    private final long periodNs;
    private long sinceNs;
    private int written; // in the period that began then
    private long leftOut; // since the last line that was written

    /** Lets the first {@value #LINES} lines of each 10 s pass. */
    public LogLimit() {
        this(LINES, PERIOD_NS);
    }

    /**
     * Lets the first lines of each period pass.
     *
     * @param lines in a period, at least 1
     * @param periodNs its length, which begins with its first line
     */
    public LogLimit(int lines, long periodNs) {
        this.lines = lines;
        this.periodNs = periodNs;
    }

    /**
     * Asks for a line.
     *
     * @param nowNs by a clock that goes on evenly
     * @return what is to be said at its end of lines that are left out before or after it, mostly
     *     nothing; null if it is one of these
     */
    public synchronized String take(long nowNs) {
        if (written == 0 || nowNs - sinceNs >= periodNs) {
            sinceNs = nowNs;
            written = 0;
        }
        if (written == lines) {
            leftOut++;
            return null;
        }
        written++;
        final String before =
                leftOut == 0 ? "" : " (" + leftOut + " lines like this were left out before it)";
        leftOut = 0;
        return written < lines
                ? before
                : before + " (of further ones nothing is said for " + leftSeconds(nowNs) + " s)";
    }

    /** Rounded up. */
    private long leftSeconds(long nowNs) {
        return Math.ceilDiv(periodNs - (nowNs - sinceNs), NS_PER_SECOND);
    }
}
