package io.kvasir.pipeline.source;

import java.util.concurrent.TimeUnit;

/**
 * When a stream asks for a replay again that could not be had, or did not mend its view: after
 * twice the time with each try, up to a limit, and without end. Until then what does not answer is
 * asked for nothing else either. Not thread-safe.
 */
final class RetryTimer {
    static final long FIRST_DELAY_NS = TimeUnit.SECONDS.toNanos(5);
    static final long LAST_DELAY_NS = TimeUnit.MINUTES.toNanos(5);

    private boolean running;
    private String unanswered = ""; // why the last request was not answered
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

    /** What was asked for has not been answered, in words why. */
    void unanswered(String why) {
        unanswered = why;
    }

    /** Whatever is asked answers again. */
    void answered() {
        unanswered = "";
    }

    /** Why the last request was not answered; empty where it was. */
    String whyUnanswered() {
        return unanswered;
    }

    /** Whether nothing can be had now: there was no answer, and the next try is not due yet. */
    boolean isInVain(long nowNs) {
        return !unanswered.isEmpty() && running && nowNs - dueNs < 0;
    }

    /**
     * Nothing is wrong with the view any more: the next failure is tried again soon, unless there
     * was no answer, which a whole view does not change.
     */
    void settled() {
        if (unanswered.isEmpty()) {
            running = false;
            delayNs = FIRST_DELAY_NS;
        }
    }
}
