package io.kvasir.core.index;

import io.kvasir.core.memory.KeptWords;
import io.kvasir.core.memory.SharedCells;
import io.kvasir.core.memory.WriterCounter;

import java.util.Arrays;

/**
 * How many engine hashes each worker slot holds, and which slot holds most. Slots hang in lists by
 * the size of what they hold, eight lists for each power of two, so that the slot that holds most
 * is known up to an eighth at no cost. Written by the writer thread.
 */
final class SlotShares {
    static final int NO_SLOT = -1;
    private static final int LISTS_PER_DOUBLING = 8;
    private static final int LIST_BITS = Integer.numberOfTrailingZeros(LISTS_PER_DOUBLING);
    private static final int LISTS = LISTS_PER_DOUBLING * Integer.SIZE;

    private final int slotCount;
    private final SharedCells cells;
    private final WriterCounter total = new WriterCounter();
    private final WriterCounter holders = new WriterCounter();
    private final int[] first = new int[LISTS];
    private final int[] next;
    private final int[] previous;
    private final long[] occupied = new long[LISTS / Long.SIZE];

    /**
     * @param cells where the numbers are published, one for each slot
     */
    SlotShares(int slotCount, SharedCells cells) {
        this.slotCount = slotCount;
        this.cells = cells;
        this.next = new int[slotCount];
        this.previous = new int[slotCount];
        Arrays.fill(first, NO_SLOT);
    }

    /** Names what a slot holds. The lists are made anew from that. */
    void keep(int slot, KeptWords words) {
        final long held = held(slot);
        add(slot, words.keep(held) - held);
    }

    /** Engine hashes that all slots hold; any thread. */
    long total() {
        return total.get();
    }

    /** Slots that hold something; any thread. */
    long holders() {
        return holders.get();
    }

    /** Engine hashes that a slot holds; any thread. */
    long held(int slot) {
        return cells.getLongAcquire(SlotCellDescriptor.heldBlocksOffset(slotCount, slot));
    }

    /** A slot holds more, or less. */
    void add(int slot, long change) {
        if (change == 0) {
            return;
        }
        final long at = SlotCellDescriptor.heldBlocksOffset(slotCount, slot);
        final long before = cells.getLong(at);
        final long after = before + change;
        cells.putLongRelease(at, after); // a gauge: held() acquires it, no other word goes with it
        total.add(change);
        final int from = list(before);
        final int to = list(after);
        if (from != to) {
            if (before > 0) {
                unlink(slot, from);
            }
            if (after > 0) {
                link(slot, to);
            }
            holders.add((after > 0 ? 1 : 0) - (before > 0 ? 1 : 0));
        }
    }

    /**
     * The slot that holds most.
     *
     * @param preferred is the answer if it holds about as much
     * @return a slot, or {@code preferred} if none holds anything
     */
    int largest(int preferred) {
        final int list = lastBelow(LISTS);
        return list < 0 || list(held(preferred)) == list ? preferred : first[list];
    }

    /** A slot that holds most; {@link #NO_SLOT} if none holds anything. */
    int first() {
        final int list = lastBelow(LISTS);
        return list < 0 ? NO_SLOT : first[list];
    }

    /**
     * From {@link #first} on each slot that holds something, about by what it holds.
     *
     * @param slot one that holds something
     * @return {@link #NO_SLOT} after the last one
     */
    int after(int slot) {
        if (next[slot] != NO_SLOT) {
            return next[slot];
        }
        final int list = lastBelow(list(held(slot)));
        return list < 0 ? NO_SLOT : first[list];
    }

    /** The longest list that has slots, of those below one; -1 if none has. */
    private int lastBelow(int list) {
        int word = list / Long.SIZE;
        long left = word == occupied.length ? 0 : occupied[word] & ((1L << list) - 1);
        while (left == 0 && word > 0) {
            left = occupied[--word];
        }
        return left == 0 ? -1 : (word + 1) * Long.SIZE - 1 - Long.numberOfLeadingZeros(left);
    }

    /** The list of slots that hold so much: 0 for nothing, and each is longer by an eighth. */
    private static int list(long held) {
        if (held < LISTS_PER_DOUBLING) {
            return (int) held;
        }
        final int doublings = Long.SIZE - 1 - LIST_BITS - Long.numberOfLeadingZeros(held);
        return (doublings << LIST_BITS) + (int) (held >> doublings);
    }

    private void link(int slot, int list) {
        next[slot] = first[list];
        previous[slot] = NO_SLOT;
        if (first[list] != NO_SLOT) {
            previous[first[list]] = slot;
        }
        first[list] = slot;
        occupied[list / Long.SIZE] |= 1L << list;
    }

    private void unlink(int slot, int list) {
        if (next[slot] != NO_SLOT) {
            previous[next[slot]] = previous[slot];
        }
        if (previous[slot] != NO_SLOT) {
            next[previous[slot]] = next[slot];
        } else {
            first[list] = next[slot];
            if (next[slot] == NO_SLOT) {
                occupied[list / Long.SIZE] &= ~(1L << list);
            }
        }
    }
}
