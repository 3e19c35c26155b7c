package io.kvasir.core.index;

import io.kvasir.core.memory.EntryChains;

/**
 * Layout of one note of a {@link NoteTable} about a worker slot's own name of a block.
 *
 * <pre>
 *   0        4        8                16       20       24       28       32
 *   +--------+--------+----------------+--------+--------+--------+--------+
 *   | next   | slot   | engine hash    | posi-  | copies | slot's | slot's |
 *   |        |        |                | tion   |        | next   | before |
 *   +--------+--------+----------------+--------+--------+--------+--------+
 *   position: as in {@link HoldingDescriptor}
 * </pre>
 */
public final class NoteDescriptor {
    /** Worker slot. */
    public static final int SLOT_OFFSET = EntryChains.FIELDS_OFFSET;

    /** The worker's name of the block. */
    public static final int ENGINE_HASH_OFFSET = SLOT_OFFSET + Integer.BYTES;

    /** Position of the block. */
    public static final int POSITION_OFFSET = ENGINE_HASH_OFFSET + Long.BYTES;

    /** Physical copies, at least 1. */
    public static final int COPIES_OFFSET = POSITION_OFFSET + Integer.BYTES;

    /** Next note of the slot. */
    public static final int SLOT_NEXT_OFFSET = COPIES_OFFSET + Integer.BYTES;

    /** Note of the slot before this one. */
    public static final int SLOT_PREVIOUS_OFFSET = SLOT_NEXT_OFFSET + Integer.BYTES;

    /** Bytes of a note. */
    public static final int ENTRY_LENGTH = SLOT_PREVIOUS_OFFSET + Integer.BYTES;

    private NoteDescriptor() {}
}
