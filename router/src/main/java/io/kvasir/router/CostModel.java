package io.kvasir.router;

/**
 * Cost of serving a prompt on one worker, in blocks; the lowest wins. A pure function of its
 * arguments, called once per candidate on the caller's thread: it must not block or allocate.
 */
@FunctionalInterface
public interface CostModel {
    /**
     * The published linear cost: {@code overlapWeight · prefillBlocks + decodeBlocks}.
     *
     * @see <a href="https://docs.nvidia.com/dynamo/">Dynamo's KV router</a> for its origin
     */
    CostModel LINEAR =
            (weight, prefillBlocks, decodeBlocks, requests) ->
                    weight * prefillBlocks + decodeBlocks;

    /**
     * Computes the cost.
     *
     * @param overlapWeight how much a block to prefill counts against a block to decode; &ge; 0
     * @param prefillBlocks blocks that this worker would still have to prefill, this prompt's and
     *     those booked before it, credited with the cached prefix; fractional
     * @param decodeBlocks blocks in use on this worker if the prompt ran there; a prefix that is
     *     already in use there counts once
     * @param activeRequests requests booked on this worker now
     * @return the cost in blocks; an infinite one counts as a quarter of the largest number, and
     *     NaN as the dearest
     */
    double cost(double overlapWeight, double prefillBlocks, long decodeBlocks, long activeRequests);
}
