package io.kvasir.nixl.loopback;

/**
 * Layout of an inbox file: a page that names its owner, then a lane for each sender. A lane has one
 * writer, its sender, and one reader, the owner of the file; so a sender that dies in the middle of
 * a message has published nothing and blocks no other sender.
 *
 * <pre>
 *   file
 *   0       8          16    24      32           40     48       56           4096
 *   +-------+----------+-----+-------+------------+------+--------+-----------+--+--------+--------+
 *   | magic | instance | pid | lanes | lane bytes | used | closed | polled ns |..| lane 0 | lane 1 | ...
 *   +-------+----------+-----+-------+------------+------+--------+-----------+--+--------+--------+
 *   used: lanes ever taken. polled: when the owner last took messages (System.nanoTime)
 *
 *   lane
 *   0           8         16         24      28         32             128    192    256
 *   +-----------+---------+----------+-------+----------+--------------+------+------+-----------------+
 *   | owner pid | started | instance | state | name len | name (UTF-8) | tail | head | data: lane bytes|
 *   +-----------+---------+----------+-------+----------+--------------+------+------+-----------------+
 *   owner: 0 = free, taken by compare-and-set. tail is the sender's, head the receiver's; both only grow
 *
 *   record, at a multiple of 8
 *   0              4     8
 *   +--------------+-----+-----------------+
 *   | length or -1 | pad | message         |   -1: nothing more before the end of data
 *   +--------------+-----+-----------------+
 * </pre>
 */
final class InboxDescriptor {
    static final long MAGIC = 0x58_4F_42_4E_53_56_4B_01L;

    static final int INSTANCE_OFFSET = 8;
    static final int PID_OFFSET = 16;
    static final int LANES_OFFSET = 24;
    static final int LANE_BYTES_OFFSET = 32;
    static final int USED_OFFSET = 40;
    static final int CLOSED_OFFSET = 48;
    static final int POLLED_OFFSET = 56;

    static final int OWNER_OFFSET = 0;
    static final int START_OFFSET = 8;
    static final int SENDER_OFFSET = 16;
    static final int STATE_OFFSET = 24;
    static final int NAME_LENGTH_OFFSET = 28;
    static final int NAME_OFFSET = 32;
    static final int TAIL_OFFSET = 128;
    static final int HEAD_OFFSET = 192;
    static final int DATA_OFFSET = 256;

    /** No sender has claimed it. */
    static final int FREE = 0;

    /** The sender is connected. */
    static final int OPEN = 1;

    /** The sender has left; the lane is free when it is empty. */
    static final int LEFT = 2;

    /** What lies in it makes no sense; nothing is taken from it until its sender is gone. */
    static final int BROKEN = 3;

    static final int RECORD_HEADER = 8;
    static final int PADDING = -1;

    private InboxDescriptor() {}

    static long fileLength(int lanes, int laneBytes) {
        return laneOffset(lanes, laneBytes);
    }

    static long laneOffset(int lane, int laneBytes) {
        return SharedFolder.PAGE + lane * (long) (DATA_OFFSET + laneBytes);
    }

    static int recordLength(int messageLength) {
        return (RECORD_HEADER + messageLength + 7) & -8;
    }
}
