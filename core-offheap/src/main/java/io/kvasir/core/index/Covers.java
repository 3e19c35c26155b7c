package io.kvasir.core.index;

import static io.kvasir.core.index.Holdings.NONE;

import io.kvasir.core.memory.WriterCounter;

/**
 * Keeps the runs of the tree, the covers that readers see and the holdings of the slots in
 * agreement. Writer thread only.
 *
 * <p>A slot has a cover on exactly those runs of which it holds a block; the cover says how many
 * leading blocks, and its tag names the holding. A run ends at the last block that a slot holds,
 * unless it has children: what nobody holds any more behind that is given back at once.
 */
final class Covers {
    private final RunTree tree;
    private final Holdings[] slots;
    private final WriterCounter blocks = new WriterCounter();

    /** Where a slot was found last: one event asks for the same cover again and again. */
    private int seenRun = RunTree.NONE;

    private int seenCover;

    Covers(RunTree tree, Holdings[] slots) {
        this.tree = tree;
        this.slots = slots;
    }

    /** Distinct blocks that a slot holds; any thread. */
    long blocks() {
        return blocks.get();
    }

    /** Notes that blocks were appended to a run that nobody holds yet. */
    void appended(int run, int count) {
        tree.unheld(run, tree.unheld(run) + count);
    }

    /** Cover of a run by a slot, or {@link RunTree#NO_COVER}. */
    private int cover(int run, int slot) {
        if (run != seenRun || !tree.isCover(run, seenCover, slot)) {
            seenRun = run;
            seenCover = tree.findCover(run, slot);
            if (seenCover == RunTree.NO_COVER) {
                seenRun = RunTree.NONE;
            }
        }
        return seenCover;
    }

    /** Holding of the array of a run by a slot, or {@link Holdings#NONE}. */
    int findHolding(int run, int slot) {
        final int cover = cover(run, slot);
        if (cover >= 0) {
            return tree.coverTag(run, cover);
        }
        for (int r = tree.previousPiece(run); r != RunTree.NONE; r = tree.previousPiece(r)) {
            final int found = cover(r, slot);
            if (found >= 0) {
                return tree.coverTag(r, found);
            }
        }
        for (int r = tree.nextPiece(run); r != RunTree.NONE; r = tree.nextPiece(r)) {
            final int found = cover(r, slot);
            if (found >= 0) {
                return tree.coverTag(r, found);
            }
        }
        return NONE;
    }

    /**
     * Makes ready to hold places that the slot does not hold.
     *
     * @return false when there is no memory for it; then {@link #abandon} must follow
     */
    boolean prepare(int run, int slot, int holding, int place) {
        return slots[slot].prepareBits(holding, place)
                && (cover(run, slot) >= 0 || addCover(run, slot, holding));
    }

    private boolean addCover(int run, int slot, int holding) {
        seenCover = tree.addCover(run, slot, 0, holding);
        seenRun = seenCover == RunTree.NO_COVER ? RunTree.NONE : run;
        return seenCover != RunTree.NO_COVER;
    }

    /**
     * Takes back what {@link #prepare} has made of something that came to nothing.
     *
     * @return whether the holding is gone with it
     */
    boolean abandon(int run, int slot, int holding) {
        final Holdings mine = slots[slot];
        final int cover = cover(run, slot);
        final int first = tree.first(run);
        final int end = first + tree.length(run);
        if (cover >= 0 && mine.next(holding, first, end, true) == end) {
            tree.removeCover(run, cover);
            tree.fitCovers(run);
        }
        return freeIfEmpty(mine, holding);
    }

    /** Brings a run up to date after the slot's holding got blocks that it did not have. */
    void held(int run, int offset, int count, int slot, int holding) {
        final int unheld = tree.unheld(run);
        if (unheld > 0) {
            final int regained = count - heldByOthers(run, offset, offset + count, slot);
            tree.unheld(run, unheld - regained);
            blocks.add(regained);
        }
        tree.setCover(run, cover(run, slot), slot, leading(run, slots[slot], holding), holding);
    }

    /** Last held place of what a slot holds before an array, or {@link Holdings#NONE}. */
    int lastBefore(int slot, int holding) {
        final int first = tree.pieceAt(slots[slot].run(holding), 0);
        final int above = tree.parent(first);
        final int cover = cover(above, slot);
        if (cover < 0) {
            return NONE;
        }
        final int before = tree.coverTag(above, cover);
        return HoldingDescriptor.position(before, slots[slot].high(before) - 1);
    }

    /** Lets a slot go of the last blocks of a solid holding. Frees the holding with its last. */
    void letGoLast(int slot, int holding, int count) {
        final Holdings mine = slots[slot];
        int high = mine.high(holding);
        final int newHigh = high - count;
        int run = tree.pieceAt(mine.run(holding), high - 1);
        mine.dropLast(holding, count);
        while (true) {
            final int first = tree.first(run);
            final int above = tree.previousPiece(run);
            final int from = Math.max(first, newHigh);
            letGo(run, from - first, high - first, slot, holding);
            if (first <= newHigh) {
                break;
            }
            run = above;
            high = first;
        }
        freeIfEmpty(mine, holding);
    }

    /**
     * Lets a slot go of one held place. Frees the holding with its last.
     *
     * @return false when there is no memory to note the hole; nothing has changed then
     */
    boolean letGoOne(int slot, int holding, int place) {
        final Holdings mine = slots[slot];
        final int run = tree.pieceAt(mine.run(holding), place);
        if (!mine.drop(holding, place)) {
            return false;
        }
        final int offset = place - tree.first(run);
        letGo(run, offset, offset + 1, slot, holding);
        freeIfEmpty(mine, holding);
        return true;
    }

    private static boolean freeIfEmpty(Holdings mine, int holding) {
        if (mine.held(holding) > 0) {
            return false;
        }
        mine.free(holding);
        return true;
    }

    /** Brings a run up to date after a holding has let go of its blocks {@code from..to - 1}. */
    private void letGo(int run, int from, int to, int slot, int holding) {
        final Holdings mine = slots[slot];
        final int first = tree.first(run);
        final int end = first + tree.length(run);
        final int cover = cover(run, slot);
        if (mine.next(holding, first, end, true) == end) {
            tree.removeCover(run, cover);
            tree.fitCovers(run);
            if (mine.run(holding) == run && mine.held(holding) > 0) {
                mine.run(holding, tree.pieceAt(run, mine.low(holding)));
            }
        } else {
            tree.setCover(run, cover, slot, leading(run, mine, holding), holding);
        }
        final int lost = to - from - heldByOthers(run, from, to, slot);
        if (lost > 0) {
            tree.unheld(run, tree.unheld(run) + lost);
            blocks.add(-lost);
            trim(run);
        }
    }

    /** Gives back what nobody holds at the end of a path, upward. */
    void trim(int bottom) {
        int run = bottom;
        while (run != tree.root() && tree.childCount(run) == 0 && tree.unheld(run) > 0) {
            final int length = tree.length(run);
            if (tree.covers(run) == 0) {
                final int parent = tree.parent(run);
                tree.remove(run);
                run = parent;
                continue;
            }
            final int gone = length - heldLength(run, length);
            if (gone > 0) {
                tree.unheld(run, tree.unheld(run) - gone);
                tree.truncate(run, length - gone);
            }
            return;
        }
    }

    /** Blocks of a run up to the last one that a slot holds. */
    private int heldLength(int run, int length) {
        int longest = 0;
        for (int cover = tree.lastCover(run);
                cover != RunTree.NO_COVER && longest < length;
                cover = tree.previousCover(run, cover)) {
            final int high = slots[tree.coverSlot(run, cover)].high(tree.coverTag(run, cover));
            longest = Math.max(longest, Math.min(length, high - tree.first(run)));
        }
        return longest;
    }

    /** How many blocks {@code from..to - 1} of a run are held by slots other than one. */
    private int heldByOthers(int run, int from, int to, int slot) {
        final int first = tree.first(run);
        boolean some = false;
        for (int cover = tree.lastCover(run);
                cover != RunTree.NO_COVER;
                cover = tree.previousCover(run, cover)) {
            final int other = tree.coverSlot(run, cover);
            if (other != slot) {
                if (tree.coverLeading(run, cover) >= to) {
                    return to - from;
                }
                final int holding = tree.coverTag(run, cover);
                some |= slots[other].next(holding, first + from, first + to, true) < first + to;
            }
        }
        int held = 0;
        for (int b = from; some && b < to; b++) {
            held += isHeldByOther(run, first + b, slot) ? 1 : 0;
        }
        return held;
    }

    /** Whether any slot holds a block of a run. */
    boolean isHeld(int run, int offset) {
        return tree.unheld(run) == 0 || isHeldByOther(run, tree.first(run) + offset, NONE);
    }

    private boolean isHeldByOther(int run, int place, int slot) {
        for (int cover = tree.lastCover(run);
                cover != RunTree.NO_COVER;
                cover = tree.previousCover(run, cover)) {
            final int other = tree.coverSlot(run, cover);
            if (other != slot && slots[other].holds(tree.coverTag(run, cover), place)) {
                return true;
            }
        }
        return false;
    }

    /**
     * Splits a run, so that it ends after {@code at} blocks.
     *
     * @return false when there is no memory; nothing has changed then
     */
    boolean split(int run, int at) {
        final int lower = tree.beginSplit(run, at);
        if (lower == RunTree.NONE) {
            return false;
        }
        final int first = tree.first(lower);
        final int end = first + tree.length(lower);
        for (int cover = tree.lastCover(run);
                cover != RunTree.NO_COVER;
                cover = tree.previousCover(run, cover)) {
            final int slot = tree.coverSlot(run, cover);
            final int holding = tree.coverTag(run, cover);
            if (slots[slot].next(holding, first, end, true) < end
                    && tree.addCover(lower, slot, leading(lower, slots[slot], holding), holding)
                            == RunTree.NO_COVER) {
                tree.cancelSplit(lower);
                return false;
            }
        }
        if (tree.unheld(run) > 0) {
            final int unheld = end - first - heldByOthers(lower, 0, end - first, NONE);
            tree.unheld(lower, unheld);
            tree.unheld(run, tree.unheld(run) - unheld);
        }
        tree.finishSplit(run, lower);
        for (int cover = tree.lastCover(run);
                cover != RunTree.NO_COVER;
                cover = tree.previousCover(run, cover)) {
            final int slot = tree.coverSlot(run, cover);
            final int holding = tree.coverTag(run, cover);
            final Holdings mine = slots[slot];
            if (mine.next(holding, tree.first(run), first, true) == first) {
                tree.removeCover(run, cover);
                mine.run(holding, lower);
            } else {
                tree.setCover(run, cover, slot, leading(run, mine, holding), holding);
            }
        }
        tree.fitCovers(run);
        return true;
    }

    /** Leading blocks of a run that a holding of its array has. */
    private int leading(int run, Holdings mine, int holding) {
        final int first = tree.first(run);
        return mine.next(holding, first, first + tree.length(run), false) - first;
    }
}
