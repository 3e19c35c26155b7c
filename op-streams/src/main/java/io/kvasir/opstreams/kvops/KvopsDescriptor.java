package io.kvasir.opstreams.kvops;

import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;

/**
 * Layout of a KVOPS v1 file: a header, then records of a head and a payload. Little-endian, all
 * 64-bit fields aligned.
 *
 * <pre>
 * header
 *   0                8       12        16            20      24        32
 *   +----------------+-------+---------+-------------+-------+---------+
 *   | "KVOPS001"     |version| length  |tokens/block |workers| capacity|
 *   +----------------+-------+---------+-------------+-------+---------+
 *   32       40       48      56       64            72       80       88       96
 *   +--------+--------+-------+--------+-------------+--------+--------+--------+
 *   | records| queries| stored| removed|query blocks | stored | removed| routed |
 *   +--------+--------+-------+--------+-------------+--------+--------+--------+
 *   96       104     112          116          120      128
 *   +--------+-------+------------+------------+--------+
 *   | seed   | flags | max query  | max event  |   0    |
 *   +--------+-------+------------+------------+--------+
 * record
 *   0    1      2     4       8        12        16     24        32
 *   +----+------+-----+-------+--------+---------+------+---------+----------------------+
 *   | op | flags|  0  | count | worker | request |  a   | time us | payload: 64-bit words|
 *   +----+------+-----+-------+--------+---------+------+---------+----------------------+
 * </pre>
 */
final class KvopsDescriptor {
    static final long MAGIC = 0x3130_3053_504F_564BL; // "KVOPS001", read as little-endian
    static final int VERSION = 1;

    static final int HEADER_LENGTH = 128;
    static final int MAGIC_OFFSET = 0;
    static final int VERSION_OFFSET = 8;
    static final int HEADER_LENGTH_OFFSET = 12;
    static final int BLOCK_TOKENS_OFFSET = 16;
    static final int WORKERS_OFFSET = 20;
    static final int CAPACITY_OFFSET = 24;
    static final int RECORDS_OFFSET = 32;
    static final int QUERIES_OFFSET = 40;
    static final int STORED_OFFSET = 48;
    static final int REMOVED_OFFSET = 56;
    static final int QUERY_BLOCKS_OFFSET = 64;
    static final int STORED_BLOCKS_OFFSET = 72;
    static final int REMOVED_BLOCKS_OFFSET = 80;
    static final int ROUTED_OFFSET = 88;
    static final int SEED_OFFSET = 96;
    static final int FLAGS_OFFSET = 104;
    static final int MAX_QUERY_OFFSET = 112;
    static final int MAX_EVENT_OFFSET = 116;

    static final int HEAD_LENGTH = 32;
    static final int OP_OFFSET = 0;
    static final int RECORD_FLAGS_OFFSET = 1;
    static final int COUNT_OFFSET = 4;
    static final int WORKER_OFFSET = 8;
    static final int REQUEST_OFFSET = 12;
    static final int A_OFFSET = 16;
    static final int TIME_OFFSET = 24;

    static final byte QUERY = 1;
    static final byte STORED = 2;
    static final byte REMOVED = 3;
    static final byte CLEARED = 4;
    static final byte ROUTED = 5;
    static final byte PREFILL_DONE = 6;
    static final byte FREE = 7;
    static final byte DECODE_BLOCK = 8;

    /** Record flag of a store: {@code a} names the block before the run. */
    static final int HAS_PARENT = 1;

    /** Request number of a removal, which belongs to none. */
    static final int NO_REQUEST = -1;

    static final ValueLayout.OfInt INT =
            ValueLayout.JAVA_INT.withOrder(ByteOrder.LITTLE_ENDIAN); // unsigned in the file
    static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG.withOrder(ByteOrder.LITTLE_ENDIAN);

    private KvopsDescriptor() {}

    /** 64-bit words of payload after the head of a record of {@code count} blocks. */
    static long payloadWords(int op, int count) {
        return switch (op) {
            case QUERY, REMOVED -> count;
            case STORED -> 2L * count; // name, local hash
            default -> 0;
        };
    }
}
