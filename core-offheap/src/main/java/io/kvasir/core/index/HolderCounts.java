package io.kvasir.core.index;

import io.kvasir.core.memory.BuddyArena;
import io.kvasir.core.memory.OffHeap;
import io.kvasir.core.radix.RadixTree;

/**
 * How many slots hold each block of an array that many slots hold: what else would have to be asked
 * of every one of them at each event costs the event's own blocks. A run that more than {@link
 * #FEW} slots hold has counts. Writer thread only.
 *
 * <p>The counts are one int per block of the array, in lines that all segments of the array name
 * ({@link RadixTree#holderLine}).
 */
final class HolderCounts {
    /** Holders that are asked one by one; a run with more gets counts. */
    static final int FEW = 8;

    private final BuddyArena arena;
    private final OffHeap memory;
    private final RadixTree tree;

    HolderCounts(BuddyArena arena, RadixTree tree) {
        this.arena = arena;
        this.memory = arena.memory();
        this.tree = tree;
    }

    /** Whether there are counts for the array of a run. */
    boolean has(int run) {
        return tree.holderLine(run) != BuddyArena.NO_LINE;
    }

    /**
     * Gives an array counts, all 0.
     *
     * @param run any segment of the array
     * @return false when there is no memory for them
     */
    boolean make(int run) {
        final long length = (long) tree.arrayCapacity(run) * Integer.BYTES;
        final int line = arena.allocate(BuddyArena.orderFor(length));
        if (line == BuddyArena.NO_LINE) {
            return false;
        }
        memory.zero(BuddyArena.offset(line), length);
        for (int segment = tree.segmentAt(run, 0); segment != RadixTree.NO_RUN; ) {
            tree.holderLine(segment, line);
            segment = tree.nextSegment(segment);
        }
        return true;
    }

    /**
     * Gives the counts of an array back that is one run, if half as many as {@link #FEW} are left.
     */
    void fit(int run) {
        if (has(run)
                && tree.holders(run) <= FEW / 2
                && tree.previousSegment(run) == RadixTree.NO_RUN
                && tree.nextSegment(run) == RadixTree.NO_RUN) {
            arena.free(tree.holderLine(run));
            tree.holderLine(run, BuddyArena.NO_LINE);
        }
    }

    /** Counts one holder more of blocks {@code from..to - 1}; says how many of them had none. */
    int add(int run, int from, int to) {
        int first = 0;
        final long end = offset(run, to);
        for (long at = offset(run, from); at < end; at += Integer.BYTES) {
            final int holders = memory.getInt(at);
            first += holders == 0 ? 1 : 0;
            memory.putInt(at, holders + 1);
        }
        return first;
    }

    /** Counts one holder less of blocks {@code from..to - 1}; says how many of them have none. */
    int take(int run, int from, int to) {
        int last = 0;
        final long end = offset(run, to);
        for (long at = offset(run, from); at < end; at += Integer.BYTES) {
            final int holders = memory.getInt(at) - 1;
            assert holders >= 0 : "holders of a block of run " + run;
            last += holders == 0 ? 1 : 0;
            memory.putInt(at, holders);
        }
        return last;
    }

    /** Slots that hold a block. */
    int of(int run, int block) {
        return memory.getInt(offset(run, block));
    }

    /** How many of the blocks {@code from..to - 1} have as many holders or more. */
    int held(int run, int from, int to, int holders) {
        int held = 0;
        final long end = offset(run, to);
        for (long at = offset(run, from); at < end; at += Integer.BYTES) {
            held += memory.getInt(at) >= holders ? 1 : 0;
        }
        return held;
    }

    private long offset(int run, int block) {
        return BuddyArena.offset(tree.holderLine(run))
                + (long) (tree.first(run) + block) * Integer.BYTES;
    }
}
