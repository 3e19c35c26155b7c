package io.kvasir.core.counters;

/**
 * Layout of a file of counters, little-endian; all sections begin at a multiple of 128.
 *
 * <pre>
 *   0       8          12        16       20      24        32        40        48      128
 *   +-------+----------+---------+--------+-------+---------+---------+---------+- ... -+- ...
 *   | magic | metadata | values  | errors | state | process | started | written | unused| metadata
 *   |       | length   | length  | length |       | id      | ms      | ms      |       | values
 *   +-------+----------+---------+--------+-------+---------+---------+---------+- ... -+ errors
 *   magic: written last, in release mode     state: 1 written to, 2 closed
 *   started, written: milliseconds since the epoch; written: when the values were set last
 *
 *   metadata of counter i, at 512 i                            values of counter i, at 128 i
 *   0       4      8          16    128      132    512        0       8              32       128
 *   +-------+------+----------+-----+--------+------+          +-------+--------------+- ... -+
 *   | state | type | reusable | key | label  | label|          | value | registration,| unused|
 *   |       | id   | from ms  |     | length | UTF-8|          |       | owner, ref.  |       |
 *   +-------+------+----------+-----+--------+------+          +-------+--------------+- ... -+
 *   state: 0 never used, ends the list; 1 allocated; -1 free   key, registration .. : unused, 0
 *
 *   an error, at a multiple of 8
 *   0        4       8         16         24
 *   +--------+-------+---------+----------+------------------------+
 *   | length | count | last ms | first ms | stack trace, UTF-8 ... |
 *   +--------+-------+---------+----------+------------------------+
 *   length: of all of it, written last, in release mode; 0 ends the list
 * </pre>
 */
final class CountersDescriptor {
    /** "KVCOUNT1", lowest byte first. */
    static final long MAGIC = 0x31544E554F43564BL;

    static final int MAGIC_OFFSET = 0;
    static final int METADATA_LENGTH_OFFSET = MAGIC_OFFSET + Long.BYTES;
    static final int VALUES_LENGTH_OFFSET = METADATA_LENGTH_OFFSET + Integer.BYTES;
    static final int ERRORS_LENGTH_OFFSET = VALUES_LENGTH_OFFSET + Integer.BYTES;
    static final int STATE_OFFSET = ERRORS_LENGTH_OFFSET + Integer.BYTES;
    static final int PROCESS_OFFSET = STATE_OFFSET + Integer.BYTES;
    static final int STARTED_OFFSET = PROCESS_OFFSET + Long.BYTES;
    static final int WRITTEN_OFFSET = STARTED_OFFSET + Long.BYTES;
    static final int HEADER_LENGTH = 128;

    static final int RUNNING = 1;
    static final int CLOSED = 2;

    static final int COUNTER_STATE_OFFSET = 0;
    static final int TYPE_OFFSET = COUNTER_STATE_OFFSET + Integer.BYTES;
    static final int REUSABLE_FROM_OFFSET = TYPE_OFFSET + Integer.BYTES;
    static final int KEY_OFFSET = REUSABLE_FROM_OFFSET + Long.BYTES;
    static final int LABEL_LENGTH_OFFSET = 128;
    static final int LABEL_OFFSET = LABEL_LENGTH_OFFSET + Integer.BYTES;
    static final int METADATA_LENGTH = 512;
    static final int MAX_LABEL_LENGTH = METADATA_LENGTH - LABEL_OFFSET;

    static final int UNUSED = 0;
    static final int ALLOCATED = 1;
    static final int FREE = -1;

    /** Time that a counter cannot be reused at. */
    static final long NEVER = Long.MAX_VALUE;

    static final int VALUE_LENGTH = 128;

    static final int ERROR_LENGTH_OFFSET = 0;
    static final int ERROR_COUNT_OFFSET = ERROR_LENGTH_OFFSET + Integer.BYTES;
    static final int ERROR_LAST_OFFSET = ERROR_COUNT_OFFSET + Integer.BYTES;
    static final int ERROR_FIRST_OFFSET = ERROR_LAST_OFFSET + Long.BYTES;
    static final int ERROR_TEXT_OFFSET = ERROR_FIRST_OFFSET + Long.BYTES;
    private static final int ERROR_ALIGNMENT = Long.BYTES;

    private CountersDescriptor() {}

    /** Bytes from the start of an error of some length to that of the next one. */
    static long alignedError(int length) {
        return (long) Math.ceilDiv(length, ERROR_ALIGNMENT) * ERROR_ALIGNMENT;
    }

    static long metadataOffset(int counter) {
        return HEADER_LENGTH + (long) counter * METADATA_LENGTH;
    }

    static long valueOffset(int counters, int counter) {
        return metadataOffset(counters) + (long) counter * VALUE_LENGTH;
    }

    static long errorsOffset(int counters) {
        return valueOffset(counters, counters);
    }
}
