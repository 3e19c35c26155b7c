package io.kvasir.router;

import io.kvasir.core.radix.OverlapScores;

/**
 * The sets of slots that a match found to hold the same, kept beyond the next match. Owned by
 * {@link SharedCosts}.
 */
final class DepthSets {
    private int sets;
    private int groups;
    private int deepest;
    private int[] depths = {};
    private long[] slots = {}; // by set, then by group

    /** Takes the sets of a match, as far as they lie in so many groups of 64 slots. */
    void fill(OverlapScores scores, int groupCount) {
        sets = scores.sets();
        groups = groupCount;
        if (depths.length < sets) {
            depths = new int[sets];
        }
        if (slots.length < sets * groups) {
            slots = new long[sets * groups];
        }
        deepest = 0;
        for (int set = 0; set < sets; set++) {
            depths[set] = scores.setDepth(set);
            deepest = Math.max(deepest, depths[set]);
            for (int group = 0; group < groups; group++) {
                slots[set * groups + group] = scores.setSlots(set, group);
            }
        }
    }

    int sets() {
        return sets;
    }

    /** Depth of the deepest set, 0 without sets. */
    int deepest() {
        return deepest;
    }

    /** Slots of a set in a group, one bit each, lowest first. */
    private long slots(int set, int group) {
        return slots[set * groups + group];
    }

    /** The same; after the last set all, for those that are in none. */
    long slotsOrRest(int set, int group) {
        return set < sets ? slots(set, group) : -1;
    }

    /** Depth of a set; after the last one 0. */
    int depthOrNone(int set) {
        return set < sets ? depths[set] : 0;
    }

    /** Whether any slot of a group is in a set. */
    boolean isIn(int group) {
        long any = 0;
        for (int set = 0; set < sets; set++) {
            any |= slots(set, group);
        }
        return any != 0;
    }

    /** Depth of a slot's set, 0 when it is in none. */
    int depthOf(int slot) {
        for (int set = 0; set < sets; set++) {
            if ((slots(set, slot / Long.SIZE) >>> slot & 1) != 0) {
                return depths[set];
            }
        }
        return 0;
    }
}
