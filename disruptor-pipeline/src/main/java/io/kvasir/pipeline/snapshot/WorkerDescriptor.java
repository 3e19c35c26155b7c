package io.kvasir.pipeline.snapshot;

/**
 * Layout of the payloads of a worker's chunks that are no records; all numbers little-endian.
 *
 * <pre>
 *   WORKER
 *   0      4            8          16          24        32            40        48         56      60
 *   +------+------------+----------+-----------+---------+-------------+---------+----------+-------+--- … ---+
 *   | rank | block size | seed     | sequence  | content | held blocks | missing | turnover | flags | name    |
 *   +------+------------+----------+-----------+---------+-------------+---------+----------+-------+--- … ---+
 *   seed      of the local hashes        sequence, content   of the last message that the slot has
 *   flags     1 = nothing is missing but for lack of room        name   UTF-8, up to the end
 *
 *   WORKER_END
 *   0        4       8            16
 *   +--------+-------+------------+------------------- … ---+
 *   | chunks | flags | main group | engine hash, seed   …   |
 *   +--------+-------+------------+------------------- … ---+
 *   chunks    of records that the worker has        flags   1 = removals mean the last copy, 2 = EAGLE
 *
 *   POSITION
 *   0          8          16
 *   +----------+----------+
 *   | position | followed |
 *   +----------+----------+
 *   position  in a stream that many share        followed   time when a router last followed it, in ms since 1970
 * </pre>
 */
final class WorkerDescriptor {
    static final int RANK_OFFSET = 0;
    static final int BLOCK_SIZE_OFFSET = RANK_OFFSET + Integer.BYTES;
    static final int SEED_OFFSET = BLOCK_SIZE_OFFSET + Integer.BYTES;
    static final int SEQUENCE_OFFSET = SEED_OFFSET + Long.BYTES;
    static final int CONTENT_OFFSET = SEQUENCE_OFFSET + Long.BYTES;
    static final int HELD_OFFSET = CONTENT_OFFSET + Long.BYTES;
    static final int MISSING_OFFSET = HELD_OFFSET + Long.BYTES;
    static final int TURNOVER_OFFSET = MISSING_OFFSET + Long.BYTES;
    static final int FLAGS_OFFSET = TURNOVER_OFFSET + Long.BYTES;
    static final int NAME_OFFSET = FLAGS_OFFSET + Integer.BYTES;

    static final int CHUNKS_OFFSET = 0;
    static final int END_FLAGS_OFFSET = CHUNKS_OFFSET + Integer.BYTES;
    static final int MAIN_GROUP_OFFSET = END_FLAGS_OFFSET + Integer.BYTES;
    static final int SEEDS_OFFSET = MAIN_GROUP_OFFSET + Long.BYTES;

    static final int POSITION_OFFSET = 0;
    static final int FOLLOWED_OFFSET = POSITION_OFFSET + Long.BYTES;
    static final int POSITION_LENGTH = FOLLOWED_OFFSET + Long.BYTES;

    /** Flag of a worker: nothing is missing but for lack of room. */
    static final int COMPLETE = 1;

    /** Flag of its end: removals mean the last copy. */
    static final int LAST_COPY = 1;

    /** Flag of its end: blocks are hashed for EAGLE. */
    static final int EAGLE = 2;

    private WorkerDescriptor() {}
}
