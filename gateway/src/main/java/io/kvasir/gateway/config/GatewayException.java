package io.kvasir.gateway.config;

/** The gateway could not be started; the message says what to change. */
public final class GatewayException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    /** Says what failed and what to change. */
    public GatewayException(String message, Throwable cause) {
        super(message, cause);
    }
}
