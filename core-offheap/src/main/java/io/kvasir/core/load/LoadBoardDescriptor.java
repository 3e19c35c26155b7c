package io.kvasir.core.load;

/**
 * Layout of a {@link LoadBoard}: groups of 64 worker slots, values of one kind side by side.
 *
 * <pre>
 *   0         8       16         24       128              640             1152              1664         2176
 *   +---------+-------+----------+- ... --+------ ... -----+----- ... -----+------- ... -----+---- ... ---+
 *   | version | open  | reported | unused | prefill tokens | active blocks | active requests | provisions |
 *   |         | slots | slots    |        | of slots 0..63 | of 0..63      | of 0..63        | of 0..63   |
 *   +---------+-------+----------+- ... --+------ ... -----+----- ... -----+------- ... -----+---- ... ---+
 *   2176               2688              3200                3712                        5760
 *   +------- ... ------+------ ... ------+------- ... -------+------------ ... ----------+
 *   | others' prefill  | others' blocks  | others' requests  | running, waiting, used    |
 *   | tokens, 0..63    | of 0..63        | of 0..63          | blocks, blocks of engines |
 *   +------- ... ------+------ ... ------+------- ... -------+------------ ... ----------+
 *   version: +1 after every change of the group     open slots: one bit a slot, lowest first
 *   provisions: [ provisional loads begun:32 | taken back:32 ], modulo 2^32; both only ever rise
 *   reported slots: one bit a slot; the values from 2176 on mean nothing where it is 0
 * </pre>
 *
 * <p>A reader that has seen a group's version needs not read its lines again while the version
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

    /** Slots whose engine has reported its load. */
    public static final int REPORTED_SLOTS_OFFSET = OPEN_SLOTS_OFFSET + Long.BYTES;

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

    /** Tokens to prefill of requests that are not booked here, by slot of the group. */
    public static final int OTHERS_PREFILL_TOKENS_OFFSET =
            PROVISIONS_OFFSET + GROUP_SLOTS * Long.BYTES;

    /** Blocks in use by requests that are not booked here, by slot of the group. */
    public static final int OTHERS_BLOCKS_OFFSET =
            OTHERS_PREFILL_TOKENS_OFFSET + GROUP_SLOTS * Long.BYTES;

    /** Requests that are not booked here, by slot of the group. */
    public static final int OTHERS_REQUESTS_OFFSET =
            OTHERS_BLOCKS_OFFSET + GROUP_SLOTS * Long.BYTES;

    /** Requests that the engine runs, by slot of the group; {@link EngineLoad#UNKNOWN} is one. */
    public static final int ENGINE_RUNNING_OFFSET =
            OTHERS_REQUESTS_OFFSET + GROUP_SLOTS * Long.BYTES;

    /** Requests that wait in the engine; likewise. */
    public static final int ENGINE_WAITING_OFFSET =
            ENGINE_RUNNING_OFFSET + GROUP_SLOTS * Long.BYTES;

    /** Blocks of the engine's cache that are in use; likewise. */
    public static final int ENGINE_USED_BLOCKS_OFFSET =
            ENGINE_WAITING_OFFSET + GROUP_SLOTS * Long.BYTES;

    /** Blocks of the engine's cache; likewise. */
    public static final int ENGINE_BLOCKS_OFFSET =
            ENGINE_USED_BLOCKS_OFFSET + GROUP_SLOTS * Long.BYTES;

    /** Bytes of a group. */
    public static final int GROUP_LENGTH = ENGINE_BLOCKS_OFFSET + GROUP_SLOTS * Long.BYTES;

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
