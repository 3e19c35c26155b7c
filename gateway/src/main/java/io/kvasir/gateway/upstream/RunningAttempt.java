package io.kvasir.gateway.upstream;

/** A request that a worker has not answered in full. Called by the thread of probes. */
public interface RunningAttempt {
    /**
     * The worker does not answer probes any more either.
     *
     * @param description what the last probe met
     */
    void workerDied(String description);
}
