package io.kvasir.core.index;

import static io.kvasir.core.index.HeldRuns.NONE;

import io.kvasir.core.memory.BuddyArena;
import io.kvasir.core.memory.WriterCounter;
import io.kvasir.core.radix.RadixTree;

/**
 * Keeps the runs of the tree, the covers that readers see and the holdings of the slots in
 * agreement. Writer thread only.
 *
 * <p>A slot has a cover on exactly those runs of which it holds a block; the cover says how many
 * leading blocks, and its tag names the holding. A run ends at the last block that a slot holds,
 * unless it has children: what nobody holds any more behind that is given back at once.
 */
final class HolderConsistency {
    /** Holders of the lower piece of a split that are added one by one. */
    private static final int FEW_COVERS = 64;

    private final RadixTree tree;
    private final HeldRuns[] slots;
    private final HolderCounts holders;
    private final HolderJoin joined;
    private final WriterCounter blocks = new WriterCounter();

    /** Where a slot was found last: one event asks for the same cover again and again. */
    private int seenRun = RadixTree.NONE;

    private int seenCover;

    private long asked;

    HolderConsistency(BuddyArena arena, RadixTree tree, HeldRuns[] slots) {
        this.tree = tree;
        this.slots = slots;
        this.holders = new HolderCounts(arena, tree);
        this.joined = new HolderJoin(tree, slots.length);
    }

    /** Distinct blocks that a slot holds; any thread. */
    long blocks() {
        return blocks.get();
    }

    /** Holders and blocks asked one by one since the beginning; for tests. */
    long steps() {
        return asked;
    }

    /** Notes that blocks were appended to a run that nobody holds yet. */
    void appended(int run, int count) {
        tree.unheld(run, tree.unheld(run) + count);
    }

    /** Cover of a run by a slot, or {@link RadixTree#NO_COVER}. */
    private int cover(int run, int slot) {
        if (run != seenRun || !tree.isCover(run, seenCover, slot)) {
            seenRun = run;
            seenCover = tree.findCover(run, slot);
            if (seenCover == RadixTree.NO_COVER) {
                seenRun = RadixTree.NONE;
            }
        }
        return seenCover;
    }

    /** Holding of the array of a run by a slot, or {@link HeldRuns#NONE}. */
    int findHolding(int run, int slot) {
        final int cover = cover(run, slot);
        if (cover >= 0) {
            return tree.coverTag(run, cover);
        }
        int first = run;
        for (int r = tree.previousPiece(run); r != RadixTree.NONE; r = tree.previousPiece(r)) {
            asked++;
            final int found = cover(r, slot);
            if (found >= 0) {
                return tree.coverTag(r, found);
            }
            first = r;
        }
        if (!tree.isHeadless(first)) {
            return NONE; // every slot that holds a block of the array covers its first piece
        }
        for (int r = tree.nextPiece(run); r != RadixTree.NONE; r = tree.nextPiece(r)) {
            asked++;
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
        seenRun = RadixTree.NONE;
        if (tree.covers(run) >= HolderCounts.FEW && !holders.has(run) && !count(run)) {
            return false;
        }
        seenCover = tree.addCover(run, slot, 0, holding);
        if (seenCover == RadixTree.NO_COVER) {
            return false;
        }
        seenRun = run;
        final HeldRuns mine = slots[slot];
        if (tree.first(run) < tree.first(mine.run(holding))) {
            mine.run(holding, run); // the first one that it covers
        }
        if (mine.held(holding) == 0 && tree.previousPiece(run) != RadixTree.NONE) {
            tree.markHeadless(tree.pieceAt(run, 0));
        }
        return true;
    }

    /**
     * Takes back what {@link #prepare} has made of something that came to nothing.
     *
     * @return whether the holding is gone with it
     */
    boolean abandon(int run, int slot, int holding) {
        final HeldRuns mine = slots[slot];
        final int cover = cover(run, slot);
        final int first = tree.first(run);
        final int end = first + tree.length(run);
        if (cover >= 0 && mine.next(holding, first, end, true) == end) {
            removeCover(run, cover, mine, holding);
        }
        return freeIfEmpty(mine, holding);
    }

    /** Brings a run up to date after the slot's holding got blocks that it did not have. */
    void held(int run, int offset, int count, int slot, int holding) {
        final int regained = gain(run, offset, offset + count, slot);
        tree.unheld(run, tree.unheld(run) - regained);
        blocks.add(regained);
        tree.setCover(run, cover(run, slot), slot, leading(run, slots[slot], holding), holding);
    }

    /** Counts a slot among the holders of blocks; says how many of them had none. */
    private int gain(int run, int from, int to, int slot) {
        if (holders.has(run)) {
            return holders.add(run, from, to);
        }
        return tree.unheld(run) == 0 ? 0 : to - from - heldByOthers(run, from, to, slot);
    }

    /** Counts the holders of an array; false when there is no memory for it. */
    private boolean count(int run) {
        if (!holders.make(run)) {
            return false;
        }
        for (int piece = tree.pieceAt(run, 0); piece != RadixTree.NONE; ) {
            final int first = tree.first(piece);
            final int end = first + tree.length(piece);
            for (int cover = tree.lastCover(piece);
                    cover != RadixTree.NO_COVER;
                    cover = tree.previousCover(piece, cover)) {
                final HeldRuns held = slots[tree.coverSlot(piece, cover)];
                final int holding = tree.coverTag(piece, cover);
                int place = held.next(holding, first, end, true);
                while (place < end) {
                    final int next = held.next(holding, place, end, false);
                    holders.add(piece, place - first, next - first);
                    place = held.next(holding, next, end, true);
                }
            }
            piece = tree.nextPiece(piece);
        }
        return true;
    }

    /** Last held place of what a slot holds before an array, or {@link HeldRuns#NONE}. */
    int lastBefore(int slot, int holding) {
        final int first = tree.pieceAt(slots[slot].run(holding), 0);
        final int above = tree.parent(first);
        final int cover = cover(above, slot);
        if (cover < 0) {
            return NONE;
        }
        final int before = tree.coverTag(above, cover);
        return HeldRunDescriptor.position(before, slots[slot].high(before) - 1);
    }

    /** Lets a slot go of the last blocks of a solid holding. Frees the holding with its last. */
    void letGoLast(int slot, int holding, int count) {
        final HeldRuns mine = slots[slot];
        int high = mine.high(holding);
        final int newHigh = high - count;
        int run = tree.pieceAt(mine.run(holding), high - 1);
        final int bottom = run;
        int lost = 0;
        mine.dropLast(holding, count);
        while (true) {
            final int first = tree.first(run);
            final int from = Math.max(first, newHigh);
            lost += letGo(run, from - first, high - first, slot, holding);
            if (first <= newHigh) {
                break;
            }
            run = tree.previousPiece(run);
            high = first;
        }
        freeIfEmpty(mine, holding);
        if (lost > 0) {
            trim(bottom);
        }
    }

    /**
     * Lets a slot go of one held place. Frees the holding with its last.
     *
     * @return false when there is no memory to note the hole; nothing has changed then
     */
    boolean letGoOne(int slot, int holding, int place) {
        final HeldRuns mine = slots[slot];
        final int run = tree.pieceAt(mine.run(holding), place);
        if (!mine.drop(holding, place)) {
            return false;
        }
        final int offset = place - tree.first(run);
        final int lost = letGo(run, offset, offset + 1, slot, holding);
        freeIfEmpty(mine, holding);
        if (lost > 0) {
            trim(run);
        }
        return true;
    }

    private void removeCover(int run, int cover, HeldRuns mine, int holding) {
        tree.removeCover(run, cover);
        tree.fitCovers(run, tree.length(run));
        holders.fit(run);
        if (mine.run(holding) == run && mine.held(holding) > 0) {
            mine.run(holding, tree.pieceAt(run, mine.low(holding)));
            tree.markHeadless(run);
        }
    }

    private static boolean freeIfEmpty(HeldRuns mine, int holding) {
        if (mine.held(holding) > 0) {
            return false;
        }
        mine.free(holding);
        return true;
    }

    /**
     * Brings a run up to date after a holding has let go of its blocks {@code from..to - 1}.
     *
     * @return how many of them no slot holds any more; where any is, {@link #trim} must follow
     */
    private int letGo(int run, int from, int to, int slot, int holding) {
        final HeldRuns mine = slots[slot];
        final int first = tree.first(run);
        final int end = first + tree.length(run);
        final int cover = cover(run, slot);
        final int lost =
                holders.has(run)
                        ? holders.take(run, from, to)
                        : to - from - heldByOthers(run, from, to, slot);
        if (mine.next(holding, first, end, true) == end) {
            removeCover(run, cover, mine, holding);
        } else {
            tree.setCover(run, cover, slot, leading(run, mine, holding), holding);
        }
        tree.unheld(run, tree.unheld(run) + lost);
        blocks.add(-lost);
        return lost;
    }

    /** Gives back what no slot holds at the end of a path, upward, and joins what is left. */
    void trim(int bottom) {
        join(cut(bottom));
    }

    /** Gives back what no slot holds at the end of a path; says where the path ends then. */
    private int cut(int bottom) {
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
            break;
        }
        return run;
    }

    /** Undoes the splits at both ends of a run that have no reason any more. */
    private void join(int run) {
        joinNext(run);
        final int above = tree.previousPiece(run);
        if (above != RadixTree.NONE) {
            joinNext(above);
        }
    }

    /** Joins a run with its next piece, if it has no other child and that is not too much work. */
    private void joinNext(int run) {
        final int lower = tree.nextPiece(run);
        if (lower == RadixTree.NONE
                || tree.childCount(run) != 1
                || !joined.prepare(run, holders.has(run) ? Integer.MAX_VALUE : HolderCounts.FEW)) {
            return;
        }
        for (int i = 0; i < joined.added(); i++) {
            final HeldRuns mine = slots[joined.slot(i)];
            if (mine.run(joined.holding(i)) == lower) {
                mine.run(joined.holding(i), run);
            }
        }
        tree.join(run);
        holders.fit(run);
    }

    /** Blocks of a run up to the last one that a slot holds. */
    private int heldLength(int run, int length) {
        if (holders.has(run)) {
            int end = length;
            while (end > 0 && holders.of(run, end - 1) == 0) {
                end--;
                asked++;
            }
            return end;
        }
        int longest = 0;
        for (int cover = tree.lastCover(run);
                cover != RadixTree.NO_COVER && longest < length;
                cover = tree.previousCover(run, cover)) {
            final int high = slots[tree.coverSlot(run, cover)].high(tree.coverTag(run, cover));
            longest = Math.max(longest, Math.min(length, high - tree.first(run)));
        }
        return longest;
    }

    /** How many blocks {@code from..to - 1} of a run are held by slots other than one. */
    private int heldByOthers(int run, int from, int to, int slot) {
        if (slot == NONE && holders.has(run)) {
            return holders.held(run, from, to, 1);
        }
        final int first = tree.first(run);
        boolean some = false;
        for (int cover = tree.lastCover(run);
                cover != RadixTree.NO_COVER;
                cover = tree.previousCover(run, cover)) {
            final int other = tree.coverSlot(run, cover);
            asked++;
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
        if (tree.unheld(run) == 0) {
            return true;
        }
        return holders.has(run)
                ? holders.of(run, offset) > 0
                : isHeldByOther(run, tree.first(run) + offset, NONE);
    }

    private boolean isHeldByOther(int run, int place, int slot) {
        for (int cover = tree.lastCover(run);
                cover != RadixTree.NO_COVER;
                cover = tree.previousCover(run, cover)) {
            final int other = tree.coverSlot(run, cover);
            asked++;
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
        if (lower == RadixTree.NONE) {
            return false;
        }
        if (!coverLower(run, at, lower)) {
            tree.cancelSplit(lower);
            return false;
        }
        if (tree.unheld(run) > 0) {
            final int length = tree.length(lower);
            final int unheld = length - heldByOthers(lower, 0, length, NONE);
            tree.unheld(lower, unheld);
            tree.unheld(run, tree.unheld(run) - unheld);
        }
        tree.finishSplit(run, lower);
        uncoverUpper(run, at, lower);
        tree.fitCovers(run, at);
        tree.fitCovers(lower, tree.length(lower));
        return true;
    }

    /** Adds the covers of the lower piece of a split; false when there is no memory. */
    private boolean coverLower(int run, int at, int lower) {
        final int first = tree.first(lower);
        final int end = first + tree.length(lower);
        final boolean copied = tree.hasCoverMap(run) && tree.covers(run) > FEW_COVERS;
        if (copied && !tree.copyWholeCovers(run, lower)) {
            return false;
        }
        for (int cover = copied ? tree.lastCoverNotWhole(run) : tree.lastCover(run);
                cover != RadixTree.NO_COVER;
                cover =
                        copied
                                ? tree.previousCoverNotWhole(run, cover)
                                : tree.previousCover(run, cover)) {
            asked++;
            final int slot = tree.coverSlot(run, cover);
            final int holding = tree.coverTag(run, cover);
            int leading = tree.coverLeading(run, cover) - at;
            if (leading <= 0) {
                if (slots[slot].next(holding, first, end, true) == end) {
                    continue;
                }
                leading = leading(lower, slots[slot], holding);
            }
            if (tree.addCover(lower, slot, leading, holding) == RadixTree.NO_COVER) {
                return false;
            }
        }
        return true;
    }

    /** Corrects the covers of the upper piece after a split. */
    private void uncoverUpper(int run, int at, int lower) {
        final int first = tree.first(run);
        final int end = first + at;
        for (int cover = tree.lastCoverNotWhole(run);
                cover != RadixTree.NO_COVER;
                cover = tree.previousCoverNotWhole(run, cover)) {
            asked++;
            final int slot = tree.coverSlot(run, cover);
            final int holding = tree.coverTag(run, cover);
            final int leading = tree.coverLeading(run, cover);
            final HeldRuns mine = slots[slot];
            if (leading >= at) {
                tree.setCover(run, cover, slot, at, holding);
            } else if (leading == 0 && mine.next(holding, first, end, true) == end) {
                tree.removeCover(run, cover);
                if (mine.run(holding) == run) {
                    mine.run(holding, lower);
                    tree.markHeadless(run);
                }
            }
        }
    }

    /** Leading blocks of a run that a holding of its array has. */
    private int leading(int run, HeldRuns mine, int holding) {
        final int first = tree.first(run);
        return mine.next(holding, first, first + tree.length(run), false) - first;
    }
}
