package io.kvasir.core.load;

import io.kvasir.core.memory.FibonacciHash;
import io.kvasir.core.memory.OffHeap;
import io.kvasir.core.radix.RadixTree;

/**
 * Where the holder of a worker slot is among the many of a run that most slots use: a system prompt
 * of a thousand workers would be searched through at every booking. Writer thread only.
 *
 * <p>A hint is the index where the holder was last; it is believed only if that slot is there. Two
 * pairs of run and slot may share a hint, and a run's number may be given out again: then it is
 * wrong, and costs the search that it should have saved.
 */
final class HolderHints implements AutoCloseable {
    /** Holders that are searched faster than a hint is looked up. */
    private static final int FEW = 32;

    private static final int HINTS_PER_SLOT = 4;

    private final RadixTree tree;
    private final OffHeap hints;
    private final int shift;

    HolderHints(RadixTree tree, int workerSlots) {
        final int bits = Integer.SIZE - Integer.numberOfLeadingZeros(workerSlots * HINTS_PER_SLOT);
        this.tree = tree;
        this.shift = Long.SIZE - bits;
        this.hints = OffHeap.allocate((long) Integer.BYTES << bits);
    }

    /** The same as {@link RadixTree#findHolder}. */
    int find(int run, int slot) {
        final int holders = tree.holders(run);
        if (holders <= FEW || tree.hasHolderMap(run)) {
            return tree.findHolder(run, slot);
        }
        final long hint = hint(run, slot);
        final int last = hints.getInt(hint);
        if (tree.isHolder(run, last, slot)) {
            return last;
        }
        final int found = tree.findHolder(run, slot);
        if (found >= 0) {
            hints.putInt(hint, found);
        }
        return found;
    }

    /** The same as {@link RadixTree#removeHolder}. */
    void remove(int run, int holder) {
        final int last = tree.holders(run) - 1;
        if (last > FEW && !tree.hasHolderMap(run)) {
            hints.putInt(hint(run, tree.holderSlot(run, last)), holder);
        }
        tree.removeHolder(run, holder);
        tree.fitHolders(run, RadixTree.MAX_RUN);
    }

    private long hint(int run, int slot) {
        return (FibonacciHash.spread((long) run << Integer.SIZE | slot) >>> shift) * Integer.BYTES;
    }

    long bytes() {
        return hints.length();
    }

    @Override
    public void close() {
        hints.close();
    }
}
