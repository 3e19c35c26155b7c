package io.kvasir.opstreams.alternatives.flat;

/**
 * Layout of one (worker slot, block) pair of a {@link PairTable}.
 *
 * <pre>
 *   0        4        8        12       16
 *   +--------+--------+--------+--------+
 *   | next   | slot   | block  | count  |
 *   +--------+--------+--------+--------+
 *   block: entry number in the block table
 * </pre>
 */
final class PairDescriptor {
    /** Worker slot. */
    public static final int SLOT_OFFSET = ChainedHashEntries.FIELDS_OFFSET;

    /** Entry of the block in its {@link FlatBlocks}. */
    public static final int BLOCK_OFFSET = SLOT_OFFSET + Integer.BYTES;

    /** What is counted, at least 1. */
    public static final int COUNT_OFFSET = BLOCK_OFFSET + Integer.BYTES;

    /** Bytes of a pair. */
    public static final int ENTRY_LENGTH = COUNT_OFFSET + Integer.BYTES;

    private PairDescriptor() {}
}
