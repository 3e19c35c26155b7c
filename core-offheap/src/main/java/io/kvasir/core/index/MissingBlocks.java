package io.kvasir.core.index;

import io.kvasir.core.memory.SharedCells;

/**
 * How many blocks of each worker slot events have stored and an index does not hold for want of
 * room: refused, stored after such a block, or evicted. They are counted, not kept: as long as some
 * of a slot are missing, the next engine hashes that it removes and does not hold are taken for
 * theirs. None is missing any more when as many have been removed, or when the slot has removed as
 * many blocks, held or not, as it had announced when it last got a missing one: its engine has
 * turned its whole cache over. Written by the writer thread, read by any.
 */
final class MissingBlocks {
    private static final int MISSING = 0;
    private static final int REFUSED = 1;
    private static final int EVICTED = 2;
    private static final int REMOVED = 3;
    private static final int TURNOVER = 4;
    private static final int CROWDED = 5;
    private static final int CROWDED_BEFORE = 6;
    private static final int COLUMNS = 7;

    private final SharedCells cells;

    MissingBlocks(int slots) {
        this.cells = new SharedCells((long) slots * COLUMNS * Long.BYTES);
    }

    /**
     * Blocks of a slot were not stored.
     *
     * @param forParent whether because their parent is missing
     * @param held blocks that the slot holds
     */
    void refused(int slot, int blocks, boolean forParent, long held) {
        add(slot, REFUSED, blocks);
        add(slot, CROWDED, forParent ? 0 : 1);
        more(slot, blocks, held);
    }

    /**
     * Blocks of a slot were given up.
     *
     * @param held blocks that the slot holds without them
     */
    void evicted(int slot, int blocks, long held) {
        add(slot, EVICTED, blocks);
        add(slot, CROWDED, 1);
        more(slot, blocks, held);
    }

    private void more(int slot, int blocks, long held) {
        add(slot, MISSING, blocks);
        cells.putLongRelease(at(slot, TURNOVER), missing(slot) + held);
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
        add(slot, MISSING, -known);
        add(slot, REMOVED, known);
        add(slot, TURNOVER, -blocks);
        if (cells.getLong(at(slot, TURNOVER)) <= 0) {
            cleared(slot);
        }
        return notHeld - known;
    }

    /** From here on all missing blocks of a slot are stored again. */
    void beginRefill(int slot) {
        cells.putLongRelease(at(slot, CROWDED_BEFORE), cells.getLong(at(slot, CROWDED)));
    }

    /**
     * All missing blocks have been stored again: none is missing if there was room all the time.
     */
    void endRefill(int slot) {
        if (cells.getLong(at(slot, CROWDED_BEFORE)) == cells.getLong(at(slot, CROWDED))) {
            cleared(slot);
        }
    }

    /** A slot has been cleared: nothing of what comes is missing. */
    void cleared(int slot) {
        add(slot, MISSING, -missing(slot));
    }

    long missing(int slot) {
        return cells.getLongAcquire(at(slot, MISSING));
    }

    long refused(int slot) {
        return cells.getLongAcquire(at(slot, REFUSED));
    }

    long evicted(int slot) {
        return cells.getLongAcquire(at(slot, EVICTED));
    }

    long removed(int slot) {
        return cells.getLongAcquire(at(slot, REMOVED));
    }

    private void add(int slot, int column, long change) {
        final long at = at(slot, column);
        cells.putLongRelease(at, cells.getLong(at) + change); // a gauge: each stands for itself
    }

    private static long at(int slot, int column) {
        return ((long) slot * COLUMNS + column) * Long.BYTES;
    }
}
