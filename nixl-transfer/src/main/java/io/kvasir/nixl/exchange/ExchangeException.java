package io.kvasir.nixl.exchange;

import java.io.Serial;

/** An exchange refused a call or could not do it; says which, about what, and what to do. */
public final class ExchangeException extends RuntimeException {
    @Serial private static final long serialVersionUID = 1L;

    /** What kind of failure it is. */
    public enum Kind {
        /** A newer incarnation or generation of this name is published. */
        STALE,
        /** No card of this name came in time. */
        NOT_FOUND,
        /** The peer is of another model or layout. */
        INCOMPATIBLE,
        /** What was received is no card, or of a version that cannot be read. */
        MALFORMED,
        /** A limit is reached; the message names it. */
        CAPACITY,
        /** Whatever holds the cards cannot be reached, or fails; trying again may help. */
        UNAVAILABLE
    }

    private final Kind kind;

    /** Makes one. */
    public ExchangeException(Kind kind, String message) {
        this(kind, message, null);
    }

    /** Makes one that another exception caused. */
    public ExchangeException(Kind kind, String message, Throwable cause) {
        super(message, cause);
        this.kind = kind;
    }

    /** What kind of failure it is. */
    public Kind kind() {
        return kind;
    }
}
