package io.kvasir.core.load;

import io.kvasir.core.memory.ChainedHashEntries;

/**
 * Layout of one running request of a {@link RequestTable}: one cache line.
 *
 * <pre>
 *   0        4        8                16               24               32
 *   +--------+--------+----------------+----------------+----------------+
 *   | next   | slot   | request id     | prefill tokens | deadline       |
 *   +--------+--------+----------------+----------------+----------------+
 *   32       36       40    42    44         48     52     56     60     64
 *   +--------+--------+-----+-----+----------+------+------+------+------+
 *   | array  | own    |place|timer| gener-   |slot's|slot's|timer |timer |
 *   |        | blocks |     |     | ation    | next |before| next |before|
 *   +--------+--------+-----+-----+----------+------+------+------+------+
 *   prefill tokens  Long.MIN_VALUE = none any more: the request generates
 *   array, place    end of the path: first segment of the array that has the last prompt block
 *                   followed, and its place there. The root = no block followed
 *   timer           1 + bucket of the deadline wheel, 0 = no deadline
 *   generation      +1 when the entry is handed out, +1 when it is given back: odd = running
 * </pre>
 */
public final class RequestDescriptor {
    /** Worker slot. */
    public static final int SLOT_OFFSET = ChainedHashEntries.FIELDS_OFFSET;

    /** The caller's number of the request. */
    public static final int REQUEST_ID_OFFSET = SLOT_OFFSET + Integer.BYTES;

    /** Tokens still counted as to be prefilled. */
    public static final int PREFILL_TOKENS_OFFSET = REQUEST_ID_OFFSET + Long.BYTES;

    /** Time in ns when the request ends of itself. */
    public static final int DEADLINE_OFFSET = PREFILL_TOKENS_OFFSET + Long.BYTES;

    /** First segment of the array in which the path ends. */
    public static final int ARRAY_OFFSET = DEADLINE_OFFSET + Long.BYTES;

    /** Blocks that no other request can share: output and prompt blocks not followed. */
    public static final int OWN_BLOCKS_OFFSET = ARRAY_OFFSET + Integer.BYTES;

    /** Place in the array of the last block of the path. */
    public static final int PLACE_OFFSET = OWN_BLOCKS_OFFSET + Integer.BYTES;

    /** Where the request is in the deadline wheel. */
    public static final int TIMER_OFFSET = PLACE_OFFSET + Short.BYTES;

    /** How often the entry was handed out and given back. */
    public static final int GENERATION_OFFSET = TIMER_OFFSET + Short.BYTES;

    /** Next request of the slot. */
    public static final int SLOT_NEXT_OFFSET = GENERATION_OFFSET + Integer.BYTES;

    /** Request of the slot before this one. */
    public static final int SLOT_PREVIOUS_OFFSET = SLOT_NEXT_OFFSET + Integer.BYTES;

    /** Next request of the wheel's bucket. */
    public static final int TIMER_NEXT_OFFSET = SLOT_PREVIOUS_OFFSET + Integer.BYTES;

    /** Request of the wheel's bucket before this one. */
    public static final int TIMER_PREVIOUS_OFFSET = TIMER_NEXT_OFFSET + Integer.BYTES;

    /** Bytes of a request. */
    public static final int ENTRY_LENGTH = TIMER_PREVIOUS_OFFSET + Integer.BYTES;

    /** Prefill tokens of a request that generates. */
    public static final long PREFILL_OVER = Long.MIN_VALUE;

    private RequestDescriptor() {}
}
