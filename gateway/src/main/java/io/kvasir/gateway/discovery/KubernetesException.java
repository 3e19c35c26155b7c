package io.kvasir.gateway.discovery;

/** The API server did not give what was asked for. */
final class KubernetesException extends Exception {
    private static final long serialVersionUID = 1L;
    private static final int GONE = 410;

    private final int status;

    /**
     * Says what happened.
     *
     * @param status HTTP's; 0 where there was no answer
     */
    KubernetesException(int status, String message, Throwable cause) {
        super(message, cause);
        this.status = status;
    }

    /** Whether the resource version is too old to go on from: all must be listed anew. */
    boolean isGone() {
        return status == GONE;
    }
}
