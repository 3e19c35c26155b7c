package io.kvasir.router;

import io.kvasir.core.load.LoadBoardDescriptor;
import io.kvasir.core.radix.OverlapScores;
import io.kvasir.pipeline.source.IndexState;

import java.util.Arrays;

/**
 * Relative costs in those groups of 64 that are computed slot by slot: weighted load, less the
 * blocks that need no prefill, less the blocks that are in use there already. Owned by {@link
 * CandidateCosts}.
 *
 * <p>Finding the lowest is a search with bounds. A group is priced, which means a cost of its own
 * for each slot, only if no bound says that it cannot have the lowest; a bound compares whole
 * numbers of many slots at once, of a chunk of groups where all are listed, else of one. Costs are
 * first computed as if all overlaps could be trusted, which is a bound too; a settled group's are
 * exact.
 */
final class ListedCosts {
    private static final int GROUP_SLOTS = LoadBoardDescriptor.GROUP_SLOTS;

    /** Groups that are bounded together: so many that setting up the loop does not count. */
    private static final int CHUNK_GROUPS = 16;

    // what is known of a group, each more than the one before
    private static final byte UNLISTED = 0;
    private static final byte LISTED = 1;
    private static final byte PRICED = 2;
    private static final byte SETTLED = 3;

    private final Candidates candidates;
    private final HotPrefix hot;
    private final TierOverlaps tiers;

    private int[] list = {}; // unless all are listed
    private int count;
    private boolean all; // groups 0..count-1
    private int reusableBlocks;
    private double blockWeight;
    private int deepest; // of the cached depths

    private byte[] known = {}; // by group
    private double[] least = {}; // by group: the lowest cost, or a bound below it
    private double[] leastOfChunk = {}; // where all are listed

    private int[] overlaps = {}; // by slot of the listed groups, as all up to the next blank line
    private int[] activePrefixes = {};
    private double[] relative = {};
    private double[] credits = {}; // where the slot overlaps and the group is settled
    private IndexState[] states = {}; // where the slot overlaps and the group is settled

    ListedCosts(Candidates candidates, HotPrefix hot, TierOverlaps tiers) {
        this.candidates = candidates;
        this.hot = hot;
        this.tiers = tiers;
    }

    /**
     * Forgets all groups, and makes room for those of the candidates.
     *
     * @param reusable most blocks that an engine reuses of the prompt
     * @param weight what a block less to prefill counts
     */
    void clear(int reusable, double weight) {
        final int groups = candidates.groups();
        if (all) {
            Arrays.fill(known, 0, count, UNLISTED);
        } else {
            for (int i = 0; i < count; i++) {
                known[list[i]] = UNLISTED;
            }
        }
        count = 0;
        all = false;
        reusableBlocks = reusable;
        blockWeight = weight;
        if (list.length < groups) {
            list = new int[groups];
            known = new byte[groups];
            least = new double[groups];
            leastOfChunk = new double[groups / CHUNK_GROUPS + 1];
            overlaps = new int[groups * GROUP_SLOTS];
            activePrefixes = new int[groups * GROUP_SLOTS];
            relative = new double[groups * GROUP_SLOTS];
            credits = new double[groups * GROUP_SLOTS];
            states = new IndexState[groups * GROUP_SLOTS];
        }
    }

    /** Lists a group that is not listed yet. */
    void add(int group, OverlapScores cached, OverlapScores active) {
        list[count++] = group;
        known[group] = LISTED;
        least[group] = Double.NEGATIVE_INFINITY; // until it is bounded
        copy(group, group + 1, cached, active);
    }

    /** Lists all groups, none of which is listed yet. */
    void addAll(OverlapScores cached, OverlapScores active) {
        final int groups = candidates.groups();
        Arrays.fill(known, 0, groups, LISTED);
        Arrays.fill(least, 0, groups, Double.NEGATIVE_INFINITY);
        count = groups;
        all = true;
        copy(0, groups, cached, active);
    }

    private void copy(int from, int to, OverlapScores cached, OverlapScores active) {
        cached.copyDepths(from, to, overlaps);
        active.copyDepths(from, to, activePrefixes);
        deepest = tiers.any() ? tiers.deepest() : cached.deepest();
    }

    boolean contains(int group) {
        return known[group] != UNLISTED;
    }

    /**
     * The lowest cost of a candidate in all listed groups, all overlaps trusted.
     *
     * @return infinite when there is none
     */
    double lowest() {
        if (all && count > CHUNK_GROUPS) {
            return lowestOfChunks();
        }
        return lowest(0, count, Double.POSITIVE_INFINITY);
    }

    private double lowestOfChunks() {
        final int chunks = (count + CHUNK_GROUPS - 1) / CHUNK_GROUPS;
        int first = 0;
        for (int chunk = 0; chunk < chunks; chunk++) {
            final int from = chunk * CHUNK_GROUPS;
            final int to = Math.min(from + CHUNK_GROUPS, count);
            leastOfChunk[chunk] = bound(from, to);
            Arrays.fill(least, from, to, leastOfChunk[chunk]);
            first = leastOfChunk[chunk] < leastOfChunk[first] ? chunk : first;
        }
        // the others hardly reach below the first then
        double lowest = lowestOfChunk(first, Double.POSITIVE_INFINITY);
        for (int chunk = 0; chunk < chunks; chunk++) {
            if (chunk != first && leastOfChunk[chunk] <= lowest) {
                lowest = lowestOfChunk(chunk, lowest);
            }
        }
        return lowest;
    }

    private double lowestOfChunk(int chunk, double lowest) {
        final int from = chunk * CHUNK_GROUPS;
        return lowest(from, Math.min(from + CHUNK_GROUPS, count), lowest);
    }

    /** The lowest cost so far and in the groups from one index of the list to another. */
    private double lowest(int from, int to, double lowestBefore) {
        if (from == to) {
            return lowestBefore;
        }
        if (to - from > 1) { // else there is nothing to spare
            for (int i = from; i < to; i++) {
                least[group(i)] = bound(group(i), group(i) + 1);
            }
        }
        double lowest = priced(leastOf(from, to), lowestBefore);
        for (int i = from; i < to; i++) {
            lowest = priced(group(i), lowest);
        }
        return lowest;
    }

    private int group(int i) {
        return all ? i : list[i];
    }

    /** The group with the least cost or bound from one index of the list to another. */
    private int leastOf(int from, int to) {
        int first = group(from);
        for (int i = from + 1; i < to; i++) {
            first = least[group(i)] < least[first] ? group(i) : first;
        }
        return first;
    }

    private double bound(int from, int to) {
        final int below =
                candidates
                        .loads()
                        .leastLess(
                                from * GROUP_SLOTS,
                                to * GROUP_SLOTS,
                                tiers.any() ? tiers.reach() : overlaps,
                                reusableBlocks,
                                activePrefixes);
        final double more = Math.max(0, blockWeight - 1) * Math.min(deepest, reusableBlocks);
        return below - 1 - more; // rounding makes up less than a block
    }

    /** Prices a group if it could be as low as the lowest so far. */
    private double priced(int group, double lowest) {
        if (least[group] > lowest || known[group] >= PRICED) {
            return lowest;
        }
        return Math.min(lowest, price(group));
    }

    /** Gives each slot of a group a cost; the lowest one. */
    private double price(int group) {
        final int from = group * GROUP_SLOTS;
        candidates.loads().copyWeighted(group, relative);
        for (int i = from; i < from + GROUP_SLOTS; i++) {
            final double reused = hot.credited(Math.min(overlaps[i], reusableBlocks));
            relative[i] = relative[i] - reused * blockWeight - activePrefixes[i];
        }
        for (int i = from; tiers.any() && i < from + GROUP_SLOTS; i++) {
            relative[i] -= tiers.extra(i) * blockWeight;
        }
        for (long out = ~candidates.slots(group); out != 0; out &= out - 1) {
            relative[from + Long.numberOfTrailingZeros(out)] = Double.POSITIVE_INFINITY;
        }
        least[group] = minimum(from);
        known[group] = PRICED;
        return least[group];
    }

    private double minimum(int from) {
        double minimum = Double.POSITIVE_INFINITY;
        for (int i = from; i < from + GROUP_SLOTS; i++) {
            minimum = relative[i] < minimum ? relative[i] : minimum;
        }
        return minimum;
    }

    /**
     * The lowest cost in all listed groups, as far as the overlaps can be trusted; after {@link
     * #lowest}.
     *
     * @return infinite when there is none
     */
    double lowestSettled() {
        double lowest = Double.POSITIVE_INFINITY;
        if (count > 0) {
            final int first = leastOf(0, count);
            lowest = settled(first, lowest);
        }
        for (int i = 0; i < count; i++) {
            lowest = settled(group(i), lowest);
        }
        return lowest;
    }

    /**
     * Makes sure of a group's costs if they could be as low as the lowest so far.
     *
     * @return the lowest cost then
     */
    double settled(int group, double lowest) {
        if (known[group] == SETTLED) {
            return lowest;
        }
        priced(group, lowest);
        if (least[group] > lowest) {
            return lowest;
        }
        settle(group);
        return Math.min(lowest, least[group]);
    }

    /** Makes sure of the costs of all listed groups. */
    void settleAll() {
        for (int i = 0; i < count; i++) {
            price(group(i));
            settle(group(i));
        }
    }

    /** Corrects the costs of a priced group, which grow or stay. */
    private void settle(int group) {
        boolean changed = false;
        for (long rest = candidates.slots(group); rest != 0; rest &= rest - 1) {
            final int slot = group * GROUP_SLOTS + Long.numberOfTrailingZeros(rest);
            if ((tiers.any() ? tiers.reach()[slot] : overlaps[slot]) == 0) {
                continue;
            }
            final IndexState state = candidates.state(slot);
            if (states[slot] != state) {
                states[slot] = state; // hardly ever: storing a reference has a barrier
            }
            final double credit = candidates.credit(slot);
            credits[slot] = credit;
            if (credit != 1) {
                final double reused =
                        hot.credited(Math.min(overlaps[slot], reusableBlocks)) + tiers.extra(slot);
                relative[slot] += (1 - credit) * reused * blockWeight;
                changed = true;
            }
        }
        known[group] = SETTLED;
        if (changed) {
            least[group] = minimum(group * GROUP_SLOTS);
        }
    }

    /** Whether the costs of a group are exact, not lower bounds. */
    boolean isSettled(int group) {
        return known[group] == SETTLED;
    }

    /** Lowest cost in a priced group; of another one, a bound below it. */
    double least(int group) {
        return least[group];
    }

    /** The cost of a slot of a priced group; of another one, a bound below those of the group. */
    double bound(int slot) {
        final int group = slot / GROUP_SLOTS;
        return known[group] < PRICED ? least[group] : relative[slot];
    }

    /**
     * Slots of a listed group with a cost that is the lowest one of all, one bit each. A group that
     * is not priced has none: its bound is above.
     */
    long slotsWith(int group, double cost) {
        if (known[group] < PRICED || least[group] != cost) {
            return 0;
        }
        long slots = 0;
        for (int i = group * GROUP_SLOTS; i < (group + 1) * GROUP_SLOTS; i++) {
            slots |= (relative[i] == cost ? 1L : 0L) << i;
        }
        return slots;
    }

    /** Leading blocks that a slot of a listed group holds. */
    int overlap(int slot) {
        return overlaps[slot];
    }

    /** Leading blocks that are in use on a slot of a listed group. */
    int activePrefix(int slot) {
        return activePrefixes[slot];
    }

    /** The state that a slot of a settled group, which overlaps, was priced by. */
    IndexState state(int slot) {
        return states[slot];
    }

    /** What a cached token counts on a slot of a settled group, which overlaps. */
    double credit(int slot) {
        return credits[slot];
    }
}
