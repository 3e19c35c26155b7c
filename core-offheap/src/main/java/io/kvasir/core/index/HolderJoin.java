package io.kvasir.core.index;

import io.kvasir.core.radix.RadixTree;

/**
 * Makes the covers of a run right for what it is about to be joined with, its next piece. They are
 * right for the run alone, too: a reader takes no more of a cover than it has matched. Who holds
 * all of the run holds what it holds of the next piece behind it; all others hold no more than
 * before. So the holdings are not looked at, and where both have maps only slots that do not hold
 * all of both are. Writer thread only.
 */
final class HolderJoin {
    /** Slots of two maps that are changed one by one; beyond that the split stays. */
    private static final int MAX_DIFFERING = 128;

    /** Holders of which one run has a list that are gone through; beyond that the split stays. */
    private static final int MAX_LISTED = 1024;

    private final RadixTree tree;

    /** Of each slot, while two runs are compared: the cover of the lower one + 1, 0 = none. */
    private final int[] lowerCovers;

    private final int[] differing = new int[MAX_DIFFERING];
    private final int[] slots = new int[MAX_LISTED];
    private final int[] holdings = new int[MAX_LISTED];
    private int added;

    HolderJoin(RadixTree tree, int workerSlots) {
        this.tree = tree;
        this.lowerCovers = new int[workerSlots];
    }

    /** Slots that covered the next piece only, in the join prepared last. */
    int added() {
        return added;
    }

    /** Slot of one of them. */
    int slot(int i) {
        return slots[i];
    }

    /** What that slot holds of the array. */
    int holding(int i) {
        return holdings[i];
    }

    /**
     * Makes the covers of a run right for the run joined with its next piece.
     *
     * @param most covers that the joined run may have
     * @return false when it would be too much work, too many covers, or there is no memory; the
     *     covers say what they said before then
     */
    boolean prepare(int run, int most) {
        final int lower = tree.nextPiece(run);
        added = 0;
        if (tree.hasCoverMap(run) && tree.hasCoverMap(lower)) {
            return prepareMaps(run, lower, most);
        }
        if (tree.covers(run) + tree.covers(lower) > MAX_LISTED) {
            return false;
        }
        mark(lower);
        findAdded(run, lower);
        final boolean prepared = tree.covers(run) + added <= most && add(run, lower);
        if (prepared) {
            lengthen(run, lower);
        }
        unmark(lower);
        return prepared;
    }

    private boolean prepareMaps(int run, int lower, int most) {
        final int count = tree.differingCovers(run, lower, differing);
        if (count == RadixTree.NO_COVER) {
            return false;
        }
        for (int i = 0; i < count; i++) {
            if (tree.findCover(run, differing[i]) == RadixTree.NO_COVER) {
                toAdd(lower, tree.findCover(lower, differing[i]));
            }
        }
        if (tree.covers(run) + added > most || !add(run, lower)) {
            return false;
        }
        for (int i = 0; i < count; i++) {
            final int inLower = tree.findCover(lower, differing[i]);
            lengthen(run, tree.findCover(run, differing[i]), lower, inLower);
        }
        return true;
    }

    private void mark(int lower) {
        for (int cover = tree.lastCover(lower);
                cover != RadixTree.NO_COVER;
                cover = tree.previousCover(lower, cover)) {
            lowerCovers[tree.coverSlot(lower, cover)] = cover + 1;
        }
    }

    private void unmark(int lower) {
        for (int cover = tree.lastCover(lower);
                cover != RadixTree.NO_COVER;
                cover = tree.previousCover(lower, cover)) {
            lowerCovers[tree.coverSlot(lower, cover)] = 0;
        }
    }

    /** Lists the slots that cover the lower run only; those of both get their mark negated. */
    private void findAdded(int run, int lower) {
        for (int cover = tree.lastCover(run);
                cover != RadixTree.NO_COVER;
                cover = tree.previousCover(run, cover)) {
            final int slot = tree.coverSlot(run, cover);
            lowerCovers[slot] = -lowerCovers[slot];
        }
        for (int cover = tree.lastCover(lower);
                cover != RadixTree.NO_COVER;
                cover = tree.previousCover(lower, cover)) {
            if (lowerCovers[tree.coverSlot(lower, cover)] > 0) {
                toAdd(lower, cover);
            }
        }
    }

    private void toAdd(int lower, int cover) {
        slots[added] = tree.coverSlot(lower, cover);
        holdings[added++] = tree.coverTag(lower, cover);
    }

    /** Adds the slots listed, of which none holds the run's first block; all or none. */
    private boolean add(int run, int lower) {
        final int length = tree.length(run) + tree.length(lower);
        for (int i = 0; i < added; i++) {
            if (tree.addCover(run, slots[i], 0, holdings[i], length) == RadixTree.NO_COVER) {
                while (--i >= 0) {
                    tree.removeCover(run, tree.findCover(run, slots[i]));
                }
                tree.fitCovers(run, tree.length(run));
                return false;
            }
        }
        return true;
    }

    private void lengthen(int run, int lower) {
        for (int cover = tree.lastCover(run);
                cover != RadixTree.NO_COVER;
                cover = tree.previousCover(run, cover)) {
            final int inLower = Math.abs(lowerCovers[tree.coverSlot(run, cover)]) - 1;
            lengthen(run, cover, lower, inLower);
        }
    }

    /** Corrects the cover of a slot that holds all of the run. */
    private void lengthen(int run, int cover, int lower, int inLower) {
        final int length = tree.length(run);
        if (tree.coverLeading(run, cover) >= length) {
            final int more = inLower == RadixTree.NO_COVER ? 0 : tree.coverLeading(lower, inLower);
            tree.setCover(
                    run,
                    cover,
                    tree.coverSlot(run, cover),
                    length + more,
                    tree.coverTag(run, cover),
                    length + tree.length(lower));
        }
    }
}
