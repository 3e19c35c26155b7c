package io.kvasir.host;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.util.concurrent.TimeUnit;

/**
 * Logs why answers of the engine fail, the first {@value #LINES} in 10 s: an engine that is broken
 * fails on all requests, each with its stack trace. Any thread.
 */
final class EngineFailures {
    static final int LINES = 20;
    static final long PERIOD_NS = TimeUnit.SECONDS.toNanos(10);

    private final Logger log;
    private long sinceNs;
    private int written; // in the period that began then
    private long leftOut; // since the last one that was logged

    EngineFailures() {
        this(LoggerFactory.getLogger(EngineFailures.class));
    }

    EngineFailures(Logger log) {
        this.log = log;
    }

    /**
     * Logs one, unless there were too many.
     *
     * @param id of the request
     * @param nowNs by a clock that goes on evenly
     */
    void add(String id, Throwable failure, long nowNs) {
        final long before;
        synchronized (this) {
            if (written == 0 || nowNs - sinceNs >= PERIOD_NS) {
                sinceNs = nowNs;
                written = 0;
            }
            if (written == LINES) {
                leftOut++;
                return;
            }
            written++;
            before = leftOut;
            leftOut = 0;
        }
        if (before == 0) {
            log.error("the engine failed on {}", id, failure);
        } else {
            log.error(
                    "the engine failed on {} ({} failures before it were left out)",
                    id,
                    before,
                    failure);
        }
    }
}
