package io.kvasir.router;

import io.kvasir.core.load.LoadSnapshot;
import io.kvasir.router.policy.RandomSource;

/**
 * Chooses among the candidates of a selection by their load alone; of several with the same each is
 * as likely. Any thread, each with its own selection; allocates nothing.
 */
final class LoadSelector {
    /** What is compared: finite, and exact below 2<sup>53</sup>. */
    @FunctionalInterface
    private interface Measure {
        double of(Selection selection, int slot);
    }

    private final RandomSource random;

    LoadSelector(RandomSource random) {
        this.random = random;
    }

    /**
     * A number below a bound, uniformly at random; takes no random number where there is one only.
     */
    static int anyOf(RandomSource random, int bound) {
        return bound == 1 ? 0 : random.nextInt(bound);
    }

    /** The slot with the fewest blocks to prefill and in use. */
    int leastLoaded(Selection selection) {
        return least(selection, LoadSelector::load);
    }

    /** The slot with the fewest requests. */
    int fewestRequests(Selection selection) {
        return least(selection, LoadSelector::requests);
    }

    /** Whether the load of a slot exceeds the least one by no more than some blocks. */
    static boolean isWithin(Selection selection, int slot, double blocks) {
        final Candidates candidates = selection.candidates();
        final double most = load(selection, slot) - blocks;
        for (int other = next(candidates, 0); other >= 0; other = next(candidates, other + 1)) {
            if (load(selection, other) < most) {
                return false;
            }
        }
        return true;
    }

    private int least(Selection selection, Measure measure) {
        final Candidates candidates = selection.candidates();
        int best = -1;
        double least = Double.POSITIVE_INFINITY;
        int ties = 0;
        for (int slot = next(candidates, 0); slot >= 0; slot = next(candidates, slot + 1)) {
            final double value = measure.of(selection, slot);
            ties = value < least ? 1 : ties + (value == least ? 1 : 0);
            if (value < least || (value == least && anyOf(random, ties) == 0)) {
                best = slot;
                least = value;
            }
        }
        return best;
    }

    /**
     * Of two slots at random the one with fewer requests; with less load where they have as many.
     */
    int fewerOfTwo(Selection selection) {
        final Candidates candidates = selection.candidates();
        final int count = candidates.count();
        final int first = anyOf(random, count);
        final int one = candidates.nth(first);
        if (count == 1) {
            return one;
        }
        final int other = candidates.nth((first + 1 + anyOf(random, count - 1)) % count);
        final int order = Double.compare(requests(selection, one), requests(selection, other));
        final int byLoad = Double.compare(load(selection, one), load(selection, other));
        return (order == 0 ? byLoad : order) <= 0 ? one : other;
    }

    private static double requests(Selection selection, int slot) {
        return selection.candidates().loads().activeRequests(slot);
    }

    private static double load(Selection selection, int slot) {
        final LoadSnapshot loads = selection.candidates().loads();
        return (double) loads.prefillTokens(slot) / selection.blockSize()
                + loads.activeBlocks(slot);
    }

    /** The next slot that is a candidate; -1 where there is none. */
    private static int next(Candidates candidates, int from) {
        int group = from / Long.SIZE;
        if (group >= candidates.groups()) {
            return -1;
        }
        long left = candidates.slots(group) & (-1L << from);
        while (left == 0) {
            if (++group == candidates.groups()) {
                return -1;
            }
            left = candidates.slots(group);
        }
        return group * Long.SIZE + Long.numberOfTrailingZeros(left);
    }
}
