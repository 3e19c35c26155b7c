package io.kvasir.router.policy;

/**
 * What it costs one request to be served by a worker, beside what the worker has to do for it: the
 * way that its blocks have to travel, say. Set by {@code RouteRequest.addCost}. Called once per
 * candidate on the thread that routes: it must not block, and is not called again for a decision.
 */
@FunctionalInterface
public interface WorkerCost {
    /**
     * Computes the cost.
     *
     * @param candidate the worker and what the decision knows of it; valid during the call
     * @return blocks, which {@link RoutingMode#KV} adds to the worker's cost; positive infinity
     *     takes the worker out of the candidates in every mode; NaN counts as the dearest
     */
    double blocks(Candidate candidate);
}
