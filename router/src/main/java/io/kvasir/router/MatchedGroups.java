package io.kvasir.router;

import io.kvasir.core.load.LoadBoardDescriptor;
import io.kvasir.core.load.LoadSnapshot;
import io.kvasir.core.radix.OverlapScores;
import io.kvasir.pipeline.IndexState;

/**
 * What the workers' slots have to do with one prompt: leading blocks that they hold and leading
 * blocks that are in use there, and what the slots would cost for it. Owned by a {@link Decision}.
 *
 * <p>The relative cost of a slot is its weighted load, less the tokens that it need not prefill,
 * less the blocks that are in use there already: its cost without what is the same for all. Groups
 * of 64 with a slot that the matches have listed are looked at slot by slot ({@link ListedCosts}).
 * In all others the slots differ by their load and by the few sets that they are in, so the least
 * loaded of each set will do; where nothing is matched, that is the least loaded of all.
 *
 * <p>Costs are first computed as if all overlaps could be trusted, which is a lower bound; only
 * what could win is asked how far they can be.
 */
final class MatchedGroups {
    private static final int GROUP_SLOTS = LoadBoardDescriptor.GROUP_SLOTS;
    private static final int NONE = -1;

    private final DepthSets cachedSets = new DepthSets();
    private final DepthSets activeSets = new DepthSets();
    private final ListedCosts costs = new ListedCosts();
    private OverlapScores cached; // until the choice is made
    private OverlapScores active;
    private int reusableBlocks;
    private double blockWeight;
    private double mostOfSets; // no slot of the sets costs less than its load by more than this
    private int settledSlot = NONE; // asked by itself
    private IndexState settledState;
    private double settledCredit;

    /**
     * Takes what the matches found in so many groups.
     *
     * @param reusable most blocks that an engine reuses of the prompt
     * @param weight what a block less to prefill counts
     */
    void fill(
            int groups,
            OverlapScores cachedScores,
            OverlapScores activeScores,
            int reusable,
            double weight) {
        settledSlot = NONE;
        cached = cachedScores;
        active = activeScores;
        cachedSets.fill(cached, groups);
        activeSets.fill(active, groups);
        reusableBlocks = reusable;
        blockWeight = weight;
        mostOfSets =
                Math.min(cachedSets.deepest(), reusableBlocks) * blockWeight + activeSets.deepest();
        costs.clear(groups, reusable, weight);
        if (cached.listedSlots() + active.listedSlots() > groups * (GROUP_SLOTS / 8)) {
            costs.addAll(groups, cached, active); // it is not worth the look which
        } else {
            mark(cached, groups);
            mark(active, groups);
        }
    }

    private void mark(OverlapScores scores, int groups) {
        for (int i = 0; i < scores.listedSlots(); i++) {
            final int group = scores.slotAt(i) / GROUP_SLOTS;
            if (group < groups && !isListed(group)) { // else registered behind the snapshot
                costs.add(group, cached, active);
            }
        }
    }

    /** Looks at the slots of a group one by one if any of them is in a set. */
    boolean addIfShared(int group) {
        if (isListed(group) || !(cachedSets.isIn(group) || activeSets.isIn(group))) {
            return false;
        }
        costs.add(group, cached, active);
        return true;
    }

    /** No candidate of a group costs less; after a search for the lowest cost. */
    double boundOf(LoadSnapshot loads, int group) {
        return costs.isListed(group) ? costs.least(group) : loads.least(group) - mostOfSets;
    }

    /**
     * Lowest relative cost in a group without listed slots, all overlaps trusted; looks only for
     * one below a limit.
     *
     * @param candidates slots that may be chosen, one bit each
     * @return the lowest cost, or the limit when none is below
     */
    double leastShared(LoadSnapshot loads, int group, long candidates, double limit) {
        if (boundOf(loads, group) >= limit) {
            return limit;
        }
        double lowest = limit;
        long rest = candidates;
        for (int c = 0; c <= cachedSets.sets() && rest != 0; c++) {
            final long held = rest & slots(cachedSets, c, group);
            final double credit = creditOfSet(c);
            rest &= ~held;
            long left = held;
            for (int a = 0; a <= activeSets.sets() && left != 0; a++) {
                final long same = left & slots(activeSets, a, group);
                final int used = depth(activeSets, a);
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

    /**
     * Slots of a group without listed slots that have a relative cost, which is the lowest of all,
     * one bit each.
     */
    long sharedSlotsWith(LoadSnapshot loads, int group, long candidates, double cost) {
        long found = 0;
        long rest = candidates;
        for (int c = 0; c <= cachedSets.sets() && rest != 0; c++) {
            final long held = rest & slots(cachedSets, c, group);
            final double credit = creditOfSet(c);
            rest &= ~held;
            long left = held;
            for (int a = 0; a <= activeSets.sets() && left != 0; a++) {
                final long same = left & slots(activeSets, a, group);
                final int used = depth(activeSets, a);
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

    /** Slots of the set of that number; behind the last one all, for those who are in none. */
    private static long slots(DepthSets sets, int set, int group) {
        return set < sets.sets() ? sets.slots(set, group) : -1;
    }

    private static int depth(DepthSets sets, int set) {
        return set < sets.sets() ? sets.depth(set) : 0;
    }

    private double creditOfSet(int cachedSet) {
        return Math.min(depth(cachedSets, cachedSet), reusableBlocks) * blockWeight;
    }

    /**
     * Asks the worker of one slot how far its overlap can be trusted.
     *
     * @return whether its cost is the one computed
     */
    boolean isExact(WorkerSet roster, int slot, double degradedCredit) {
        if (costs.isSettled(slot / GROUP_SLOTS) || overlap(slot) == 0) {
            return true;
        }
        settledSlot = slot;
        settledState = roster.at(slot).state();
        settledCredit = roster.at(slot).credit(degradedCredit);
        return settledCredit == 1;
    }

    /** Whether the slots of a group are looked at one by one. */
    boolean isListed(int group) {
        return costs.isListed(group);
    }

    ListedCosts listed() {
        return costs;
    }

    int overlap(int slot) {
        return isListed(slot / GROUP_SLOTS) ? costs.overlap(slot) : cachedSets.depthOf(slot);
    }

    int activePrefix(int slot) {
        return isListed(slot / GROUP_SLOTS) ? costs.activePrefix(slot) : activeSets.depthOf(slot);
    }

    /** The state that a slot was priced by; null where it had no part in its cost. */
    IndexState state(int slot) {
        if (costs.isSettled(slot / GROUP_SLOTS)) {
            return overlap(slot) > 0 ? costs.state(slot) : null;
        }
        return slot == settledSlot ? settledState : null;
    }

    /** What a cached token counted where the slot had a part in the choice; else NaN. */
    double credit(int slot) {
        if (costs.isSettled(slot / GROUP_SLOTS)) {
            return overlap(slot) > 0 ? costs.credit(slot) : Double.NaN;
        }
        return slot == settledSlot ? settledCredit : Double.NaN;
    }
}
