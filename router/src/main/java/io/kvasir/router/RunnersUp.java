package io.kvasir.router;

/**
 * The candidates of a selection that come next to the chosen one by cost, cheapest first. Reused,
 * one thread at a time.
 *
 * <p>Where all costs were computed, all are looked at. With the linear cost, groups of 64 whose
 * least possible cost is not below that of the last one found are not, nor are single candidates of
 * a group whose costs were computed: in a fleet of idle workers that leaves one group, and few of
 * it.
 */
final class RunnersUp {
    /** Costs are sums in another order than bounds: they differ by some last digits. */
    private static final double ROUNDING = 1e-9;

    private final int[] slots;
    private final double[] costs;
    private int count;

    RunnersUp(int most) {
        slots = new int[most];
        costs = new double[most];
    }

    /** How many are found at most. */
    int most() {
        return slots.length;
    }

    int count() {
        return count;
    }

    int slot(int i) {
        return slots[i];
    }

    double cost(int i) {
        return costs[i];
    }

    /** Finds them, after the choice. */
    void find(Selection selection) {
        count = 0;
        if (slots.length == 0) {
            return;
        }
        final Candidates candidates = selection.candidates();
        if (selection.isPriced()) {
            for (int group = 0; group < candidates.groups(); group++) {
                findAmongPriced(selection, group);
            }
            return;
        }
        final CandidateCosts bounds = selection.costs();
        for (int group = bounds.nextGroup(0, limit(selection));
                group >= 0;
                group = bounds.nextGroup(group + 1, limit(selection))) {
            findAmongBounded(selection, bounds, group);
        }
    }

    /** The bound beyond which no cost is wanted; a tie with the last one found is not. */
    private double limit(Selection selection) {
        if (count < slots.length) {
            return Double.POSITIVE_INFINITY;
        }
        final double last = costs[count - 1];
        return last - selection.commonCost() - ROUNDING * (1 + Math.abs(last));
    }

    private void findAmongPriced(Selection selection, int group) {
        for (long rest = selection.candidates().slots(group); rest != 0; rest &= rest - 1) {
            final int slot = group * Long.SIZE + Long.numberOfTrailingZeros(rest);
            if (slot != selection.chosen()) {
                insert(slot, selection.cost(slot));
            }
        }
    }

    /** Computes the costs of those alone whose bound is not beyond the last one found. */
    private void findAmongBounded(Selection selection, CandidateCosts bounds, int group) {
        double limit = limit(selection);
        for (long rest = selection.candidates().slots(group); rest != 0; rest &= rest - 1) {
            final int slot = group * Long.SIZE + Long.numberOfTrailingZeros(rest);
            if (slot != selection.chosen()
                    && bounds.bound(slot) <= limit
                    && insert(slot, selection.cost(slot))) {
                limit = limit(selection);
            }
        }
    }

    /** Whether it is among the cheapest so far. */
    private boolean insert(int slot, double cost) {
        int at = count;
        while (at > 0 && costs[at - 1] > cost) {
            at--;
        }
        if (at == slots.length) {
            return false;
        }
        count = Math.min(slots.length, count + 1);
        for (int i = count - 1; i > at; i--) {
            slots[i] = slots[i - 1];
            costs[i] = costs[i - 1];
        }
        slots[at] = slot;
        costs[at] = cost;
        return true;
    }
}
