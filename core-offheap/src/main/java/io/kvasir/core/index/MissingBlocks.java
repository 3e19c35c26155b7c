package io.kvasir.core.index;

import io.kvasir.core.memory.KeptWords;
import io.kvasir.core.memory.SharedCells;

import java.util.BitSet;

/**
 * How many blocks of each worker slot events have stored and an index does not hold because it is
 * full: refused, stored after such a block, or evicted. They are counted, not kept: as long as some
 * of a slot are missing, the next engine hashes that it removes and does not hold are taken for
 * theirs. Of an evicted block each copy counts whose removal the engine will announce, and of a
 * refused store one more copy of each block that is held. None is missing any more when as many
 * have been removed, or when the slot has removed as many blocks, held or not, as it had announced
 * when it last got a missing one: its engine has turned its whole cache over. Written by the writer
 * thread, read by any.
 */
final class MissingBlocks {
    private static final long REMOVES_ALL = Long.MIN_VALUE;

    private final SharedCells cells;

    /** Slots that remove all copies of a block at once; writer thread. */
    private final BitSet removesAll;

    MissingBlocks(int slots) {
        this.cells = new SharedCells(MissingBlocksDescriptor.offset(slots));
        this.removesAll = new BitSet(slots);
    }

    /** Names what is counted of a slot; its last word has the rule of removals as its sign. */
    void keep(int slot, KeptWords words) {
        final int last = MissingBlocksDescriptor.CROWDED_BEFORE_OFFSET;
        for (int field = 0; field < last; field += Long.BYTES) {
            words.keep(cells, at(slot, field));
        }
        final long before = cells.getLong(at(slot, last));
        final long kept = words.keep(before | (removesAll.get(slot) ? REMOVES_ALL : 0));
        removesAll.set(slot, (kept & REMOVES_ALL) != 0);
        if (before != (kept & ~REMOVES_ALL)) {
            cells.putLongRelease(at(slot, last), kept & ~REMOVES_ALL);
        }
    }

    /**
     * Blocks of a slot were not stored.
     *
     * @param blocks of them that the slot does not hold
     * @param copies {@code blocks}, and a copy of each other one
     * @param forParent whether because their parent is missing
     * @param held blocks that the slot holds
     */
    void refused(int slot, int blocks, int copies, boolean forParent, long held) {
        add(slot, MissingBlocksDescriptor.REFUSED_OFFSET, blocks);
        add(slot, MissingBlocksDescriptor.CROWDED_OFFSET, forParent ? 0 : 1);
        more(slot, removesAll.get(slot) ? blocks : copies, held);
    }

    /**
     * Blocks of a slot were given up.
     *
     * @param copies of them, {@code blocks} or more
     * @param held blocks that the slot holds without them
     */
    void evicted(int slot, int blocks, int copies, long held) {
        add(slot, MissingBlocksDescriptor.EVICTED_OFFSET, blocks);
        add(slot, MissingBlocksDescriptor.CROWDED_OFFSET, 1);
        more(slot, removesAll.get(slot) ? blocks : copies, held);
    }

    private void more(int slot, int blocks, long held) {
        add(slot, MissingBlocksDescriptor.MISSING_OFFSET, blocks);
        cells.putLongRelease(
                at(slot, MissingBlocksDescriptor.TURNOVER_OFFSET), missing(slot) + held);
    }

    /** A slot removes blocks by this rule, those that it misses too. */
    void removes(int slot, CopyRule rule) {
        removesAll.set(slot, rule == CopyRule.LAST_COPY);
    }

    /** The rule by which a slot has removed blocks last; each copy by itself before the first. */
    CopyRule rule(int slot) {
        return removesAll.get(slot) ? CopyRule.LAST_COPY : CopyRule.PHYSICAL;
    }

    /**
     * Engine hashes are removed.
     *
     * @param blocks all of them
     * @param notHeld those that the slot does not hold
     * @return for how many of these nothing is missing
     */
    int removed(int slot, int blocks, int notHeld) {
        final long missing = missing(slot);
        if (missing == 0) {
            return notHeld;
        }
        final int known = (int) Math.min(notHeld, missing);
        add(slot, MissingBlocksDescriptor.MISSING_OFFSET, -known);
        add(slot, MissingBlocksDescriptor.REMOVED_OFFSET, known);
        add(slot, MissingBlocksDescriptor.TURNOVER_OFFSET, -blocks);
        if (cells.getLong(at(slot, MissingBlocksDescriptor.TURNOVER_OFFSET)) <= 0) {
            cleared(slot);
        }
        return notHeld - known;
    }

    /** From here on all missing blocks of a slot are stored again. */
    void beginRefill(int slot) {
        cells.putLongRelease(
                at(slot, MissingBlocksDescriptor.CROWDED_BEFORE_OFFSET),
                cells.getLong(at(slot, MissingBlocksDescriptor.CROWDED_OFFSET)));
    }

    /**
     * All missing blocks have been stored again: none is missing if there was room all the time.
     */
    void endRefill(int slot) {
        if (cells.getLong(at(slot, MissingBlocksDescriptor.CROWDED_BEFORE_OFFSET))
                == cells.getLong(at(slot, MissingBlocksDescriptor.CROWDED_OFFSET))) {
            cleared(slot);
        }
    }

    /** A slot has been cleared: nothing of what comes is missing. */
    void cleared(int slot) {
        add(slot, MissingBlocksDescriptor.MISSING_OFFSET, -missing(slot));
    }

    /**
     * Sets what a slot misses that was taken over from elsewhere.
     *
     * @param before missing there
     * @param turnoverBefore {@link #turnover} there
     * @param more missing since, for lack of room here
     * @param held blocks that the slot holds
     */
    void restore(int slot, long before, long turnoverBefore, long more, long held) {
        add(slot, MissingBlocksDescriptor.MISSING_OFFSET, before + more - missing(slot));
        cells.putLongRelease(
                at(slot, MissingBlocksDescriptor.TURNOVER_OFFSET),
                more == 0 ? turnoverBefore : before + more + held);
    }

    /** Blocks that a slot has still to remove until none is missing; 0 where none is. */
    long turnover(int slot) {
        return missing(slot) == 0
                ? 0
                : cells.getLongAcquire(at(slot, MissingBlocksDescriptor.TURNOVER_OFFSET));
    }

    long missing(int slot) {
        return cells.getLongAcquire(at(slot, MissingBlocksDescriptor.MISSING_OFFSET));
    }

    long refused(int slot) {
        return cells.getLongAcquire(at(slot, MissingBlocksDescriptor.REFUSED_OFFSET));
    }

    long evicted(int slot) {
        return cells.getLongAcquire(at(slot, MissingBlocksDescriptor.EVICTED_OFFSET));
    }

    long removed(int slot) {
        return cells.getLongAcquire(at(slot, MissingBlocksDescriptor.REMOVED_OFFSET));
    }

    private void add(int slot, int field, long change) {
        final long at = at(slot, field);
        cells.putLongRelease(at, cells.getLong(at) + change); // a gauge: each stands for itself
    }

    private static long at(int slot, int field) {
        return MissingBlocksDescriptor.offset(slot) + field;
    }
}
