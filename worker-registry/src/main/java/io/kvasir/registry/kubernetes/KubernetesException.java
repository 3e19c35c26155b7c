package io.kvasir.registry.kubernetes;

/** The API server did not give what was asked for. */
public final class KubernetesException extends Exception {
    static final int UNAUTHORIZED = 401;
    static final int FORBIDDEN = 403;
    static final int NOT_FOUND = 404;

    private static final long serialVersionUID = 1L;
    private static final int CONFLICT = 409;
    private static final int GONE = 410;
    private static final int UNPROCESSABLE = 422;

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
    public boolean isGone() {
        return status == GONE;
    }

    /** Whether there is no such object, or no such resource. */
    boolean isNotFound() {
        return status == NOT_FOUND;
    }

    /** Whether the object is there already, or at another version. */
    boolean isConflict() {
        return status == CONFLICT;
    }

    /** Whether these credentials may not do this. */
    boolean isDenied() {
        return status == UNAUTHORIZED || status == FORBIDDEN;
    }

    /** Whether the schema refuses the object. */
    boolean isRefusedBySchema() {
        return status == UNPROCESSABLE;
    }
}
