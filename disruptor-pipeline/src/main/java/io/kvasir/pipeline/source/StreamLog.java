package io.kvasir.pipeline.source;

import io.kvasir.pipeline.log.LogLimit;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.util.EnumMap;
import java.util.Map;

/**
 * Lines in the log about what messages of streams do to their views. Each kind has its limit, which
 * all streams that share this share: what one line is written for may come with each message, and
 * from all engines at once. Any thread.
 */
final class StreamLog {
    /** Lines that are counted together. */
    enum Kind {
        /** A stream becomes stale, or is not any more. */
        STALE,
        /** Something is missing from a view. */
        LOST,
        /** Messages are of another rank. */
        FOREIGN_RANK,
        /** A view begins anew. */
        BEGUN_ANEW
    }

    private final Logger log;
    private final Map<Kind, LogLimit> limits = new EnumMap<>(Kind.class);

    StreamLog() {
        this(LoggerFactory.getLogger(StreamLog.class));
    }

    StreamLog(Logger log) {
        this.log = log;
        for (Kind kind : Kind.values()) {
            limits.put(kind, new LogLimit());
        }
    }

    /**
     * Writes a warning, unless there were too many of its kind.
     *
     * @param label of the stream
     * @return whether it was written
     */
    boolean warn(Kind kind, String label, String what, long nowNs) {
        final String more = limits.get(kind).take(nowNs);
        if (more != null) {
            log.warn("{}: {}{}", label, what, more);
        }
        return more != null;
    }

    /** The same for what is no fault of anything. */
    void info(Kind kind, String label, String what, long nowNs) {
        final String more = limits.get(kind).take(nowNs);
        if (more != null) {
            log.info("{}: {}{}", label, what, more);
        }
    }
}
