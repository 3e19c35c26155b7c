package io.kvasir.router;

/**
 * One worker that a request may go to, as a decision sees it. Read on the thread that routes, while
 * the decision is made; the numbers stand still for that time.
 */
public interface Candidate {
    /**
     * The worker.
     *
     * @return a registered one
     */
    Worker worker();

    /**
     * The prompt's length.
     *
     * @return full blocks
     */
    int requestBlocks();

    /**
     * How much of the prompt the worker holds.
     *
     * @return leading blocks
     */
    int overlapBlocks();

    /**
     * What the worker has to prefill until the prompt is done, its queue included.
     *
     * @return blocks, fractional
     */
    double prefillBlocks();

    /**
     * What the worker has in use if the prompt runs there.
     *
     * @return blocks
     */
    long decodeBlocks();

    /**
     * What runs on the worker.
     *
     * @return requests booked on it
     */
    long activeRequests();
}
