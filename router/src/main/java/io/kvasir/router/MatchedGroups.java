package io.kvasir.router;

import io.kvasir.core.index.OverlapScores;
import io.kvasir.core.slots.LoadBoardDescriptor;
import io.kvasir.core.slots.LoadBoardMirror;
import io.kvasir.pipeline.IndexState;

/**
 * What the workers' slots have to do with one prompt: leading blocks that they hold and leading
 * blocks that are in use there, and what the slots would cost for it. Owned by a {@link Decision}.
 *
 * <p>The relative cost of a slot is its weighted load, less the tokens that it need not prefill,
 * less the blocks that are in use there already: its cost without what is the same for all. Groups
 * of 64 with a slot that the matches have listed are priced slot by slot. In all others the slots
 * differ by their load and by the few sets that they are in, so the least loaded of each set will
 * do; where nothing is matched, that is the least loaded of all.
 *
 * <p>Costs are first computed as if all overlaps could be trusted, which is a lower bound; only
 * what could win is asked how far they can be ({@link #settle}).
 */
final class MatchedGroups {
    private static final int GROUP_SLOTS = LoadBoardDescriptor.GROUP_SLOTS;
    private static final int NONE = -1;

    private final DepthSets cachedSets = new DepthSets();
    private final DepthSets activeSets = new DepthSets();
    private OverlapScores cached; // until the choice is made
    private OverlapScores active;
    private int reusableBlocks;
    private double blockWeight;
    private double mostOfSets; // no slot of the sets costs less than its load by more than this
    private int settledSlot = NONE; // asked by itself
    private IndexState settledState;

    private int[] list = {}; // groups with listed slots
    private int count;

    private boolean[] listed = {}; // by group, as all up to the next blank line
    private boolean[] settled = {};
    private double[] least = {};

    private int[] overlaps = {}; // by slot, where the group has listed slots
    private int[] activePrefixes = {};
    private double[] relative = {};
    private IndexState[] states = {}; // by slot, where the group is settled and the slot overlaps

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
        for (int i = 0; i < count; i++) {
            listed[list[i]] = false;
            settled[list[i]] = false;
        }
        count = 0;
        settledSlot = NONE;
        cached = cachedScores;
        active = activeScores;
        cachedSets.fill(cached, groups);
        activeSets.fill(active, groups);
        reusableBlocks = reusable;
        blockWeight = weight;
        mostOfSets =
                Math.min(cachedSets.deepest(), reusableBlocks) * blockWeight + activeSets.deepest();
        reserve(groups);
        if (cached.listedSlots() + active.listedSlots() > groups * (GROUP_SLOTS / 8)) {
            for (int group = 0; group < groups; group++) {
                add(group); // where most are listed it is not worth the look which
            }
        } else {
            mark(cached, groups);
            mark(active, groups);
        }
    }

    private void reserve(int groups) {
        if (list.length < groups) {
            list = new int[groups];
            listed = new boolean[groups];
            settled = new boolean[groups];
            least = new double[groups];
            overlaps = new int[groups * GROUP_SLOTS];
            activePrefixes = new int[groups * GROUP_SLOTS];
            relative = new double[groups * GROUP_SLOTS];
            states = new IndexState[groups * GROUP_SLOTS];
        }
    }

    private void mark(OverlapScores scores, int groups) {
        for (int i = 0; i < scores.listedSlots(); i++) {
            final int group = scores.slotAt(i) / GROUP_SLOTS;
            if (group < groups && !listed[group]) { // else registered behind the snapshot
                add(group);
            }
        }
    }

    /** From here on the slots of a group are looked at one by one. */
    private void add(int group) {
        listed[group] = true;
        list[count++] = group;
        cached.copyDepths(group, overlaps);
        active.copyDepths(group, activePrefixes);
    }

    /** Looks at the slots of a group one by one if any of them is in a set. */
    boolean addIfShared(int group) {
        if (listed[group] || !(cachedSets.isIn(group) || activeSets.isIn(group))) {
            return false;
        }
        add(group);
        return true;
    }

    /**
     * Lowest relative cost in a group without listed slots, all overlaps trusted; looks only for
     * one below a limit.
     *
     * @param candidates slots that may be chosen, one bit each
     * @return the lowest cost, or the limit when none is below
     */
    double leastShared(LoadBoardMirror loads, int group, long candidates, double limit) {
        if (loads.least(group) - mostOfSets >= limit) {
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
    long sharedSlotsWith(LoadBoardMirror loads, int group, long candidates, double cost) {
        if (loads.least(group) - mostOfSets > cost) {
            return 0;
        }
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
    boolean isExact(Roster roster, int slot, double degradedCredit) {
        if (isSettled(slot / GROUP_SLOTS) || overlap(slot) == 0) {
            return true;
        }
        settledSlot = slot;
        settledState = roster.at(slot).state();
        return credit(settledState, degradedCredit) == 1;
    }

    /**
     * Prices a group with listed slots, all overlaps trusted.
     *
     * @param candidates slots that may be chosen, one bit each; the others cost infinitely much
     */
    void price(LoadBoardMirror loads, int group, long candidates) {
        final int from = group * GROUP_SLOTS;
        loads.copyWeighted(group, relative);
        for (int i = from; i < from + GROUP_SLOTS; i++) {
            final int reused = Math.min(overlaps[i], reusableBlocks);
            relative[i] = relative[i] - reused * blockWeight - activePrefixes[i];
        }
        for (long out = ~candidates; out != 0; out &= out - 1) {
            relative[from + Long.numberOfTrailingZeros(out)] = Double.POSITIVE_INFINITY;
        }
        least[group] = minimum(from);
    }

    private double minimum(int from) {
        double minimum = Double.POSITIVE_INFINITY;
        for (int i = from; i < from + GROUP_SLOTS; i++) {
            minimum = relative[i] < minimum ? relative[i] : minimum;
        }
        return minimum;
    }

    /**
     * Asks the workers of a priced group how far their overlaps can be trusted and corrects their
     * costs, which grow or stay.
     */
    void settle(Roster roster, int group, long candidates, double degradedCredit) {
        boolean changed = false;
        for (long rest = candidates; rest != 0; rest &= rest - 1) {
            final int slot = group * GROUP_SLOTS + Long.numberOfTrailingZeros(rest);
            if (overlaps[slot] == 0) {
                continue;
            }
            final IndexState state = roster.at(slot).state();
            if (states[slot] != state) {
                states[slot] = state; // hardly ever: storing a reference has a barrier
            }
            if (credit(state, degradedCredit) != 1) {
                final int reused = Math.min(overlaps[slot], reusableBlocks);
                relative[slot] += (1 - credit(state, degradedCredit)) * reused * blockWeight;
                changed = true;
            }
        }
        settled[group] = true;
        if (changed) {
            least[group] = minimum(group * GROUP_SLOTS);
        }
    }

    /** What a cached token counts, by how far the index can be trusted. */
    static double credit(IndexState state, double degradedCredit) {
        if (state == IndexState.DEGRADED) {
            return degradedCredit;
        }
        return state == IndexState.GONE ? 0 : 1;
    }

    /** Number of groups with listed slots. */
    int count() {
        return count;
    }

    /** The i-th group with listed slots. */
    int group(int i) {
        return list[i];
    }

    /** Whether the slots of a group are looked at one by one. */
    boolean isListed(int group) {
        return listed[group];
    }

    /** Whether the costs of a group are exact, not lower bounds. */
    boolean isSettled(int group) {
        return settled[group];
    }

    /** Lowest relative cost in a priced group. */
    double least(int group) {
        return least[group];
    }

    /** Slots of a priced group with a relative cost, one bit each. */
    long slotsWith(int group, double cost) {
        long slots = 0;
        for (int i = group * GROUP_SLOTS; i < (group + 1) * GROUP_SLOTS; i++) {
            slots |= (relative[i] == cost ? 1L : 0L) << i;
        }
        return slots;
    }

    int overlap(int slot) {
        return listed[slot / GROUP_SLOTS] ? overlaps[slot] : cachedSets.depthOf(slot);
    }

    int activePrefix(int slot) {
        return listed[slot / GROUP_SLOTS] ? activePrefixes[slot] : activeSets.depthOf(slot);
    }

    /** The state that a slot was priced by; null where it had no part in its cost. */
    IndexState state(int slot) {
        if (settled[slot / GROUP_SLOTS]) {
            return overlap(slot) > 0 ? states[slot] : null;
        }
        return slot == settledSlot ? settledState : null;
    }
}
