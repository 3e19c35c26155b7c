package io.kvasir.core.index;

import static io.kvasir.core.index.HeldRunDescriptor.NO_POSITION;
import static io.kvasir.core.index.HeldRuns.NO_HELD_RUN;

import io.kvasir.core.memory.BuddyArena;
import io.kvasir.core.memory.KeptWords;
import io.kvasir.core.memory.WriterCounter;
import io.kvasir.core.radix.RadixTree;

/**
 * Keeps the runs of the tree, the holders that readers see and the held runs of the slots in
 * agreement. Writer thread only.
 *
 * <p>A slot has a holder on exactly those runs of which it holds a block; the holder says how many
 * leading blocks, and its tag names the held run. A run ends at the last block that a slot holds,
 * unless it has children: blocks after it that no slot holds are given back at once.
 */
final class HolderConsistency {
    /** Holders of the lower segment of a split that are added one by one. */
    private static final int FEW_HOLDERS = 64;

    /** Stands for no slot where one is to be left out. */
    private static final int NO_SLOT = -1;

    private final RadixTree tree;
    private final HeldRuns[] slots;
    private final HolderCounts holders;
    private final HolderJoin joined;
    private final WriterCounter blocks = new WriterCounter();

    /** Run of the holder that was found last: one event asks for the same again and again. */
    private int seenRun = RadixTree.NO_RUN;

    private int seenHolder;

    private long asked;

    HolderConsistency(BuddyArena arena, RadixTree tree, HeldRuns[] slots) {
        this.tree = tree;
        this.slots = slots;
        this.holders = new HolderCounts(arena, tree);
        this.joined = new HolderJoin(tree, slots.length);
    }

    /** Names what there is beside runs, holders and held runs. */
    void keep(KeptWords words) {
        words.keep(blocks);
    }

    /** Distinct blocks that a slot holds; any thread. */
    long blocks() {
        return blocks.get();
    }

    /** Holders and blocks asked one by one since the beginning; for tests. */
    long steps() {
        return asked;
    }

    /** Counts blocks that were appended to a run and that no slot holds yet. */
    void appended(int run, int count) {
        tree.unheld(run, tree.unheld(run) + count);
    }

    /** Holder of a run by a slot, or {@link RadixTree#NO_HOLDER}. */
    private int holder(int run, int slot) {
        if (run != seenRun || !tree.isHolder(run, seenHolder, slot)) {
            seenRun = run;
            seenHolder = tree.findHolder(run, slot);
            if (seenHolder == RadixTree.NO_HOLDER) {
                seenRun = RadixTree.NO_RUN;
            }
        }
        return seenHolder;
    }

    /** Held run of the array of a run by a slot, or {@link HeldRuns#NO_HELD_RUN}. */
    int findHeldRun(int run, int slot) {
        final int holder = holder(run, slot);
        if (holder >= 0) {
            return tree.holderTag(run, holder);
        }
        int first = run;
        for (int r = tree.previousSegment(run);
                r != RadixTree.NO_RUN;
                r = tree.previousSegment(r)) {
            asked++;
            final int found = holder(r, slot);
            if (found >= 0) {
                return tree.holderTag(r, found);
            }
            first = r;
        }
        if (!tree.isHeadless(first)) {
            // every slot that holds a block of the array holds one of its first segment
            return NO_HELD_RUN;
        }
        for (int r = tree.nextSegment(run); r != RadixTree.NO_RUN; r = tree.nextSegment(r)) {
            asked++;
            final int found = holder(r, slot);
            if (found >= 0) {
                return tree.holderTag(r, found);
            }
        }
        return NO_HELD_RUN;
    }

    /**
     * Makes ready to hold blocks that the slot does not hold.
     *
     * @return false when there is no memory for it; then {@link #abandon} must follow
     */
    boolean prepare(int run, int slot, int heldRun, int arrayOffset) {
        return slots[slot].prepareBits(heldRun, arrayOffset)
                && (holder(run, slot) >= 0 || addHolder(run, slot, heldRun));
    }

    private boolean addHolder(int run, int slot, int heldRun) {
        seenRun = RadixTree.NO_RUN;
        if (tree.holders(run) >= HolderCounts.FEW && !holders.has(run) && !count(run)) {
            return false;
        }
        seenHolder = tree.addHolder(run, slot, 0, heldRun);
        if (seenHolder == RadixTree.NO_HOLDER) {
            return false;
        }
        seenRun = run;
        final HeldRuns mine = slots[slot];
        if (tree.first(run) < tree.first(mine.run(heldRun))) {
            mine.run(heldRun, run); // the first one that it holds
        }
        if (mine.held(heldRun) == 0 && tree.previousSegment(run) != RadixTree.NO_RUN) {
            tree.markHeadless(tree.segmentAt(run, 0));
        }
        return true;
    }

    /**
     * Takes back what {@link #prepare} has made of something that came to nothing.
     *
     * @return whether the held run was freed with it
     */
    boolean abandon(int run, int slot, int heldRun) {
        final HeldRuns mine = slots[slot];
        final int holder = holder(run, slot);
        final int first = tree.first(run);
        final int end = first + tree.length(run);
        if (holder >= 0 && mine.next(heldRun, first, end, true) == end) {
            removeHolder(run, holder, mine, heldRun);
        }
        return freeIfEmpty(mine, heldRun);
    }

    /** Brings a run up to date after the slot's held run got blocks that it did not have. */
    void held(int run, int offset, int count, int slot, int heldRun) {
        final int regained = gain(run, offset, offset + count, slot);
        tree.unheld(run, tree.unheld(run) - regained);
        tree.setHolder(run, holder(run, slot), slot, leading(run, slots[slot], heldRun), heldRun);
        blocks.add(regained); // after the holder: blocks that are counted can be matched
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
        for (int segment = tree.segmentAt(run, 0); segment != RadixTree.NO_RUN; ) {
            final int first = tree.first(segment);
            final int end = first + tree.length(segment);
            for (int holder = tree.lastHolder(segment);
                    holder != RadixTree.NO_HOLDER;
                    holder = tree.previousHolder(segment, holder)) {
                final HeldRuns held = slots[tree.holderSlot(segment, holder)];
                final int heldRun = tree.holderTag(segment, holder);
                int arrayOffset = held.next(heldRun, first, end, true);
                while (arrayOffset < end) {
                    final int next = held.next(heldRun, arrayOffset, end, false);
                    holders.add(segment, arrayOffset - first, next - first);
                    arrayOffset = held.next(heldRun, next, end, true);
                }
            }
            segment = tree.nextSegment(segment);
        }
        return true;
    }

    /**
     * Last held block of what a slot holds before an array, or {@link
     * HeldRunDescriptor#NO_POSITION}.
     */
    int lastBefore(int slot, int heldRun) {
        final int first = tree.segmentAt(slots[slot].run(heldRun), 0);
        final int above = tree.parent(first);
        final int holder = holder(above, slot);
        if (holder < 0) {
            return NO_POSITION;
        }
        final int before = tree.holderTag(above, holder);
        return HeldRunDescriptor.position(before, slots[slot].high(before) - 1);
    }

    /** Lets a slot go of the last blocks of a solid held run. Frees the held run with its last. */
    void letGoLast(int slot, int heldRun, int count) {
        final HeldRuns mine = slots[slot];
        int high = mine.high(heldRun);
        final int newHigh = high - count;
        int run = tree.segmentAt(mine.run(heldRun), high - 1);
        final int bottom = run;
        int lost = 0;
        mine.dropLast(heldRun, count);
        while (true) {
            final int first = tree.first(run);
            final int from = Math.max(first, newHigh);
            lost += letGo(run, from - first, high - first, slot, heldRun);
            if (first <= newHigh) {
                break;
            }
            run = tree.previousSegment(run);
            high = first;
        }
        freeIfEmpty(mine, heldRun);
        if (lost > 0) {
            trim(bottom);
        }
    }

    /**
     * Lets a slot go of one held block. Frees the held run with its last.
     *
     * @return false when there is no memory to record the hole; nothing has changed then
     */
    boolean letGoOne(int slot, int heldRun, int arrayOffset) {
        final HeldRuns mine = slots[slot];
        final int run = tree.segmentAt(mine.run(heldRun), arrayOffset);
        if (!mine.drop(heldRun, arrayOffset)) {
            return false;
        }
        final int offset = arrayOffset - tree.first(run);
        final int lost = letGo(run, offset, offset + 1, slot, heldRun);
        freeIfEmpty(mine, heldRun);
        if (lost > 0) {
            trim(run);
        }
        return true;
    }

    private void removeHolder(int run, int holder, HeldRuns mine, int heldRun) {
        tree.removeHolder(run, holder);
        tree.fitHolders(run, tree.length(run));
        holders.fit(run);
        if (mine.run(heldRun) == run && mine.held(heldRun) > 0) {
            mine.run(heldRun, tree.segmentAt(run, mine.low(heldRun)));
            tree.markHeadless(run);
        }
    }

    private static boolean freeIfEmpty(HeldRuns mine, int heldRun) {
        if (mine.held(heldRun) > 0) {
            return false;
        }
        mine.free(heldRun);
        return true;
    }

    /**
     * Brings a run up to date after a held run has let go of its blocks {@code from..to - 1}.
     *
     * @return how many of them no slot holds any more; where any is, {@link #trim} must follow
     */
    private int letGo(int run, int from, int to, int slot, int heldRun) {
        final HeldRuns mine = slots[slot];
        final int first = tree.first(run);
        final int end = first + tree.length(run);
        final int holder = holder(run, slot);
        final int lost =
                holders.has(run)
                        ? holders.take(run, from, to)
                        : to - from - heldByOthers(run, from, to, slot);
        if (mine.next(heldRun, first, end, true) == end) {
            removeHolder(run, holder, mine, heldRun);
        } else {
            tree.setHolder(run, holder, slot, leading(run, mine, heldRun), heldRun);
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
            if (tree.holders(run) == 0) {
                final int parent = tree.parent(run);
                tree.remove(run);
                run = parent;
                continue;
            }
            final int unheldEnd = length - heldLength(run, length);
            if (unheldEnd > 0) {
                tree.unheld(run, tree.unheld(run) - unheldEnd);
                tree.truncate(run, length - unheldEnd);
            }
            break;
        }
        return run;
    }

    /** Undoes the splits at both ends of a run that have no reason any more. */
    private void join(int run) {
        joinNext(run);
        final int above = tree.previousSegment(run);
        if (above != RadixTree.NO_RUN) {
            joinNext(above);
        }
    }

    /**
     * Joins a run with its next segment, if it has no other child and that is not too much work.
     */
    private void joinNext(int run) {
        final int lower = tree.nextSegment(run);
        if (lower == RadixTree.NO_RUN
                || tree.childCount(run) != 1
                || !joined.prepare(run, holders.has(run) ? Integer.MAX_VALUE : HolderCounts.FEW)) {
            return;
        }
        for (int i = 0; i < joined.added(); i++) {
            final HeldRuns mine = slots[joined.slot(i)];
            if (mine.run(joined.heldRun(i)) == lower) {
                mine.run(joined.heldRun(i), run);
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
        for (int holder = tree.lastHolder(run);
                holder != RadixTree.NO_HOLDER && longest < length;
                holder = tree.previousHolder(run, holder)) {
            final int high = slots[tree.holderSlot(run, holder)].high(tree.holderTag(run, holder));
            longest = Math.max(longest, Math.min(length, high - tree.first(run)));
        }
        return longest;
    }

    /** How many blocks {@code from..to - 1} of a run are held by slots other than one. */
    private int heldByOthers(int run, int from, int to, int slot) {
        if (slot == NO_SLOT && holders.has(run)) {
            return holders.held(run, from, to, 1);
        }
        final int first = tree.first(run);
        boolean some = false;
        for (int holder = tree.lastHolder(run);
                holder != RadixTree.NO_HOLDER;
                holder = tree.previousHolder(run, holder)) {
            final int other = tree.holderSlot(run, holder);
            asked++;
            if (other != slot) {
                if (tree.holderLeading(run, holder) >= to) {
                    return to - from;
                }
                final int heldRun = tree.holderTag(run, holder);
                some |= slots[other].next(heldRun, first + from, first + to, true) < first + to;
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
                : isHeldByOther(run, tree.first(run) + offset, NO_SLOT);
    }

    private boolean isHeldByOther(int run, int arrayOffset, int slot) {
        for (int holder = tree.lastHolder(run);
                holder != RadixTree.NO_HOLDER;
                holder = tree.previousHolder(run, holder)) {
            final int other = tree.holderSlot(run, holder);
            asked++;
            if (other != slot && slots[other].holds(tree.holderTag(run, holder), arrayOffset)) {
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
        if (lower == RadixTree.NO_RUN) {
            return false;
        }
        if (!holderLower(run, at, lower)) {
            tree.cancelSplit(lower);
            return false;
        }
        if (tree.unheld(run) > 0) {
            final int length = tree.length(lower);
            final int unheld = length - heldByOthers(lower, 0, length, NO_SLOT);
            tree.unheld(lower, unheld);
            tree.unheld(run, tree.unheld(run) - unheld);
        }
        tree.finishSplit(run, lower);
        releaseUpper(run, at, lower);
        tree.fitHolders(run, at);
        tree.fitHolders(lower, tree.length(lower));
        return true;
    }

    /** Adds the holders of the lower segment of a split; false when there is no memory. */
    private boolean holderLower(int run, int at, int lower) {
        final int first = tree.first(lower);
        final int end = first + tree.length(lower);
        final boolean copied = tree.hasHolderMap(run) && tree.holders(run) > FEW_HOLDERS;
        if (copied && !tree.copyWholeHolders(run, lower)) {
            return false;
        }
        for (int holder = copied ? tree.lastHolderNotWhole(run) : tree.lastHolder(run);
                holder != RadixTree.NO_HOLDER;
                holder =
                        copied
                                ? tree.previousHolderNotWhole(run, holder)
                                : tree.previousHolder(run, holder)) {
            asked++;
            final int slot = tree.holderSlot(run, holder);
            final int heldRun = tree.holderTag(run, holder);
            int leading = tree.holderLeading(run, holder) - at;
            if (leading <= 0) {
                if (slots[slot].next(heldRun, first, end, true) == end) {
                    continue;
                }
                leading = leading(lower, slots[slot], heldRun);
            }
            if (tree.addHolder(lower, slot, leading, heldRun) == RadixTree.NO_HOLDER) {
                return false;
            }
        }
        return true;
    }

    /** Corrects the holders of the upper segment after a split. */
    private void releaseUpper(int run, int at, int lower) {
        final int first = tree.first(run);
        final int end = first + at;
        for (int holder = tree.lastHolderNotWhole(run);
                holder != RadixTree.NO_HOLDER;
                holder = tree.previousHolderNotWhole(run, holder)) {
            asked++;
            final int slot = tree.holderSlot(run, holder);
            final int heldRun = tree.holderTag(run, holder);
            final int leading = tree.holderLeading(run, holder);
            final HeldRuns mine = slots[slot];
            if (leading >= at) {
                tree.setHolder(run, holder, slot, at, heldRun);
            } else if (leading == 0 && mine.next(heldRun, first, end, true) == end) {
                tree.removeHolder(run, holder);
                if (mine.run(heldRun) == run) {
                    mine.run(heldRun, lower);
                    tree.markHeadless(run);
                }
            }
        }
    }

    /** Leading blocks of a run that a held run of its array has. */
    private int leading(int run, HeldRuns mine, int heldRun) {
        final int first = tree.first(run);
        return mine.next(heldRun, first, first + tree.length(run), false) - first;
    }
}
