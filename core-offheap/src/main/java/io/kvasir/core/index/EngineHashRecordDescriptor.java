package io.kvasir.core.index;

/**
 * Layout of one record of {@link EngineHashRecords}, about one engine hash of a worker slot.
 *
 * <pre>
 *   0                8          12         16         20         24
 *   +----------------+----------+----------+----------+----------+
 *   | engine hash    | position | copies   | next     | previous |
 *   +----------------+----------+----------+----------+----------+
 *   position   of the block, as in {@link HeldRunDescriptor}
 *   copies     physical copies announced under this engine hash
 *   next       record + 1 of another engine hash of the block, 0 = none; of a free record: of the
 *              next free one
 *   previous   record + 1 of the one before, 0 = none: this is the block's first engine hash
 * </pre>
 */
final class EngineHashRecordDescriptor {
    static final int ENGINE_HASH_OFFSET = 0;
    static final int POSITION_OFFSET = ENGINE_HASH_OFFSET + Long.BYTES;
    static final int COPIES_OFFSET = POSITION_OFFSET + Integer.BYTES;
    static final int NEXT_OFFSET = COPIES_OFFSET + Integer.BYTES;
    static final int PREVIOUS_OFFSET = NEXT_OFFSET + Integer.BYTES;
    static final int LENGTH = PREVIOUS_OFFSET + Integer.BYTES;

    private EngineHashRecordDescriptor() {}
}
