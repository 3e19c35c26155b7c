package io.kvasir.registry;

/** A registration that cannot be read, made or kept. */
public final class RegistryException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    /** What went wrong. */
    public enum Kind {
        /** A document is not one; the message names the key. */
        MALFORMED(false),
        /** A newer generation of the instance is registered. */
        STALE(false),
        /** The store refuses these credentials. */
        DENIED(false),
        /** The store cannot be reached, or fails; trying again may help. */
        UNAVAILABLE(true);

        private final boolean retryable;

        Kind(boolean retryable) {
            this.retryable = retryable;
        }

        /** Whether the same call may succeed later. */
        public boolean retryable() {
            return retryable;
        }
    }

    private final Kind kind;

    /** Makes one. */
    public RegistryException(Kind kind, String message) {
        this(kind, message, null);
    }

    /** Makes one that another exception caused. */
    public RegistryException(Kind kind, String message, Throwable cause) {
        super(message, cause);
        this.kind = kind;
    }

    /** What went wrong. */
    public Kind kind() {
        return kind;
    }
}
