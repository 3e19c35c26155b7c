package io.kvasir.core.load;

/**
 * Layout of one running request of a {@link RequestTable}: one cache line, by the index in the
 * request's number. The line before the first index is not used, so that 0 names no entry.
 *
 * <pre>
 *   0                8                16               24       28       32
 *   +----------------+----------------+----------------+--------+--------+
 *   | number         | prefill tokens | deadline       | slot   | array  |
 *   +----------------+----------------+----------------+--------+--------+
 *   32       36     38     40     44     48     52     56               64
 *   +--------+------+------+------+------+------+------+----------------+
 *   | own    |offset|timer |slot's|slot's|timer |timer | spare          |
 *   | blocks |      |      | next |before| next |before|                |
 *   +--------+------+------+------+------+------+------+----------------+
 *   number          [generation:32 | index:32], 0 = the entry is free
 *   prefill tokens  Long.MIN_VALUE = none any more: the request generates
 *   array, offset   end of the path: first segment of the array that has the last prompt block
 *                   followed, and its offset there. The root = no block followed
 *   timer           1 + bucket of the deadline wheel, 0 = no deadline
 * </pre>
 */
final class RequestDescriptor {
    /** The request's number; 0 while the entry is free. */
    static final int NUMBER_OFFSET = 0;

    /** Tokens still counted as to be prefilled. */
    static final int PREFILL_TOKENS_OFFSET = NUMBER_OFFSET + Long.BYTES;

    /** Time in ns when the request ends of itself. */
    static final int DEADLINE_OFFSET = PREFILL_TOKENS_OFFSET + Long.BYTES;

    /** Worker slot. */
    static final int SLOT_OFFSET = DEADLINE_OFFSET + Long.BYTES;

    /** First segment of the array in which the path ends. */
    static final int ARRAY_OFFSET = SLOT_OFFSET + Integer.BYTES;

    /** Blocks that no other request can share: output and prompt blocks not followed. */
    static final int OWN_BLOCKS_OFFSET = ARRAY_OFFSET + Integer.BYTES;

    /** Offset in the array of the last block of the path. */
    static final int PATH_END_OFFSET = OWN_BLOCKS_OFFSET + Integer.BYTES;

    /** Where the request is in the deadline wheel. */
    static final int TIMER_OFFSET = PATH_END_OFFSET + Short.BYTES;

    /** Next request of the slot. */
    static final int SLOT_NEXT_OFFSET = TIMER_OFFSET + Short.BYTES;

    /** Request of the slot before this one. */
    static final int SLOT_PREVIOUS_OFFSET = SLOT_NEXT_OFFSET + Integer.BYTES;

    /** Next request of the wheel's bucket. */
    static final int TIMER_NEXT_OFFSET = SLOT_PREVIOUS_OFFSET + Integer.BYTES;

    /** Request of the wheel's bucket before this one. */
    static final int TIMER_PREVIOUS_OFFSET = TIMER_NEXT_OFFSET + Integer.BYTES;

    private static final int SPARE_OFFSET = TIMER_PREVIOUS_OFFSET + Integer.BYTES;

    /** Bytes of a request. */
    static final int ENTRY_LENGTH = SPARE_OFFSET + Long.BYTES;

    /** Prefill tokens of a request that generates. */
    static final long PREFILL_OVER = Long.MIN_VALUE;

    private RequestDescriptor() {}

    /** Byte offset of an entry, which is 1 + its index. */
    static long entryOffset(int entry) {
        return (long) entry * ENTRY_LENGTH;
    }
}
