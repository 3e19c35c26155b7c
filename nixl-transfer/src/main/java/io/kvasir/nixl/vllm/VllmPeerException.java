package io.kvasir.nixl.vllm;

import io.kvasir.nixl.TransferException;

import java.io.Serial;

/** A vLLM peer could not be asked, or a call about its blocks is refused; says which and why. */
public final class VllmPeerException extends TransferException {
    @Serial private static final long serialVersionUID = 1L;

    /** What kind of failure it is. */
    public enum Kind implements TransferException.Kind {
        /** Nothing accepts connections at the side channel's host and port. */
        UNREACHABLE(true),
        /** Connected, but no answer came in time. */
        TIMEOUT(true),
        /** What a peer sent is not of this protocol, or of a version that is not known. */
        MALFORMED(false),
        /** The peer's compatibility hash is another than the expected one. */
        INCOMPATIBLE(false),
        /** Another engine answers at this address: the one asked for has ended. */
        OTHER_ENGINE(false),
        /** The peer has no such pipeline or tensor parallel rank. */
        UNKNOWN_RANK(false),
        /** The peer's cache has a form that would be read wrongly. */
        UNSUPPORTED(false),
        /** The engine has not been connected, or no longer is. */
        NOT_CONNECTED(false),
        /** No lease of this request is held. */
        UNKNOWN_REQUEST(false),
        /** The lease has ended: the blocks may hold another prompt by now. */
        EXPIRED(false),
        /** The blocks have been given back. */
        RELEASED(false),
        /** The request is held already: an answer of a prefill serves once. */
        ALREADY_HELD(false),
        /** The blocks are being read: they cannot be given back or read once more. */
        READING(false),
        /** Block numbers, groups or indices do not fit the region table. */
        BAD_BLOCKS(false),
        /** A limit is reached; the message names it. */
        CAPACITY(false);

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
    public VllmPeerException(Kind kind, String message) {
        this(kind, message, null);
    }

    /** Makes one that another exception caused. */
    public VllmPeerException(Kind kind, String message, Throwable cause) {
        super(message, cause);
        this.kind = kind;
    }

    @Override
    public Kind kind() {
        return kind;
    }
}
