package io.kvasir.core.memory;

/**
 * Layout of a {@link RecoverableMemory}: its first page, the undo log, and the areas of its owner,
 * each from a page on.
 *
 * <pre>
 *   0       8         16      24           32      40      48         56       64
 *   +-------+---------+-------+------------+-------+-------+----------+--------+
 *   | magic | version | state | generation | boot  | boot  | checksum | length |
 *   +-------+---------+-------+------------+-------+-------+----------+--------+
 *   64          72             64 + 8 n                        4096            4096 + log
 *   +-----------+-------------+----------+--------------------+---------------+-- … ------+
 *   | words: n  | word 0      | …        | zeros              | undo log      | areas     |
 *   +-----------+-------------+----------+--------------------+---------------+-- … ------+
 *   magic       "KVASIRRM" in the byte order of the machine: another order is no magic
 *   state       0 = being made, 1 = in use, or its process was killed, 2 = closed, 3 = spoiled
 *   generation  how often it was opened
 *   boot        life of the operating system that has it in memory, 0 = unknown
 *   checksum    CRC32C of version, length, count and words
 *   length      bytes of all of it
 *   word        constants of the owner: sizes, seeds
 * </pre>
 */
final class RecoverableDescriptor {
    static final int PAGE = 4096;
    static final int MAGIC_OFFSET = 0;
    static final int VERSION_OFFSET = MAGIC_OFFSET + Long.BYTES;
    static final int STATE_OFFSET = VERSION_OFFSET + Long.BYTES;
    static final int GENERATION_OFFSET = STATE_OFFSET + Long.BYTES;
    static final int BOOT_OFFSET = GENERATION_OFFSET + Long.BYTES;
    static final int CHECKSUM_OFFSET = BOOT_OFFSET + 2 * Long.BYTES;
    static final int LENGTH_OFFSET = CHECKSUM_OFFSET + Long.BYTES;
    static final int COUNT_OFFSET = LENGTH_OFFSET + Long.BYTES;
    static final int WORDS_OFFSET = COUNT_OFFSET + Long.BYTES;
    static final int LOG_OFFSET = PAGE;
    static final int MOST_WORDS = (PAGE - WORDS_OFFSET) / Long.BYTES;

    static final long MAGIC = 0x4b56_4153_4952_524dL;
    static final long VERSION = 1;

    static final long BEING_MADE = 0;
    static final long IN_USE = 1;
    static final long CLOSED = 2;
    static final long SPOILED = 3;

    private RecoverableDescriptor() {}

    static long wordOffset(int word) {
        return WORDS_OFFSET + (long) word * Long.BYTES;
    }

    /** Length of an area, to the end of a page. */
    static long pages(long length) {
        return (length + PAGE - 1) & -PAGE;
    }
}
