package io.kvasir.core.index;

/**
 * Layout of what {@link MissingBlocks} counts of one worker slot.
 *
 * <pre>
 *   0         8         16        24        32         40        48             56
 *   +---------+---------+---------+---------+----------+---------+--------------+
 *   | missing | refused | evicted | removed | turnover | crowded | crowded      |
 *   |         |         |         |         |          |         | before       |
 *   +---------+---------+---------+---------+----------+---------+--------------+
 *   missing    blocks announced and not held for lack of room
 *   refused, evicted, removed    blocks so far: not stored, given up, removed while missing
 *   turnover   blocks that the slot has still to remove until none is missing any more
 *   crowded    times that a block was refused or evicted; before: at the last beginRefill
 * </pre>
 */
final class MissingBlocksDescriptor {
    static final int MISSING_OFFSET = 0;
    static final int REFUSED_OFFSET = MISSING_OFFSET + Long.BYTES;
    static final int EVICTED_OFFSET = REFUSED_OFFSET + Long.BYTES;
    static final int REMOVED_OFFSET = EVICTED_OFFSET + Long.BYTES;
    static final int TURNOVER_OFFSET = REMOVED_OFFSET + Long.BYTES;
    static final int CROWDED_OFFSET = TURNOVER_OFFSET + Long.BYTES;
    static final int CROWDED_BEFORE_OFFSET = CROWDED_OFFSET + Long.BYTES;
    static final int LENGTH = CROWDED_BEFORE_OFFSET + Long.BYTES;

    private MissingBlocksDescriptor() {}

    /** Byte offset of what is counted of a slot. */
    static long offset(int slot) {
        return (long) slot * LENGTH;
    }
}
