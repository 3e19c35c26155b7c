package io.kvasir.gateway;

/** A request that a worker has not answered in full. Called by the thread of probes. */
interface RunningAttempt {
    /**
     * The worker does not answer probes any more either.
     *
     * @param description what the last probe met
     */
    void workerDied(String description);
}
