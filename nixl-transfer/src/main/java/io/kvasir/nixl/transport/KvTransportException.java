package io.kvasir.nixl.transport;

import io.kvasir.nixl.TransferException;

import java.io.Serial;

/** A transport refused a call or lost a peer; says which, about what, and what to do. */
public final class KvTransportException extends TransferException {
    @Serial private static final long serialVersionUID = 1L;

    /** What kind of failure it is. */
    public enum Kind implements TransferException.Kind {
        /** The caller's arguments do not fit: another range, another length, nothing registered. */
        INVALID,
        /** A peer that was never connected, or is no more. */
        UNKNOWN_PEER,
        /** The peer does not answer or is gone; its handles are worthless. */
        PEER_LOST,
        /** What was received from a peer is not of this transport, or of another version. */
        BAD_METADATA,
        /** A limit is reached; the message names it. */
        CAPACITY,
        /** The transport itself failed. */
        FAILED;

        @Override
        public boolean retryable() {
            return this == CAPACITY; // an inbox empties by itself; a lost peer needs a connect
        }
    }

    private final Kind kind;

    /** Makes one. */
    public KvTransportException(Kind kind, String message) {
        this(kind, message, null);
    }

    /** Makes one that another exception caused. */
    public KvTransportException(Kind kind, String message, Throwable cause) {
        super(message, cause);
        this.kind = kind;
    }

    @Override
    public Kind kind() {
        return kind;
    }
}
