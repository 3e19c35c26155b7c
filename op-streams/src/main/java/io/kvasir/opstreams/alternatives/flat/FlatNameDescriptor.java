package io.kvasir.opstreams.alternatives.flat;

/**
 * Layout of one holding of a {@link FlatNames}: a worker slot's own name of a block.
 *
 * <pre>
 *   0        4        8                16       20       24       28       32
 *   +--------+--------+----------------+--------+--------+--------+--------+
 *   | next   | slot   | engine hash    | block  | copies | slot's | slot's |
 *   |        |        |                |        |        | next   | before |
 *   +--------+--------+----------------+--------+--------+--------+--------+
 *   block: entry number in the block table
 * </pre>
 */
final class FlatNameDescriptor {
    /** Worker slot. */
    public static final int SLOT_OFFSET = ChainedHashEntries.FIELDS_OFFSET;

    /** The worker's name of the block. */
    public static final int ENGINE_HASH_OFFSET = SLOT_OFFSET + Integer.BYTES;

    /** Entry of the block in the {@link FlatBlocks}. */
    public static final int BLOCK_OFFSET = ENGINE_HASH_OFFSET + Long.BYTES;

    /** Physical copies, at least 1. */
    public static final int COPIES_OFFSET = BLOCK_OFFSET + Integer.BYTES;

    /** Next holding of the slot. */
    public static final int SLOT_NEXT_OFFSET = COPIES_OFFSET + Integer.BYTES;

    /** Holding of the slot before this one. */
    public static final int SLOT_PREVIOUS_OFFSET = SLOT_NEXT_OFFSET + Integer.BYTES;

    /** Bytes of a holding. */
    public static final int ENTRY_LENGTH = SLOT_PREVIOUS_OFFSET + Integer.BYTES;

    private FlatNameDescriptor() {}
}
