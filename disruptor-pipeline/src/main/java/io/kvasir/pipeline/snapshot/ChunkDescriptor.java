package io.kvasir.pipeline.snapshot;

/**
 * Layout of one chunk of a snapshot; all numbers little-endian.
 *
 * <pre>
 *   0        4      5       6        8        12       16       20       24             24 + length
 *   +--------+------+-------+--------+--------+--------+--------+--------+---- … ----+
 *   | magic  | type |version| 0      | worker | length | CRC of | CRC of | payload   |
 *   | "KVSC" |      |       |        |        |        | payload| bytes  |           |
 *   |        |      |       |        |        |        |        | 0..19  |           |
 *   +--------+------+-------+--------+--------+--------+--------+--------+---- … ----+
 *   worker   number of the worker in the snapshot, −1 where the chunk is of none
 *   length   bytes of the payload, at most MAX_LENGTH
 *   CRC      CRC32C
 * </pre>
 */
final class ChunkDescriptor {
    static final int MAGIC = 'K' | 'V' << 8 | 'S' << 16 | 'C' << 24;

    /** The version that is written, and the last that is read. */
    static final byte VERSION = 1;

    static final int MAGIC_OFFSET = 0;
    static final int TYPE_OFFSET = MAGIC_OFFSET + Integer.BYTES;
    static final int VERSION_OFFSET = TYPE_OFFSET + Byte.BYTES;
    private static final int UNUSED_OFFSET = VERSION_OFFSET + Byte.BYTES;
    static final int WORKER_OFFSET = UNUSED_OFFSET + Short.BYTES;
    static final int LENGTH_OFFSET = WORKER_OFFSET + Integer.BYTES;
    static final int PAYLOAD_CRC_OFFSET = LENGTH_OFFSET + Integer.BYTES;
    static final int HEADER_CRC_OFFSET = PAYLOAD_CRC_OFFSET + Integer.BYTES;
    static final int HEADER_LENGTH = HEADER_CRC_OFFSET + Integer.BYTES;

    /** Longest payload: that of a worker's chunk with all seeds of salted chains. */
    static final int MAX_LENGTH = 4 << 20;

    /** No worker. */
    static final int NO_WORKER = -1;

    /** The first chunk: block size, seed of the hashes. */
    static final byte BEGIN = 1;

    /** Identity of a worker, and its message. */
    static final byte WORKER = 2;

    /** Records of a worker. */
    static final byte RECORDS = 3;

    /** The last chunk of a worker: how many records there are, and what it misses. */
    static final byte WORKER_END = 4;

    /** The last chunk: how many workers there are. */
    static final byte END = 5;

    /** Where a worker is in a stream that many share; after its records. */
    static final byte POSITION = 6;

    /** Higher ones are of later versions. */
    static final byte LAST_TYPE = POSITION;

    private ChunkDescriptor() {}
}
