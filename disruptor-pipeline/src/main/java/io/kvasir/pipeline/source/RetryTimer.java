package io.kvasir.pipeline.source;

import java.util.concurrent.TimeUnit;

/**
 * When a stream asks for a replay again that could not be had, or did not mend its view: after
 * twice the time with each try, up to a limit, and without end. Not thread-safe.
 */
final class RetryTimer {
    static final long FIRST_DELAY_NS = TimeUnit.SECONDS.toNanos(5);
    static final long LAST_DELAY_NS = TimeUnit.MINUTES.toNanos(5);

    private boolean running;
    private long dueNs;
    private long delayNs = FIRST_DELAY_NS;

    /** Tries again later, after a longer time than before; never gives up. */
    void start(long nowNs) {
        running = true;
        dueNs = nowNs + delayNs;
        delayNs = Math.min(2 * delayNs, LAST_DELAY_NS);
    }

    boolean isRunning() {
        return running;
    }

    /** Whether the time of a further try has come; one true answer for each. */
    boolean take(long nowNs) {
        if (!running || nowNs - dueNs < 0) {
            return false;
        }
        running = false;
        return true;
    }

    /** Does not wait for the first try, because what was wrong may have ended. */
    boolean takeFirst() {
        if (!running || delayNs > 2 * FIRST_DELAY_NS) {
            return false;
        }
        running = false;
        return true;
    }

    /** Nothing is wrong any more: the next failure is tried again soon. */
    void settled() {
        running = false;
        delayNs = FIRST_DELAY_NS;
    }
}
