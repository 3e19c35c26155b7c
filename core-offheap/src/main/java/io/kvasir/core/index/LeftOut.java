package io.kvasir.core.index;

import java.util.BitSet;

/**
 * Of which slots an index lacks blocks that may be in the indexes below it: those that it had no
 * room for, and those whose parents are in these alone. Writer thread only.
 */
final class LeftOut {
    private final PrefixIndex index;
    private final BitSet orphaned = new BitSet(); // slots
    private final long[] lostBefore; // blocks, by slot, when it was followed

    LeftOut(PrefixIndex index) {
        this.index = index;
        this.lostBefore = new long[index.config().maxWorkerSlots()];
    }

    /** The slot is followed from here on, and lacks nothing. */
    void begin(int slot) {
        orphaned.clear(slot);
        lostBefore[slot] = lost(slot);
    }

    /** An index below has a block of the slot that this one has not. */
    void add(int slot) {
        orphaned.set(slot);
    }

    /**
     * After a store of a slot in this index.
     *
     * @param below whether an index below has the blocks
     * @return whether this one or one below has
     */
    boolean after(boolean below, int slot, StoreResult result) {
        if (result == StoreResult.STORED) {
            return true;
        }
        if (below) {
            add(slot);
        }
        return below;
    }

    /** Whether the slot lacks something since it is followed. */
    boolean something(int slot) {
        return orphaned.get(slot) || lost(slot) != lostBefore[slot];
    }

    private long lost(int slot) {
        return index.evictedBlocks(slot) + index.refusedBlocks(slot);
    }
}
