package io.kvasir.router.policy;

/**
 * Which of the priced candidates is taken, in mode {@link RoutingMode#KV}. A pure function of its
 * arguments, called by any thread that routes, by several at a time: it must not block or allocate.
 *
 * <p>Where it throws, or names no candidate, {@link #LOWEST} picks instead, by the costs as they
 * were; both are counted ({@link PolicyFailures}).
 */
@FunctionalInterface
public interface Picker {
    /**
     * The lowest cost, ties uniformly at random; with a temperature, sampled by softmax over the
     * costs, normalised by their range.
     */
    Picker LOWEST =
            (candidates, costs, random) ->
                    CostSampler.cheapest(
                            costs, candidates.count(), candidates.temperature(), random);

    /**
     * Picks one.
     *
     * @param candidates one or more
     * @param costs finite; that of the n-th candidate at index n, what the request itself adds
     *     included. At least {@link CandidateView#count} long. The picker may write into it until
     *     it returns: nothing else reads it, and the decision keeps the costs as they were
     * @param random the router's own, so that one seed is one story
     * @return 0..{@link CandidateView#count}-1
     */
    int pick(CandidateView candidates, double[] costs, RandomSource random);
}
