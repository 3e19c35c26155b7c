package io.kvasir.core.load;

/**
 * Layout of what is booked on one worker slot, in {@link LoadLedger}: one cache line.
 *
 * <pre>
 *   0        8        16         24        32       40         48        56       64
 *   +--------+--------+----------+---------+--------+----------+---------+--------+
 *   | prefill| active | active   | settled | lost   | fewest   | watched | unused |
 *   | tokens | blocks | requests |         |        | under way| since   |        |
 *   +--------+--------+----------+---------+--------+----------+---------+--------+
 *   settled    provisional loads that came here as a booking, whatever became of it
 *   lost       provisional loads that were neither booked nor taken back, and never will be
 *   fewest     smallest number under way seen since then, while it was never 0; 0 = not watched
 * </pre>
 */
final class BookedLoadDescriptor {
    static final int PREFILL_TOKENS_OFFSET = 0;
    static final int ACTIVE_BLOCKS_OFFSET = PREFILL_TOKENS_OFFSET + Long.BYTES;
    static final int ACTIVE_REQUESTS_OFFSET = ACTIVE_BLOCKS_OFFSET + Long.BYTES;
    static final int SETTLED_OFFSET = ACTIVE_REQUESTS_OFFSET + Long.BYTES;
    static final int LOST_OFFSET = SETTLED_OFFSET + Long.BYTES;
    static final int FEWEST_UNDER_WAY_OFFSET = LOST_OFFSET + Long.BYTES;
    static final int WATCHED_SINCE_OFFSET = FEWEST_UNDER_WAY_OFFSET + Long.BYTES;
    static final int CELL_LENGTH = 64;

    private BookedLoadDescriptor() {}

    /** Byte offset of a slot's cell. */
    static long cellOffset(int slot) {
        return (long) slot * CELL_LENGTH;
    }
}
