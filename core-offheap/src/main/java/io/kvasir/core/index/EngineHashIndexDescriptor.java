package io.kvasir.core.index;

/**
 * Layout of one line of an {@link EngineHashIndex}: the entries of one bucket, or of what did not
 * fit into it.
 *
 * <pre>
 *   0                     12          16        20                    60        64
 *   +---------------------+-----------+---------+---------+-- … ------+---------+
 *   | tags 0 … 11         | meta      | entry 0 | entry 1 |           | entry 11|
 *   | one byte each       |           |         |         |           |         |
 *   +---------------------+-----------+---------+---------+-- … ------+---------+
 *   tag     a byte of the engine hash's keyed hash, never 0; 0 = no entry there
 *   meta    [ overflow line + 1, 0 = none:28 | entries:4 ]
 *   entry   what the owner keeps with the engine hash
 * </pre>
 *
 * <p>The entries of a line are its first ones. A bucket's own line is full while it has an overflow
 * line, and no overflow line is empty.
 */
final class EngineHashIndexDescriptor {
    static final int ENTRIES_PER_LINE = 12;
    static final int TAGS_OFFSET = 0;

    /** The last four tags, read with the meta word as one long. */
    static final int LAST_TAGS_OFFSET = TAGS_OFFSET + Long.BYTES;

    static final int META_OFFSET = TAGS_OFFSET + ENTRIES_PER_LINE;
    static final int COUNT_MASK = 0xF;
    static final int LINK_SHIFT = 4;
    static final int ENTRIES_OFFSET = META_OFFSET + Integer.BYTES;
    static final int LENGTH = ENTRIES_OFFSET + ENTRIES_PER_LINE * Integer.BYTES;

    private EngineHashIndexDescriptor() {}

    /** Offset, in a line, of an entry. */
    static int entryOffset(int entry) {
        return ENTRIES_OFFSET + entry * Integer.BYTES;
    }

    /** Offset, in a line, of the tag of an entry. */
    static int tagOffset(int entry) {
        return TAGS_OFFSET + entry;
    }
}
