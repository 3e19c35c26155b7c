package io.kvasir.nixl;

import java.io.Serial;
import java.io.Serializable;

/**
 * An operating error of transfers: a transport, an exchange of peer records or a vLLM peer refused
 * a call or could not do it. The message says which, about what, and what to do; the kind is for
 * programs. Errors of the programmer are {@link IllegalArgumentException} and {@link
 * IllegalStateException} instead.
 */
public abstract class TransferException extends RuntimeException {
    @Serial private static final long serialVersionUID = 1L;

    /** What kind of failure it is: an enum of each subclass. */
    public interface Kind extends Serializable {
        /**
         * Whether the same call may succeed later, with nothing else changed by the caller.
         *
         * @return true where a peer or server may only be away or busy, false where an argument or
         *     a lost handle is in the way
         */
        boolean retryable();
    }

    /**
     * Makes one.
     *
     * @param message for people
     * @param cause null for none
     */
    protected TransferException(String message, Throwable cause) {
        super(message, cause);
    }

    /**
     * What kind of failure it is.
     *
     * @return never null
     */
    public abstract Kind kind();

    /**
     * Whether the same call may succeed later.
     *
     * @return what its kind says
     */
    public final boolean retryable() {
        return kind().retryable();
    }
}
