package io.kvasir.router;

import io.kvasir.core.load.LoadSnapshot;
import io.kvasir.core.radix.OverlapScores;

/**
 * Relative costs in groups of 64 without a listed slot: there the slots differ by their load and by
 * the few sets that they are in, so the least loaded of each set will do; where nothing is matched,
 * that is the least loaded of all. Owned by {@link CandidateCosts}.
 */
final class SharedCosts {
    private final Candidates candidates;
    private final HotPrefix hot;
    private final DepthSets cached = new DepthSets();
    private final DepthSets active = new DepthSets();
    private int reusableBlocks;
    private double blockWeight;
    private double mostCredit; // of a set
    private int mostUsed; // blocks of a set

    SharedCosts(Candidates candidates, HotPrefix hot) {
        this.candidates = candidates;
        this.hot = hot;
    }

    /**
     * Takes the sets of two matches.
     *
     * @param reusable most blocks that an engine reuses of the prompt
     * @param weight what a block less to prefill counts
     */
    void fill(OverlapScores cachedScores, OverlapScores activeScores, int reusable, double weight) {
        cached.fill(cachedScores, candidates.groups());
        active.fill(activeScores, candidates.groups());
        reusableBlocks = reusable;
        blockWeight = weight;
        mostCredit = 0;
        for (int c = 0; c < cached.sets(); c++) {
            mostCredit = Math.max(mostCredit, creditOf(c));
        }
        mostUsed = active.deepest();
    }

    /** Whether any slot of a group is in a set. */
    boolean isIn(int group) {
        return cached.isIn(group) || active.isIn(group);
    }

    /** No candidate of a group costs less: rounded as costs are, by the same differences. */
    double bound(int group) {
        return candidates.loads().least(group) - mostCredit - mostUsed;
    }

    /**
     * Lowest cost of a candidate of a group, all overlaps trusted; considers only one below a
     * limit.
     *
     * @return the lowest cost, or the limit when none is below
     */
    double least(int group, double limit) {
        if (bound(group) >= limit) {
            return limit;
        }
        final LoadSnapshot loads = candidates.loads();
        double lowest = limit;
        long rest = candidates.slots(group);
        for (int c = 0; c <= cached.sets() && rest != 0; c++) {
            final long held = rest & cached.slotsOrRest(c, group);
            final double credit = creditOf(c);
            rest &= ~held;
            long left = held;
            for (int a = 0; a <= active.sets() && left != 0; a++) {
                final long same = left & active.slotsOrRest(a, group);
                final int used = active.depthOrNone(a);
                left &= ~same;
                // the least of all slots is a bound of theirs
                if (same != 0 && loads.least(group) - credit - used < lowest) {
                    final double least = loads.leastAmong(group, same) - credit - used;
                    lowest = least < lowest ? least : lowest;
                }
            }
        }
        return lowest;
    }

    /** Candidates of a group with a cost, which is the lowest one of all, one bit each. */
    long slotsWith(int group, double cost) {
        final LoadSnapshot loads = candidates.loads();
        long found = 0;
        long rest = candidates.slots(group);
        for (int c = 0; c <= cached.sets() && rest != 0; c++) {
            final long held = rest & cached.slotsOrRest(c, group);
            final double credit = creditOf(c);
            rest &= ~held;
            long left = held;
            for (int a = 0; a <= active.sets() && left != 0; a++) {
                final long same = left & active.slotsOrRest(a, group);
                final int used = active.depthOrNone(a);
                left &= ~same;
                if (same != 0 && loads.least(group) - credit - used <= cost) {
                    final double least = loads.leastAmong(group, same);
                    found |=
                            least - credit - used == cost ? loads.slotsWith(group, same, least) : 0;
                }
            }
        }
        return found;
    }

    private double creditOf(int cachedSet) {
        return hot.credited(Math.min(cached.depthOrNone(cachedSet), reusableBlocks)) * blockWeight;
    }

    /** Leading blocks that a slot holds as one of a set. */
    int overlap(int slot) {
        return cached.depthOf(slot);
    }

    /** Leading blocks that are in use on a slot as one of a set. */
    int activePrefix(int slot) {
        return active.depthOf(slot);
    }
}
