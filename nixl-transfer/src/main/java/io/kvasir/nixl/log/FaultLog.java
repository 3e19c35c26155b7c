package io.kvasir.nixl.log;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.util.concurrent.TimeUnit;

/**
 * Logs what a listener of the caller throws, with its stack trace: the first one, and at most one
 * in 10 s. Any thread.
 */
public final class FaultLog {
    static final long PERIOD_NS = TimeUnit.SECONDS.toNanos(10);

    private final Logger log;
    private final String whose;
    private boolean logged;
    private long loggedNs;
    private long leftOut; // since the last one that was logged

    /**
     * Nothing is logged yet.
     *
     * @param whose what fails, as the beginning of a sentence
     */
    public FaultLog(String whose) {
        this(whose, LoggerFactory.getLogger(FaultLog.class));
    }

    FaultLog(String whose, Logger log) {
        this.whose = whose;
        this.log = log;
    }

    /**
     * Logs one, unless another was logged a short time ago.
     *
     * @param fault what was thrown
     * @param nowNs by a clock that goes on evenly
     */
    public void add(Throwable fault, long nowNs) {
        final long before;
        synchronized (this) {
            if (logged && nowNs - loggedNs < PERIOD_NS) {
                leftOut++;
                return;
            }
            logged = true;
            loggedNs = nowNs;
            before = leftOut;
            leftOut = 0;
        }
        if (before == 0) {
            log.error("{} failed", whose, fault);
        } else {
            log.error("{} failed ({} failures before it were left out)", whose, before, fault);
        }
    }
}
