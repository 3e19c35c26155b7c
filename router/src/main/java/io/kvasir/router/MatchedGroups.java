package io.kvasir.router;

import io.kvasir.core.index.OverlapScores;
import io.kvasir.core.slots.LoadBoardDescriptor;
import io.kvasir.core.slots.LoadBoardMirror;
import io.kvasir.pipeline.IndexState;

import java.util.Arrays;

/**
 * What the workers' slots have to do with one prompt: leading blocks that they hold and leading
 * blocks that are in use there, and what the slots would cost for it. Kept for whole groups of 64
 * slots, and only for those where anything is matched; of the others nothing is stored. Owned by a
 * {@link Decision}.
 *
 * <p>The relative cost of a slot is its weighted load, less the tokens that it need not prefill,
 * less the blocks that are in use there already: its cost without what is the same for all. A group
 * is first priced as if all its overlaps could be trusted, which is a lower bound; only a group
 * that could win asks its workers how far they can be ({@link #settle}).
 */
final class MatchedGroups {
    private static final int GROUP_SLOTS = LoadBoardDescriptor.GROUP_SLOTS;

    private int[] list = {}; // matched groups
    private int count;

    private boolean[] matched = {}; // by group, as all up to the next blank line
    private boolean[] settled = {};
    private double[] least = {};

    private int[] overlaps = {}; // by slot, where the group is matched
    private int[] activePrefixes = {};
    private double[] relative = {};
    private IndexState[] states = {}; // by slot, where the group is settled and the slot overlaps

    /** Takes what the matches found in so many groups. */
    void fill(int groups, OverlapScores cached, OverlapScores active) {
        for (int i = 0; i < count; i++) {
            matched[list[i]] = false;
            settled[list[i]] = false;
        }
        count = 0;
        reserve(groups);
        if (cached.matchedSlots() + active.matchedSlots() > groups * (GROUP_SLOTS / 8)) {
            for (int group = 0; group < groups; group++) {
                add(group); // where most are matched it is not worth the look which
            }
        } else {
            mark(cached, groups);
            mark(active, groups);
        }
        for (int i = 0; i < count; i++) {
            copy(cached, list[i], overlaps);
            copy(active, list[i], activePrefixes);
        }
    }

    private void reserve(int groups) {
        if (list.length < groups) {
            list = new int[groups];
            matched = new boolean[groups];
            settled = new boolean[groups];
            least = new double[groups];
            overlaps = new int[groups * GROUP_SLOTS];
            activePrefixes = new int[groups * GROUP_SLOTS];
            relative = new double[groups * GROUP_SLOTS];
            states = new IndexState[groups * GROUP_SLOTS];
        }
    }

    private void mark(OverlapScores scores, int groups) {
        for (int i = 0; i < scores.matchedSlots(); i++) {
            final int group = scores.slotAt(i) / GROUP_SLOTS;
            if (group < groups && !matched[group]) { // else registered behind the snapshot
                add(group);
            }
        }
    }

    private void add(int group) {
        matched[group] = true;
        list[count++] = group;
    }

    private static void copy(OverlapScores scores, int group, int[] out) {
        final int from = group * GROUP_SLOTS;
        final int end = Math.max(from, Math.min(from + GROUP_SLOTS, scores.maxSlots()));
        for (int slot = from; slot < end; slot++) {
            out[slot] = scores.depth(slot);
        }
        Arrays.fill(out, end, from + GROUP_SLOTS, 0);
    }

    /**
     * Prices a matched group, all overlaps trusted.
     *
     * @param candidates slots that may be chosen, one bit each; the others cost infinitely much
     * @param reusableBlocks most blocks that an engine reuses of the prompt
     * @param blockWeight what a block less to prefill counts
     */
    void price(
            LoadBoardMirror loads,
            int group,
            long candidates,
            int reusableBlocks,
            double blockWeight) {
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
    void settle(
            Roster roster,
            int group,
            long candidates,
            int reusableBlocks,
            double blockWeight,
            double degradedCredit) {
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

    /** Number of groups where anything may be matched. */
    int count() {
        return count;
    }

    /** The i-th group where anything may be matched. */
    int group(int i) {
        return list[i];
    }

    /** Whether anything may be matched in a group. */
    boolean isMatched(int group) {
        return matched[group];
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
        return matched[slot / GROUP_SLOTS] ? overlaps[slot] : 0;
    }

    int activePrefix(int slot) {
        return matched[slot / GROUP_SLOTS] ? activePrefixes[slot] : 0;
    }

    /** The state that a slot was priced by; null where it had no part in its cost. */
    IndexState state(int slot) {
        return settled[slot / GROUP_SLOTS] && overlap(slot) > 0 ? states[slot] : null;
    }
}
