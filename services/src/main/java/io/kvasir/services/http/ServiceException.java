package io.kvasir.services.http;

import java.io.Serial;

/**
 * A request that ends with an error answer: {@code {"error": message}}. Carries no stack trace: it
 * is an outcome.
 */
public final class ServiceException extends Exception {
    @Serial private static final long serialVersionUID = 1L;

    private final int status;

    /**
     * Says why.
     *
     * @param status of the answer, a 4xx or 5xx
     * @param message for the caller
     */
    public ServiceException(int status, String message) {
        super(message, null, false, false);
        this.status = status;
    }

    /** 422: a member of the body is missing, or is not what it must be. */
    public static ServiceException unusable(String message) {
        return new ServiceException(422, message);
    }

    /** 503: there is no room for it now; the caller may try again later. */
    public static ServiceException noRoom(String message) {
        return new ServiceException(503, message);
    }

    /** Status of the answer. */
    public int status() {
        return status;
    }
}
