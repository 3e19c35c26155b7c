package io.kvasir.core.memory;

/**
 * A structure was used after it was closed. The only exception that closing causes: what was begun
 * before {@code close} ends as if it had not been called.
 */
public final class ClosedException extends IllegalStateException {
    private static final long serialVersionUID = 1L;

    /**
     * @param what name of the closed structure, as in "the router"
     */
    public ClosedException(String what) {
        super(what + " is closed");
    }
}
