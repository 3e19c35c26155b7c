package io.kvasir.pipeline.publish;

import java.io.IOException;
import java.io.Serial;

/** Events cannot be published as they are: the same try again fails for the same reason. */
public final class UnpublishableException extends IOException {
    @Serial private static final long serialVersionUID = 1L;

    /**
     * Made by a transport.
     *
     * @param message the reason, with the limit that was met
     * @param cause what the transport's client says, null for nothing
     */
    public UnpublishableException(String message, Throwable cause) {
        super(message, cause);
    }
}
