package io.kvasir.router.client;

import io.kvasir.router.Worker;

import java.util.concurrent.Flow;

/**
 * Sends a request to the engine of a worker: the embedder's own transport. Called by {@link
 * RoutedClient} on the thread that routes; must not wait.
 *
 * @param <Q> a request
 * @param <R> a part of the answer, such as a chunk with some tokens
 */
@FunctionalInterface
public interface EngineClient<Q, R> {
    /**
     * Prepares a request; it is sent at the latest when the answer is asked for.
     *
     * @param worker where to send it: {@link Worker#url}, {@link Worker#dpRank}
     * @param request the request
     * @return the answer's parts in order; subscribed to once. When its subscription is cancelled
     *     the engine is to stop
     */
    Flow.Publisher<R> generate(Worker worker, Q request);
}
