package io.kvasir.core.slots;

/**
 * Layout of one worker slot's cell of a {@link LoadBoard}.
 *
 * <pre>
 *   0                8                16               24                   128
 *   +----------------+----------------+----------------+------- ... --------+
 *   | prefill tokens | active blocks  | active requests| unused             |
 *   +----------------+----------------+----------------+------- ... --------+
 *   two cache lines, so that callers who book on neighbouring slots do not meet
 * </pre>
 */
public final class LoadCellDescriptor {
    /** Tokens still to be prefilled. */
    public static final int PREFILL_TOKENS_OFFSET = 0;

    /** Blocks in use by running requests. */
    public static final int ACTIVE_BLOCKS_OFFSET = PREFILL_TOKENS_OFFSET + Long.BYTES;

    /** Running requests. */
    public static final int ACTIVE_REQUESTS_OFFSET = ACTIVE_BLOCKS_OFFSET + Long.BYTES;

    /** Bytes of a cell. */
    public static final int CELL_LENGTH = 128;

    private LoadCellDescriptor() {}

    /** Byte offset of a slot's cell. */
    public static long cellOffset(int slot) {
        return (long) slot * CELL_LENGTH;
    }
}
