package io.kvasir.core.memory;

/**
 * Layout of an {@link UndoLog}.
 *
 * <pre>
 *   0        8                64                                                    end
 *   +--------+----------------+--------------------+---------+--------------------+---------+
 *   | end    | unused         | old longs          | trailer | old longs          | trailer |
 *   +--------+----------------+--------------------+---------+--------------------+---------+
 *   end       byte after the last record; 64 = no change is open; -1 = there was no room for all
 *   record    longs as they were, then what they are
 *   trailer   [ longs:24 | where they are, in longs from the start of the whole memory:40 ]
 * </pre>
 */
final class UndoLogDescriptor {
    static final int END_OFFSET = 0;
    static final int RECORDS_OFFSET = 64;

    /** End of a log without records. */
    static final long EMPTY = RECORDS_OFFSET;

    /** End of a log in which not all of the open change is. */
    static final long INCOMPLETE = -1;

    private static final int COUNT_SHIFT = 40;

    /** Longs of one record at most. */
    static final int MOST_LONGS = (1 << (Long.SIZE - COUNT_SHIFT)) - 1;

    private UndoLogDescriptor() {}

    static long trailer(long longs, long offset) {
        return (longs << COUNT_SHIFT) | (offset >>> 3);
    }

    static long longs(long trailer) {
        return trailer >>> COUNT_SHIFT;
    }

    /** Where the longs of a record were, in bytes. */
    static long offset(long trailer) {
        return (trailer & ((1L << COUNT_SHIFT) - 1)) << 3;
    }
}
