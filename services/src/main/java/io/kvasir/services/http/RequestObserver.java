package io.kvasir.services.http;

/** Sees each request that has been answered. Called by many threads at once. */
@FunctionalInterface
public interface RequestObserver {
    /** Sees nothing. */
    RequestObserver NONE = (path, method, status, nanos) -> {};

    /**
     * A request was answered.
     *
     * @param path of the endpoint; {@code other} for one that there is not
     * @param method of the request; {@code OTHER} for one that no endpoint has
     * @param status of the answer
     * @param nanos time from its head to its answer
     */
    void answered(String path, String method, int status, long nanos);
}
