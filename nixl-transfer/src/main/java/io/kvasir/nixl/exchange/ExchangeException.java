package io.kvasir.nixl.exchange;

import io.kvasir.nixl.TransferException;

import java.io.Serial;

/** An exchange refused a call or could not do it; says which, about what, and what to do. */
public final class ExchangeException extends TransferException {
    @Serial private static final long serialVersionUID = 1L;

    /** What kind of failure it is. */
    public enum Kind implements TransferException.Kind {
        /** A newer incarnation or generation of this name is published. */
        STALE(false),
        /** No record of this name came in time. */
        NOT_FOUND(true),
        /** The peer is of another model or layout. */
        INCOMPATIBLE(false),
        /** What was received is no record, or of a version that cannot be read. */
        MALFORMED(false),
        /** A limit is reached; the message names it. */
        CAPACITY(false),
        /** Whatever holds the records cannot be reached, or fails; trying again may help. */
        UNAVAILABLE(true);

        private final boolean retryable;

        Kind(boolean retryable) {
            this.retryable = retryable;
        }

        @Override
        public boolean retryable() {
            return retryable;
        }
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

    @Override
    public Kind kind() {
        return kind;
    }
}
