package io.kvasir.core.index;

import io.kvasir.core.radix.RadixTree;

/**
 * Makes the holders of a run right for what it is about to be joined with, its next segment. They
 * are right for the run alone, too: a reader takes no more of a holder than it has matched. A slot
 * that holds all of the run gets what it holds of the next segment in addition; all others hold no
 * more than before. So the held runs are not read, and where both have maps only slots that do not
 * hold all of both are visited. Writer thread only.
 */
final class HolderJoin {
    /** Slots of two maps that are changed one by one; beyond that the split stays. */
    private static final int MAX_DIFFERING = 128;

    /** Holders that are visited where one run has a list; beyond that the split stays. */
    private static final int MAX_LISTED = 1024;

    private final RadixTree tree;

    /** Of each slot, while two runs are compared: the holder of the lower one + 1, 0 = none. */
    private final int[] lowerHolders;

    private final int[] differing = new int[MAX_DIFFERING];
    private final int[] slots = new int[MAX_LISTED];
    private final int[] heldRuns = new int[MAX_LISTED];
    private int added;

    HolderJoin(RadixTree tree, int workerSlots) {
        this.tree = tree;
        this.lowerHolders = new int[workerSlots];
    }

    /** Slots that held the next segment only, in the join prepared last. */
    int added() {
        return added;
    }

    /** Slot of one of them. */
    int slot(int i) {
        return slots[i];
    }

    /** What that slot holds of the array. */
    int heldRun(int i) {
        return heldRuns[i];
    }

    /**
     * Makes the holders of a run right for the run joined with its next segment.
     *
     * @param most holders that the joined run may have
     * @return false when it would be too much work, too many holders, or there is no memory; the
     *     holders say what they said before then
     */
    boolean prepare(int run, int most) {
        final int lower = tree.nextSegment(run);
        added = 0;
        if (tree.hasHolderMap(run) && tree.hasHolderMap(lower)) {
            return prepareMaps(run, lower, most);
        }
        if (tree.holders(run) + tree.holders(lower) > MAX_LISTED) {
            return false;
        }
        mark(lower);
        findAdded(run, lower);
        final boolean prepared = tree.holders(run) + added <= most && add(run, lower);
        if (prepared) {
            lengthen(run, lower);
        }
        unmark(lower);
        return prepared;
    }

    private boolean prepareMaps(int run, int lower, int most) {
        final int count = tree.differingHolders(run, lower, differing);
        if (count == RadixTree.NO_HOLDER) {
            return false;
        }
        for (int i = 0; i < count; i++) {
            if (tree.findHolder(run, differing[i]) == RadixTree.NO_HOLDER) {
                toAdd(lower, tree.findHolder(lower, differing[i]));
            }
        }
        if (tree.holders(run) + added > most || !add(run, lower)) {
            return false;
        }
        for (int i = 0; i < count; i++) {
            final int inLower = tree.findHolder(lower, differing[i]);
            lengthen(run, tree.findHolder(run, differing[i]), lower, inLower);
        }
        return true;
    }

    private void mark(int lower) {
        for (int holder = tree.lastHolder(lower);
                holder != RadixTree.NO_HOLDER;
                holder = tree.previousHolder(lower, holder)) {
            lowerHolders[tree.holderSlot(lower, holder)] = holder + 1;
        }
    }

    private void unmark(int lower) {
        for (int holder = tree.lastHolder(lower);
                holder != RadixTree.NO_HOLDER;
                holder = tree.previousHolder(lower, holder)) {
            lowerHolders[tree.holderSlot(lower, holder)] = 0;
        }
    }

    /** Lists the slots that hold the lower run only; those of both get their mark negated. */
    private void findAdded(int run, int lower) {
        for (int holder = tree.lastHolder(run);
                holder != RadixTree.NO_HOLDER;
                holder = tree.previousHolder(run, holder)) {
            final int slot = tree.holderSlot(run, holder);
            lowerHolders[slot] = -lowerHolders[slot];
        }
        for (int holder = tree.lastHolder(lower);
                holder != RadixTree.NO_HOLDER;
                holder = tree.previousHolder(lower, holder)) {
            if (lowerHolders[tree.holderSlot(lower, holder)] > 0) {
                toAdd(lower, holder);
            }
        }
    }

    private void toAdd(int lower, int holder) {
        slots[added] = tree.holderSlot(lower, holder);
        heldRuns[added++] = tree.holderTag(lower, holder);
    }

    /** Adds the slots listed, of which none holds the run's first block; all or none. */
    private boolean add(int run, int lower) {
        final int length = tree.length(run) + tree.length(lower);
        for (int i = 0; i < added; i++) {
            if (tree.addHolder(run, slots[i], 0, heldRuns[i], length) == RadixTree.NO_HOLDER) {
                while (--i >= 0) {
                    tree.removeHolder(run, tree.findHolder(run, slots[i]));
                }
                tree.fitHolders(run, tree.length(run));
                return false;
            }
        }
        return true;
    }

    private void lengthen(int run, int lower) {
        for (int holder = tree.lastHolder(run);
                holder != RadixTree.NO_HOLDER;
                holder = tree.previousHolder(run, holder)) {
            final int inLower = Math.abs(lowerHolders[tree.holderSlot(run, holder)]) - 1;
            lengthen(run, holder, lower, inLower);
        }
    }

    /** Corrects the holder of a slot that holds all of the run. */
    private void lengthen(int run, int holder, int lower, int inLower) {
        final int length = tree.length(run);
        if (tree.holderLeading(run, holder) >= length) {
            final int more =
                    inLower == RadixTree.NO_HOLDER ? 0 : tree.holderLeading(lower, inLower);
            tree.setHolder(
                    run,
                    holder,
                    tree.holderSlot(run, holder),
                    length + more,
                    tree.holderTag(run, holder),
                    length + tree.length(lower));
        }
    }
}
