package io.kvasir.core.index;

import java.lang.invoke.VarHandle;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Of which slot the blocks of the tiers above are copied into the index of a tier, so that a match
 * that a copy comes into leaves out that slot, and no other. One word says it:
 *
 * <pre>
 *   63               32 31                0
 *   +------------------+------------------+
 *   |      number      |       slot       |
 *   +------------------+------------------+
 *   number: of begins and ends so far; odd while blocks are copied
 *   slot:   whose blocks are, or were copied last
 * </pre>
 *
 * <p>A reader takes the word before its match ({@link #before}) and after it ({@link #met}). The
 * copies that the match may have read in part are the one under way at first, and those that have
 * begun since. Where that is one, the word says which at the end; where there are more, it says
 * only that, and the reader believes nothing that it found.
 *
 * <p>{@link #begin} and {@link #end} are for the one thread that copies; all else for any thread,
 * never waits and allocates nothing.
 */
final class DeviceCopies {
    /** Answer of {@link #met}: no copy was under way. */
    static final int NONE = -1;

    /** Answer of {@link #met}: copies of several slots were under way, one after another. */
    static final int SEVERAL = -2;

    private final AtomicLong word = new AtomicLong();

    /** From here on the blocks of a slot are copied. */
    void begin(int slot) {
        // released after the copy before: a reader that starts with this number sees all that the
        // former slot's copy left, so that it need not drop that slot
        word.setRelease(word(number(word.getPlain()) + 1, slot));
        // stored before the first block of the copy: a reader that sees such a block, and then
        // passes the fence of `met`, sees this number there
        VarHandle.storeStoreFence();
    }

    /** The copy is whole. */
    void end() {
        final long copied = word.getPlain();
        // released after the last block of the copy: a reader that starts with this number sees
        // the copy as a whole, without a hole that is held
        word.setRelease(word(number(copied) + 1, slot(copied)));
    }

    /** For {@link #met}; to be taken before the first read of a match. */
    long before() {
        return word.getAcquire(); // the match reads nothing before it
    }

    /**
     * Whose copy a match may have read in part; to be called after its last read.
     *
     * @param before what {@link #before} was before the match
     * @return the slot, {@link #NONE} or {@link #SEVERAL}
     */
    int met(long before) {
        // the match has read before the word is read again: of a copy whose blocks it has seen, it
        // sees the begin, which was stored before them
        VarHandle.loadLoadFence();
        final long after = word.getOpaque();
        // a copy has begun by its odd number, and has ended by the even one after it
        final long begun = (number(after) + 1) >>> 1;
        final long ended = number(before) >>> 1;
        if (begun == ended) {
            return NONE;
        }
        return begun == ended + 1 ? slot(after) : SEVERAL;
    }

    private static long word(long number, int slot) {
        return number << Integer.SIZE | slot;
    }

    private static long number(long word) {
        return word >>> Integer.SIZE;
    }

    private static int slot(long word) {
        return (int) word;
    }
}
