package io.kvasir.router;

import java.util.Arrays;

/** A set of slots, one bit each. Owned by one thread; clearing an empty one costs nothing. */
final class SlotMarks {
    private long[] groups = {};
    private int count;

    /** Forgets all, and makes room for a number of groups of 64 slots. */
    void clear(int groupCount) {
        if (groups.length < groupCount) {
            groups = new long[groupCount];
        } else if (count > 0) {
            Arrays.fill(groups, 0);
        }
        count = 0;
    }

    /** Adds a slot that is not in it. */
    void add(int slot) {
        groups[slot / Long.SIZE] |= 1L << slot;
        count++;
    }

    boolean contains(int slot) {
        return count > 0 && (groups[slot / Long.SIZE] >>> slot & 1) != 0;
    }

    /** The slots of a group. */
    long of(int group) {
        return groups[group];
    }

    int count() {
        return count;
    }
}
