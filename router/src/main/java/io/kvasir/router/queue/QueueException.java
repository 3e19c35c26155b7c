package io.kvasir.router.queue;

import io.kvasir.router.settings.RouterSettings;
import io.kvasir.router.settings.Setting;

import java.util.Locale;

/**
 * A request that waits no longer, or was not let in to wait. Names the limit, what was observed and
 * when another try is worth it. Carries no stack trace: it is an outcome, not a defect.
 */
public final class QueueException extends Exception {
    private static final long serialVersionUID = 1L;

    /** What ended the wait. */
    public enum Kind {
        /** As many requests wait as may. */
        QUEUE_FULL("queued requests", RouterSettings.QUEUE_MAX_REQUESTS),
        /** Their prompts have as many tokens as they may. */
        QUEUE_TOKENS_FULL("queued tokens", RouterSettings.QUEUE_MAX_TOKENS),
        /** It gave way to a request of a higher class while the queue was full. */
        DISPLACED(null, null), // measured as one of the two above
        /** It has waited as long as any may. */
        WAITED_TOO_LONG("ms waited", RouterSettings.QUEUE_MAX_WAIT),
        /** Its own deadline has come. */
        DEADLINE("ms beyond the deadline", null),
        /** The queue is closed. */
        CLOSED("queued requests", null);

        private final String observed; // null where another kind says it
        private final String limit; // name of the setting; null for none

        Kind(String observed, Setting<?> limit) {
            this.observed = observed;
            this.limit = limit == null ? null : limit.name();
        }

        /** The name in small letters, for messages and metrics. */
        public String spelling() {
            return name().toLowerCase(Locale.ROOT);
        }
    }

    private final Kind kind;
    private final Kind measure;
    private final long observed;
    private final long limit;
    private final long retryAfterNs;

    /**
     * @param measure the kind whose limit it was; most often the same
     * @param limitValue of the setting; without meaning where the measure has none
     */
    QueueException(Kind kind, Kind measure, long observed, long limitValue, long retryAfterNs) {
        super(text(kind, measure, observed, limitValue), null, false, false);
        this.kind = kind;
        this.measure = measure;
        this.observed = observed;
        this.limit = limitValue;
        this.retryAfterNs = retryAfterNs;
    }

    private static String text(Kind kind, Kind measure, long observed, long limit) {
        final String what =
                switch (kind) {
                    case QUEUE_FULL -> "too many requests wait for a worker";
                    case QUEUE_TOKENS_FULL -> "the prompts that wait for a worker are too long";
                    case DISPLACED -> "the request gave way to one of higher priority";
                    case WAITED_TOO_LONG -> "no worker had room for the request in time";
                    case DEADLINE -> "no worker had room for the request before its deadline";
                    case CLOSED -> "the queue is closed";
                };
        return what
                + ": "
                + measure.observed
                + "="
                + observed
                + (measure.limit == null ? "" : ", " + measure.limit + "=" + limit);
    }

    /**
     * What ended the wait.
     *
     * @return the kind, never null
     */
    public Kind kind() {
        return kind;
    }

    /**
     * The setting that was the limit.
     *
     * @return its name; null where the limit was the request's own, or the queue is closed
     */
    public String limitName() {
        return measure.limit;
    }

    /**
     * The limit.
     *
     * @return its value; without meaning where it has no name
     */
    public long limit() {
        return limit;
    }

    /**
     * What was held against the limit.
     *
     * @return requests, tokens or milliseconds, as the limit says
     */
    public long observed() {
        return observed;
    }

    /**
     * When another try is worth it, as far as the last departures from the queue say.
     *
     * @return nanoseconds, more than 0
     */
    public long retryAfterNs() {
        return retryAfterNs;
    }
}
