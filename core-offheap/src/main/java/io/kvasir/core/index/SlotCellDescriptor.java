package io.kvasir.core.index;

/**
 * Layout of what a {@link PrefixIndex} publishes about one worker slot.
 *
 * <pre>
 *   0                8                16
 *   +----------------+----------------+
 *   | applied        | held           |
 *   | sequence       | blocks         |
 *   +----------------+----------------+
 * </pre>
 */
public final class SlotCellDescriptor {
    /** Number of the last event applied. */
    public static final int APPLIED_SEQUENCE_OFFSET = 0;

    /** Engine hashes that the slot holds. */
    public static final int HELD_BLOCKS_OFFSET = APPLIED_SEQUENCE_OFFSET + Long.BYTES;

    /** Bytes of a cell. */
    public static final int CELL_LENGTH = HELD_BLOCKS_OFFSET + Long.BYTES;

    private SlotCellDescriptor() {}

    /** Byte offset of a slot's cell. */
    public static long cellOffset(int slot) {
        return (long) slot * CELL_LENGTH;
    }
}
