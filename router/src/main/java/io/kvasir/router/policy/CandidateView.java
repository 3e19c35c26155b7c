package io.kvasir.router.policy;

/**
 * All workers that a request may go to, and what is the same for all of them. Read on the thread
 * that routes, while the decision is made; the numbers stand still for that time.
 */
public interface CandidateView {
    /**
     * How many there are.
     *
     * @return 0 or more
     */
    int count();

    /**
     * One of them.
     *
     * @param n 0..{@link #count}-1, in order of slots
     * @return valid until the next call, which moves the same object
     * @throws IndexOutOfBoundsException if there is none
     */
    Candidate candidate(int n);

    /**
     * The prompt's length.
     *
     * @return tokens
     */
    int requestTokens();

    /**
     * The prompt's length.
     *
     * @return full blocks
     */
    int requestBlocks();

    /**
     * Length of a block.
     *
     * @return tokens
     */
    int blockSize();

    /**
     * What a block to prefill counts against a block in use: the request's override, or the
     * router's own.
     *
     * @return &ge; 0
     */
    double overlapWeight();

    /**
     * The sampling temperature: the request's override, or the router's own.
     *
     * @return &ge; 0
     */
    double temperature();

    /**
     * How the worker is chosen: the request's override, or the router's own.
     *
     * @return the mode
     */
    RoutingMode mode();
}
