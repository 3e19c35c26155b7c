package io.kvasir.core.load;

/**
 * Layout of a {@link LoadBoard}: groups of 64 worker slots, values of one kind side by side.
 *
 * <pre>
 *   0         8       16       128              640             1152              1664         2176
 *   +---------+-------+- ... --+------ ... -----+----- ... -----+------- ... -----+---- ... ---+
 *   | version | open  | unused | prefill tokens | active blocks | active requests | provisions |
 *   |         | slots |        | of slots 0..63 | of 0..63      | of 0..63        | of 0..63   |
 *   +---------+-------+- ... --+------ ... -----+----- ... -----+------- ... -----+---- ... ---+
 *   version: +1 after every change of the group     open slots: one bit a slot, lowest first
 *   provisions: [ provisional loads begun:32 | taken back:32 ], modulo 2^32; both only ever rise
 * </pre>
 *
 * <p>A reader that has seen a group's version needs not read its 24 lines again while the version
 * stays. Eight neighbouring slots share a line and 64 a version: callers that book on them at the
 * same moment wait for each other some tens of nanoseconds, while every decision reads the loads.
 */
public final class LoadBoardDescriptor {
    /** Slots of a group; as many as a word has bits. */
    public static final int GROUP_SLOTS = Long.SIZE;

    /** Number of changes of the group. */
    public static final int VERSION_OFFSET = 0;

    /** Slots that take requests. */
    public static final int OPEN_SLOTS_OFFSET = VERSION_OFFSET + Long.BYTES;

    /** Tokens still to be prefilled, by slot of the group. */
    public static final int PREFILL_TOKENS_OFFSET = 128;

    /** Blocks in use by running requests, by slot of the group. */
    public static final int ACTIVE_BLOCKS_OFFSET = PREFILL_TOKENS_OFFSET + GROUP_SLOTS * Long.BYTES;

    /** Running requests, by slot of the group. */
    public static final int ACTIVE_REQUESTS_OFFSET =
            ACTIVE_BLOCKS_OFFSET + GROUP_SLOTS * Long.BYTES;

    /** Provisional loads begun and taken back, by slot of the group. */
    public static final int PROVISIONS_OFFSET = ACTIVE_REQUESTS_OFFSET + GROUP_SLOTS * Long.BYTES;

    /** Added to the provisions for one more begun. */
    static final long ONE_BEGUN = 1L << Integer.SIZE;

    /** Added to the provisions for one more taken back. */
    static final long ONE_TAKEN_BACK = 1;

    /** Bytes of a group. */
    public static final int GROUP_LENGTH = PROVISIONS_OFFSET + GROUP_SLOTS * Long.BYTES;

    private LoadBoardDescriptor() {}

    /** Number of groups that hold so many slots. */
    public static int groups(int slots) {
        return (slots + GROUP_SLOTS - 1) / GROUP_SLOTS;
    }

    /** Byte offset of a group. */
    public static long groupOffset(int group) {
        return (long) group * GROUP_LENGTH;
    }

    /** Byte offset of the group that a slot is in. */
    public static long groupOffsetOf(int slot) {
        return groupOffset(slot / GROUP_SLOTS);
    }

    /** Bytes from a field's first value in the group to a slot's. */
    public static long valueOffset(int slot) {
        return (long) (slot % GROUP_SLOTS) * Long.BYTES;
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
