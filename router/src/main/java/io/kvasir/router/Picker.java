package io.kvasir.router;

/**
 * Chooses among the eligible candidates of a filled decision. Stateless but for its random source.
 */
final class Picker {
    private final RandomSource random;

    Picker(RandomSource random) {
        this.random = random;
    }

    /**
     * Lowest cost, ties uniformly at random; with a temperature, sampled by softmax over the costs.
     */
    int cheapest(Decision decision, double temperature) {
        int best = -1;
        int ties = 0;
        double max = Double.NEGATIVE_INFINITY;
        for (int i = 0; i < decision.candidateCount(); i++) {
            if (!decision.isEligible(i)) {
                continue;
            }
            final double cost = decision.cost(i);
            max = Math.max(max, cost);
            if (best < 0 || cost < decision.cost(best)) {
                best = i;
                ties = 1;
            } else if (cost == decision.cost(best) && random.nextInt(++ties) == 0) {
                best = i; // reservoir of one: each of the tied is as likely
            }
        }
        if (temperature == 0 || best < 0 || max == decision.cost(best)) {
            return best;
        }
        return sample(decision, decision.cost(best), max, temperature);
    }

    /**
     * p ∝ exp(−(cost − min) / ((max − min) · T)): costs are normalised by their range, so that a
     * temperature means the same whatever the size of the prompts.
     */
    private int sample(Decision decision, double min, double max, double temperature) {
        final double scale = 1 / ((max - min) * temperature);
        double total = 0;
        for (int i = 0; i < decision.candidateCount(); i++) {
            if (decision.isEligible(i)) {
                total += Math.exp((min - decision.cost(i)) * scale);
            }
        }
        double left = random.nextDouble() * total;
        int last = -1;
        for (int i = 0; i < decision.candidateCount() && left >= 0; i++) {
            if (decision.isEligible(i)) {
                left -= Math.exp((min - decision.cost(i)) * scale);
                last = i;
            }
        }
        return last;
    }

    /** The n-th eligible candidate, counted from 0 in order of registration. */
    int nthEligible(Decision decision, int n) {
        int left = n;
        for (int i = 0; i < decision.candidateCount(); i++) {
            if (decision.isEligible(i) && left-- == 0) {
                return i;
            }
        }
        return -1;
    }

    int anyEligible(Decision decision) {
        return nthEligible(decision, random.nextInt(decision.eligibleCount()));
    }
}
