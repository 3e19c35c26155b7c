package io.kvasir.router;

import java.util.Locale;

/** A request that could not be routed. Carries no stack trace: it is an outcome, not a defect. */
public final class RouteException extends Exception {
    private static final long serialVersionUID = 1L;

    /** Why no worker was chosen. */
    public enum Kind {
        /** No worker is registered, or none is available. */
        NO_WORKERS(true),
        /** Workers exist, but the request excludes each of them. */
        ALL_EXCLUDED(true),
        /** Workers are available, but the selection policy allows none of them. */
        NONE_ELIGIBLE(true),
        /** No worker that could be used has the request's adapter, which it has to have. */
        NO_ADAPTER(true),
        /** Workers could be used, but none has the labels and taints that the request allows. */
        NONE_SUITABLE(true),
        /** The pinned worker is removed, unavailable or excluded. */
        PINNED_UNAVAILABLE(true),
        /** Every worker that the request could use is busy by the limits of load. */
        ALL_WORKERS_BUSY(true),
        /**
         * No worker that the request could use has room by the queue's thresholds: {@link
         * RouteRequest#onlyWithRoom}.
         */
        NO_ROOM(true),
        /** The router's own limit of booked requests is reached. */
        OVERLOADED(true),
        /** The request itself cannot be routed: direct mode without a pinned worker. */
        INVALID(false);

        private final boolean retryable;
        private final String spelling = name().toLowerCase(Locale.ROOT);

        Kind(boolean retryable) {
            this.retryable = retryable;
        }

        /**
         * Says whether the same request may succeed later.
         *
         * @return true if trying again makes sense
         */
        public boolean retryable() {
            return retryable;
        }

        /**
         * As answers and metrics name it.
         *
         * @return its name in lower case
         */
        public String spelling() {
            return spelling;
        }
    }

    /**
     * A limit by which a request was refused.
     *
     * @param name of its setting
     * @param value of the setting
     * @param observed what was held against it
     */
    public record Limit(String name, long value, long observed) {}

    private final Kind kind;
    private final long retryNs;
    private final transient Limit limitOrNull;
    private boolean own;

    RouteException(Kind kind, String message) {
        this(kind, message, 0);
    }

    RouteException(Kind kind, String message, long retryNs) {
        this(kind, message, retryNs, null);
    }

    RouteException(Kind kind, String message, long retryNs, Limit limitOrNull) {
        super(message, null, false, false);
        this.kind = kind;
        this.retryNs = retryNs;
        this.limitOrNull = limitOrNull;
    }

    /**
     * The limit by which it was refused, where it is one that callers can go by.
     *
     * @return null where it is none
     */
    public Limit limitOrNull() {
        return limitOrNull;
    }

    /** Marks it as one that another request might not have met. */
    RouteException asOwn() {
        own = true;
        return this;
    }

    /**
     * Whether another request of the same {@link Reach} might have been routed in that moment: some
     * workers were left out for what this prompt costs there. By its own cost, by the selection
     * policy, or as its first token is expected too late.
     *
     * @return false where the workers' state alone was the reason
     */
    public boolean isOwn() {
        return own;
    }

    /**
     * When the same request may succeed.
     *
     * @return nanoseconds from now; 0 where it is not known
     */
    public long retryNs() {
        return retryNs;
    }

    /**
     * Says why no worker was chosen.
     *
     * @return the kind, never null
     */
    public Kind kind() {
        return kind;
    }
}
