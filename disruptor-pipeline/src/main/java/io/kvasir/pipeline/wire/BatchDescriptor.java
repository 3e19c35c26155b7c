package io.kvasir.pipeline.wire;

/**
 * Layout of one operation in the words of a {@link KvBatch}; operations follow each other without a
 * gap, in the order of the message. Offsets count 8-byte words from the operation's first one.
 *
 * <pre>
 *   word 0, of every operation
 *   63      56 55        50    49       48   47  34 33 32 31                              0
 *   +---------+------------+--------+------+------+-----+---------------------------------+
 *   | kind    | spare      | report | root | spare| tier| count                           |
 *   +---------+------------+--------+------+------+-----+---------------------------------+
 *
 *   kind            0        1                2                      2 + count
 *                   +--------+----------------+----------------------+----------------------+
 *   0 STORED        | word 0 | parent         | engine hash × count  | local hash × count   |
 *                   +--------+----------------+----------------------+----------------------+
 *                   0        1                      1 + count
 *                   +--------+----------------------+
 *   1 REMOVED       | word 0 | engine hash × count  |
 *                   +--------+-------------+--------+
 *   2 REMOVED_TO    | word 0 | engine hash |             count = copies that are left
 *                   +--------+-------------+
 *   3 CLEARED       | word 0 |                           count = 0
 *   4 REFILL        | word 0 |                           count = 0: begins, 1: is complete
 *                   +--------+----------------------+
 *   5 NAMED         | word 0 | engine hash × count  |    a store that says names only
 *                   +--------+----------------------+
 *   6 TIER_CLEARED  | word 0 |                           count = 0
 *   tier     of a STORED, a REMOVED, a NAMED and a TIER_CLEARED; 0 = the device
 *   report   a STORED that only reports what the engine holds
 *   root     a STORED whose first block starts a prompt; parent is without meaning then
 * </pre>
 */
final class BatchDescriptor {
    static final int KIND_SHIFT = 56;
    static final long ROOT_FLAG = 1L << 48;
    static final long REPORT_FLAG = ROOT_FLAG << 1;
    static final int TIER_SHIFT = 32;
    static final int TIER_MASK = 3;

    /** Word with kind, flags and count. */
    static final int HEAD_OFFSET = 0;

    private static final int FIELDS_OFFSET = HEAD_OFFSET + 1;

    /** Engine hash of the block before a STORED. */
    static final int PARENT_OFFSET = FIELDS_OFFSET;

    /** First engine hash of a STORED. */
    static final int STORED_HASHES_OFFSET = PARENT_OFFSET + 1;

    /** First engine hash of a REMOVED and a NAMED, the only one of a REMOVED_TO. */
    static final int REMOVED_HASHES_OFFSET = FIELDS_OFFSET;

    private BatchDescriptor() {}

    /** Offset of the first local hash of a STORED, which is that of its end without them. */
    static int localHashesOffset(int count) {
        return STORED_HASHES_OFFSET + count;
    }

    /** Words of an operation. */
    static int length(KvBatch.Kind kind, int count) {
        return switch (kind) {
            case STORED -> localHashesOffset(count) + count;
            case REMOVED, NAMED -> REMOVED_HASHES_OFFSET + count;
            case REMOVED_TO -> REMOVED_HASHES_OFFSET + 1;
            case CLEARED, REFILL, TIER_CLEARED -> FIELDS_OFFSET;
        };
    }
}
