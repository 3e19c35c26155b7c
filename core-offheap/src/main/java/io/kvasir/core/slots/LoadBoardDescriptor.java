package io.kvasir.core.slots;

/**
 * Layout of a {@link LoadBoard}: groups of 64 worker slots, values of one kind side by side.
 *
 * <pre>
 *   0         8         16              128              640             1152              1664
 *   +---------+---------+----- ... -----+------ ... -----+----- ... -----+------- ... -----+
 *   | version | open    | unused        | prefill tokens | active blocks | active requests |
 *   |         | slots   |               | of slots 0..63 | of 0..63      | of 0..63        |
 *   +---------+---------+----- ... -----+------ ... -----+----- ... -----+------- ... -----+
 *   version: +1 behind every change of the group     open slots: one bit a slot, lowest first
 * </pre>
 *
 * <p>A reader who has seen a group's version needs not read its 24 lines again while the version
 * stays. Eight neighbouring slots share a line and 64 a version: callers who book on them at the
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

    /** Bytes of a group. */
    public static final int GROUP_LENGTH = ACTIVE_REQUESTS_OFFSET + GROUP_SLOTS * Long.BYTES;

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
}
