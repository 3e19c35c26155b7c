package io.kvasir.core.slots;

import io.kvasir.core.memory.EntryChains;

/**
 * Layout of one running request of a {@link RequestTable}.
 *
 * <pre>
 *   0        4        8                16               24       28       32       36       40
 *   +--------+--------+----------------+----------------+--------+--------+--------+--------+
 *   | next   | slot   | request id     | prefill tokens | phase  | tail   | slot's | slot's |
 *   |        |        |                |                |        |        | next   | before |
 *   +--------+--------+----------------+----------------+--------+--------+--------+--------+
 *   40               48
 *   +----------------+
 *   | own blocks     |
 *   +----------------+
 *   phase: 0 = being prefilled, 1 = generating
 *   tail:  the (slot, block) pair of the last prompt block followed; each pair knows the one before
 * </pre>
 */
public final class RequestDescriptor {
    /** Worker slot. */
    public static final int SLOT_OFFSET = EntryChains.FIELDS_OFFSET;

    /** The caller's number of the request. */
    public static final int REQUEST_ID_OFFSET = SLOT_OFFSET + Integer.BYTES;

    /** Tokens still counted as to be prefilled. */
    public static final int PREFILL_TOKENS_OFFSET = REQUEST_ID_OFFSET + Long.BYTES;

    /** Being prefilled or generating. */
    public static final int PHASE_OFFSET = PREFILL_TOKENS_OFFSET + Long.BYTES;

    /** Pair of the last prompt block followed. */
    public static final int TAIL_OFFSET = PHASE_OFFSET + Integer.BYTES;

    /** Next request of the slot. */
    public static final int SLOT_NEXT_OFFSET = TAIL_OFFSET + Integer.BYTES;

    /** Request of the slot before this one. */
    public static final int SLOT_PREVIOUS_OFFSET = SLOT_NEXT_OFFSET + Integer.BYTES;

    /** Blocks that no other request can share: output and prompt blocks not followed. */
    public static final int OWN_BLOCKS_OFFSET = SLOT_PREVIOUS_OFFSET + Integer.BYTES;

    /** Bytes of a request. */
    public static final int ENTRY_LENGTH = OWN_BLOCKS_OFFSET + Long.BYTES;

    /** Phase of a request that is being prefilled. */
    public static final int PREFILL = 0;

    /** Phase of a request that generates. */
    public static final int DECODE = 1;

    private RequestDescriptor() {}
}
