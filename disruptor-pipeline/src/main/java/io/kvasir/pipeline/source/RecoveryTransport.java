package io.kvasir.pipeline.source;

import io.kvasir.pipeline.wire.RecoveryQuery;

/**
 * Carries the queries of an {@link EventPlane} to the local indexers of workers. Answers go to
 * {@link EventPlane#onAnswer}, and where nothing takes queries {@link EventPlane#onNoAnswerer} says
 * so. Called with the plane's lock held: must not wait for another thread.
 */
@FunctionalInterface
public interface RecoveryTransport {
    /**
     * Sends a query.
     *
     * @param queryId comes with each message of the answer
     * @param query what is asked for
     * @return false if it cannot be sent now
     */
    boolean ask(long queryId, RecoveryQuery query);
}
