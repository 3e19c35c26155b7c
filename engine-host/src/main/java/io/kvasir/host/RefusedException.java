package io.kvasir.host;

/** A request that is not served: status and message go to the client in OpenAI's form. */
public final class RefusedException extends Exception {
    private static final long serialVersionUID = 1L;

    private final int status;
    private final String type;

    /**
     * @param status of HTTP, 400 to 599
     * @param type of the error, such as {@code invalid_request_error}
     * @param message for the client
     * @throws IllegalArgumentException if the status is no error
     */
    public RefusedException(int status, String type, String message) {
        super(message);
        if (status < 400 || status > 599) {
            throw new IllegalArgumentException("status=" + status + " is not in 400..599");
        }
        this.status = status;
        this.type = type;
    }

    /** Where the request itself is wrong. */
    static RefusedException invalid(String message) {
        return new RefusedException(400, "invalid_request_error", message);
    }

    /** Status of the answer. */
    public int status() {
        return status;
    }

    /** Type of the error. */
    public String type() {
        return type;
    }
}
