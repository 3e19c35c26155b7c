package io.kvasir.core.slots;

/**
 * Layout of one worker slot's cell of a {@link LoadBoard}.
 *
 * <pre>
 *   0                8                16               24               32           128
 *   +----------------+----------------+----------------+----------------+---- ... ---+
 *   | prefill tokens | active blocks  | active requests| provisions     | unused     |
 *   +----------------+----------------+----------------+----------------+---- ... ---+
 *   provisions  [ provisional loads begun:32 | taken back:32 ], modulo 2^32; both only ever rise
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

    /** Provisional loads: begun, taken back. */
    public static final int PROVISIONS_OFFSET = ACTIVE_REQUESTS_OFFSET + Long.BYTES;

    /** Added to the provisions for one more begun. */
    static final long ONE_BEGUN = 1L << Integer.SIZE;

    /** Added to the provisions for one more taken back. */
    static final long ONE_TAKEN_BACK = 1;

    /** Bytes of a cell. */
    public static final int CELL_LENGTH = 128;

    private LoadCellDescriptor() {}

    /** Byte offset of a slot's cell. */
    public static long cellOffset(int slot) {
        return (long) slot * CELL_LENGTH;
    }

    /** How many provisional loads were begun, modulo 2^32. */
    static int begun(long provisions) {
        return (int) (provisions >>> Integer.SIZE);
    }

    /** How many provisional loads were taken back, modulo 2^32. */
    static int takenBack(long provisions) {
        return (int) provisions;
    }
}
