package io.kvasir.router.policy;

/**
 * Cost of serving a prompt, by candidate; the lowest wins. A pure function of its arguments, called
 * by any thread that routes, by several at a time: it must not block or allocate, and keeps nothing
 * of the view.
 *
 * <p>Where it throws, this decision is made by {@link #LINEAR}; both are counted ({@link
 * PolicyFailures}).
 */
@FunctionalInterface
public interface CostModel {
    /**
     * The published linear cost: {@code overlapWeight · prefillBlocks + decodeBlocks}.
     *
     * @see <a href="https://docs.nvidia.com/dynamo/">Dynamo's KV router</a> for its origin
     */
    CostModel LINEAR =
            each(
                    (all, one) ->
                            linear(all.overlapWeight(), one.prefillBlocks(), one.decodeBlocks()));

    /** Cost of one candidate. */
    @FunctionalInterface
    interface OfOne {
        /**
         * Computes the cost.
         *
         * @param all what is the same for all candidates
         * @param one the candidate, valid during the call
         * @return the cost, as of {@link CostModel#price}
         */
        double cost(CandidateView all, Candidate one);
    }

    /**
     * Computes the costs.
     *
     * @param candidates one or more
     * @param costs takes the cost of the n-th candidate at index n; has room for all, and NaN where
     *     nothing is written. An infinite one counts as a quarter of the largest number, and NaN as
     *     the dearest
     */
    void price(CandidateView candidates, double[] costs);

    /**
     * A model that prices each candidate by itself.
     *
     * @param ofOne asked once per candidate
     * @return the model
     */
    static CostModel each(OfOne ofOne) {
        return (candidates, costs) -> {
            for (int n = 0; n < candidates.count(); n++) {
                costs[n] = ofOne.cost(candidates, candidates.candidate(n));
            }
        };
    }

    /** The linear cost of one worker. */
    static double linear(double overlapWeight, double prefillBlocks, long decodeBlocks) {
        return overlapWeight * prefillBlocks + decodeBlocks;
    }
}
