package io.kvasir.gateway.openai;

/** What a worker's answer to {@code GET /health} says of it. Stateless. */
public final class HealthAnswer {
    /** Statuses that are no fault, in words. */
    public static final String GOOD = "below 500, and not 400";

    private static final int FIRST_FAULT = 500;

    /** What a port of TLS answers to plain HTTP; an engine without the path says 404. */
    private static final int WRONG_REQUEST = 400;

    private HealthAnswer() {}

    /**
     * Why a worker is not to be used.
     *
     * @param status of the answer
     * @return words to be put after the request; null for an answer of one that can be used
     */
    public static String faultOrNull(int status) {
        if (status == WRONG_REQUEST) {
            return "answered 400; the port may want https";
        }
        return status >= FIRST_FAULT ? "answered " + status : null;
    }
}
