package io.kvasir.gateway;

/** The gateway could not be started; the message says what to change. */
public final class GatewayException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    GatewayException(String message, Throwable cause) {
        super(message, cause);
    }
}
