package io.kvasir.core.load;

import io.kvasir.core.memory.BuddyArena;
import io.kvasir.core.memory.OffHeap;
import io.kvasir.core.memory.WriterCounter;
import io.kvasir.core.radix.OverlapScores;
import io.kvasir.core.radix.RadixTree;

/**
 * Prompt blocks in use by running requests: every request is a path of runs, and a run has for
 * every worker slot the number of requests whose path goes through it.
 *
 * <pre>
 *   root ──[ system prompt ]──┬──[ turn 1 ]──[ turn 2 ]       slot 3: 2 1 1 0      a path ends
 *            slots 3:2, 7:1   │    3:1         3:1            at the end of a run, always
 *                             └──[ other ]                    3:1, 7:1
 * </pre>
 *
 * <p>One rule keeps it simple: a run is held as a whole or not at all. So a run that a path leaves
 * or ends in is split there, both segments with the same counts; a run is never appended to,
 * because a path that ends at its end would grow with it; a run that no slot uses has no children
 * and is freed at once; and segments between which no path ends or branches any more are joined.
 * Neither splits nor joins move a block in its array or change the number of an array's first
 * segment: these two name the end of a path.
 *
 * <p>A holder says {@link RadixTree#MAX_RUN} leading blocks, which is the whole run whatever its
 * length, and has the count as its tag; {@link RadixTree#unheld} counts the paths that end at the
 * run's end. One writer thread; {@link #match} is for any thread.
 */
final class RefCountedPrefixes implements AutoCloseable {
    /** Answer of {@link #enter}: no memory, or too many blocks. */
    static final int FULL = -1;

    private static final int WHOLE = RadixTree.MAX_RUN;

    /** Segments with more holders stay as they are: to split them again would cost too much. */
    private static final int MAX_JOINED_HOLDERS = 64;

    private final BuddyArena arena;
    private final RadixTree tree;
    private final long maxBlocks;
    private final HolderHints hints;
    private final WriterCounter used = new WriterCounter();

    // where the last enter() has come to
    private int end = RadixTree.NO_RUN;
    private int endArray = RadixTree.NO_RUN;
    private boolean usesEnd;
    private int firstUses;

    RefCountedPrefixes(int workerSlots, long maxBlocks, long budgetBytes) {
        this.arena = new BuddyArena(budgetBytes);
        this.tree = OffHeap.orClose(arena, () -> new RadixTree(arena, workerSlots));
        this.hints = OffHeap.orClose(arena, () -> new HolderHints(tree, workerSlots));
        this.maxBlocks = maxBlocks;
    }

    /**
     * Adds one request of a slot to every run of a path. All or nothing; a path of no blocks always
     * fits.
     *
     * @return blocks that the slot did not use before, or {@link #FULL}
     */
    int enter(int slot, long[] hashes, int count) {
        if (used.get() + count > maxBlocks
                && used.get() + count - shared(slot, hashes, count) > maxBlocks) {
            return FULL;
        }
        int split = RadixTree.NO_RUN;
        int done = 0;
        end = tree.root();
        endArray = end;
        usesEnd = true;
        firstUses = 0;
        while (done < count) {
            final int run = tree.child(end, hashes[done]);
            if (run == RadixTree.NO_RUN) {
                break;
            }
            final int same = tree.matching(run, 0, hashes, done, count - done);
            if (same < tree.length(run)) {
                if (!split(run, same)) {
                    return takeBack(slot, RadixTree.NO_RUN);
                }
                split = run;
            }
            if (!use(run, slot)) {
                if (split != RadixTree.NO_RUN) {
                    // first: leaving the run above may join it with this one
                    tree.join(split);
                }
                return takeBack(slot, RadixTree.NO_RUN);
            }
            done += same;
        }
        while (done < count) {
            final int run = tree.addChild(end, hashes, done, count - done);
            if (run == RadixTree.NO_RUN) {
                return takeBack(slot, split);
            }
            final boolean first = use(run, slot);
            assert first : "the first holder of a run has its place in the header";
            done += tree.length(run);
        }
        tree.unheld(end, tree.unheld(end) + 1);
        used.add(firstUses);
        return firstUses;
    }

    /** Leading blocks of a path that the slot uses. */
    private int shared(int slot, long[] hashes, int count) {
        int run = tree.root();
        int done = 0;
        while (done < count) {
            run = tree.child(run, hashes[done]);
            if (run == RadixTree.NO_RUN || hints.find(run, slot) == RadixTree.NO_HOLDER) {
                return done;
            }
            final int same = tree.matching(run, 0, hashes, done, count - done);
            done += same;
            if (same < tree.length(run)) {
                break;
            }
        }
        return done;
    }

    private boolean use(int run, int slot) {
        // a slot that did not use the run above before does not use this one
        final int holder = usesEnd ? hints.find(run, slot) : RadixTree.NO_HOLDER;
        usesEnd = holder != RadixTree.NO_HOLDER;
        if (usesEnd) {
            tree.setHolder(run, holder, slot, WHOLE, tree.holderTag(run, holder) + 1);
        } else if (tree.addHolder(run, slot, WHOLE, 1) != RadixTree.NO_HOLDER) {
            firstUses += tree.length(run);
        } else {
            return false;
        }
        end = run;
        endArray = tree.first(run) == 0 ? run : endArray;
        return true;
    }

    private boolean split(int run, int at) {
        final int lower = tree.beginSplit(run, at);
        if (lower == RadixTree.NO_RUN) {
            return false;
        }
        for (int holder = tree.lastHolder(run);
                holder != RadixTree.NO_HOLDER;
                holder = tree.previousHolder(run, holder)) {
            final int slot = tree.holderSlot(run, holder);
            if (tree.addHolder(lower, slot, WHOLE, tree.holderTag(run, holder))
                    == RadixTree.NO_HOLDER) {
                tree.cancelSplit(lower);
                return false;
            }
        }
        tree.unheld(lower, tree.unheld(run));
        tree.unheld(run, 0);
        tree.finishSplit(run, lower);
        return true;
    }

    /**
     * Undoes an {@link #enter} that found no memory.
     *
     * @param split the run that was split for it and is used, so that it stays; or none
     */
    private int takeBack(int slot, int split) {
        leaveUpward(slot, end);
        if (split != RadixTree.NO_RUN && isNeedlesslySplit(split)) {
            tree.join(split);
        }
        return FULL;
    }

    /** Whether the run continues in one next segment and nowhere else. */
    private boolean isNeedlesslySplit(int run) {
        return tree.unheld(run) == 0
                && tree.childCount(run) == 1
                && tree.nextSegment(run) != RadixTree.NO_RUN;
    }

    /** First segment of the array in which the path of the last {@link #enter} ends. */
    int endArray() {
        return endArray;
    }

    /** Offset in the array of the last block of that path; 0 when it has none. */
    int endOffset() {
        return end == tree.root() ? 0 : tree.first(end) + tree.length(end) - 1;
    }

    /**
     * Takes one request of a slot from every run of a path.
     *
     * @param array what {@link #endArray} said when it entered
     * @param offset what {@link #endOffset} said when it entered
     * @return how many blocks the slot does not use any more
     */
    int leave(int slot, int array, int offset) {
        final int run = array == tree.root() ? array : tree.segmentAt(array, offset);
        tree.unheld(run, tree.unheld(run) - 1);
        final int freed = leaveUpward(slot, run);
        used.add(-freed);
        return freed;
    }

    /** Blocks at the end of a path, named as for {@link #leave}, of which the slot has one use. */
    int blocksAlone(int slot, int array, int offset) {
        int own = 0;
        int run = array == tree.root() ? array : tree.segmentAt(array, offset);
        while (run != tree.root() && tree.holderTag(run, hints.find(run, slot)) == 1) {
            own += tree.length(run);
            run = tree.parent(run);
        }
        return own;
    }

    private int leaveUpward(int slot, int bottom) {
        int freed = 0;
        int run = bottom;
        boolean first = true;
        while (run != tree.root()) {
            final int above = tree.parent(run);
            final int holder = hints.find(run, slot);
            final int requests = tree.holderTag(run, holder);
            if (requests > 1) {
                tree.setHolder(run, holder, slot, WHOLE, requests - 1);
            } else {
                freed += tree.length(run);
                hints.remove(run, holder);
                if (tree.holders(run) == 0) {
                    tree.remove(run);
                    run = above;
                    continue;
                }
            }
            if (first) { // the runs below were freed: here was an end or a branch
                first = false;
                if (tree.holders(run) <= MAX_JOINED_HOLDERS && isNeedlesslySplit(run)) {
                    tree.join(run);
                }
            }
            run = above;
        }
        return freed;
    }

    /** Copies the hashes of a path, named as for {@link #leave}, from its end upward. */
    void readPath(int array, int offset, RunningRequest out) {
        int run = array == tree.root() ? array : tree.segmentAt(array, offset);
        int at = run == tree.root() ? 0 : tree.depth(run) + tree.length(run);
        if (out.path.length < at) {
            out.path = new long[Math.max(at, 2 * out.path.length)];
        }
        out.pathBlocks = at;
        while (run != tree.root()) {
            for (int block = tree.length(run) - 1; block >= 0; block--) {
                out.path[--at] = tree.hash(run, block);
            }
            run = tree.parent(run);
        }
        assert at == 0 : "a path has the blocks that its depth says: left=" + at;
    }

    /** Where the runs live; for tests. */
    BuddyArena arena() {
        return arena;
    }

    /** The runs; for tests. */
    RadixTree tree() {
        return tree;
    }

    int match(long[] hashes, int count, OverlapScores out) {
        return tree.match(hashes, count, out);
    }

    /** Blocks in use, counted once per slot; any thread. */
    long used() {
        return used.get();
    }

    /** Runs; any thread. */
    long runs() {
        return tree.runs();
    }

    /** Bytes of the budget that runs, their holders and children have now; any thread. */
    long usedBytes() {
        return arena.usedLines() * BuddyArena.LINE_LENGTH;
    }

    long bytes() {
        return arena.bytes() + hints.bytes();
    }

    @Override
    public void close() {
        arena.close();
        hints.close();
    }
}
