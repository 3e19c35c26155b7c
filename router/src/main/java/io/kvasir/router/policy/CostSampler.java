package io.kvasir.router.policy;

/**
 * Chooses among costs, one per candidate; NaN stands for one that is not chosen while another can
 * be. Stateless but for the random source that it is given.
 */
final class CostSampler {
    private CostSampler() {}

    /**
     * Lowest cost, ties uniformly at random; with a temperature, sampled by softmax over the costs.
     *
     * @param costs [count]; not infinite, and no further apart than the largest number
     * @param count 1 or more
     * @return its number; 0 where all are NaN
     */
    static int cheapest(double[] costs, int count, double temperature, RandomSource random) {
        int best = -1;
        int ties = 0;
        double max = Double.NEGATIVE_INFINITY;
        for (int i = 0; i < count; i++) {
            final double cost = costs[i];
            if (Double.isNaN(cost)) {
                continue;
            }
            max = Math.max(max, cost);
            if (best < 0 || cost < costs[best]) {
                best = i;
                ties = 1;
            } else if (cost == costs[best] && random.nextInt(++ties) == 0) {
                best = i; // reservoir of one: each of the tied is as likely
            }
        }
        if (best < 0) {
            return 0;
        }
        if (temperature == 0 || max == costs[best]) {
            return best;
        }
        return sample(costs, count, best, max, temperature, random);
    }

    /**
     * p ∝ exp(−(cost − min) / ((max − min) · T)): costs are normalised by their range, so that a
     * temperature means the same whatever the size of the prompts.
     */
    private static int sample(
            double[] costs,
            int count,
            int best,
            double max,
            double temperature,
            RandomSource random) {
        final double min = costs[best];
        final double range = max - min;
        double total = 0;
        for (int i = 0; i < count; i++) {
            if (!Double.isNaN(costs[i])) {
                total += Math.exp((min - costs[i]) / range / temperature); // -infinite at worst
            }
        }
        double left = random.nextDouble() * total;
        int last = best; // where the random number is none
        for (int i = 0; i < count && left >= 0; i++) {
            if (!Double.isNaN(costs[i])) {
                left -= Math.exp((min - costs[i]) / range / temperature);
                last = i;
            }
        }
        return last;
    }
}
