package io.kvasir.core.index;

/**
 * Layout of what an {@link IndexCheckpoint} keeps beside the arena: one area for the whole index,
 * and one with a record for each worker slot. All of it in words of 8 bytes, but for the label.
 *
 * <pre>
 *   index   0      8              16                 24                4024       4032      4096
 *           +------+--------------+------------------+-- … ------------+----------+---------+
 *           | root | lines handed | first line never | arena, tree,    | followed | owner's |
 *           |      | out          | handed out       | holders: in the | at       | words   |
 *           |      |              |                  | order of their  |          | 0 … 7   |
 *           |      |              |                  | keep methods    |          |         |
 *           +------+--------------+------------------+-- … ------------+----------+---------+
 *   slot    0        8          16        72                 256             320      328       512
 *           +--------+----------+-- … ----+-- … -------------+-- … ----------+--------+-- … -----+
 *           | held   | applied  | missing | held runs, en-   | owner's words | label  | label,   |
 *           | blocks | sequence | 0 … 6   | gine hashes: as  | 0 … 7         | length | then     |
 *           |        |          |         | their keep says  |               |        | anything |
 *           +--------+----------+-- … ----+-- … -------------+-- … ----------+--------+-- … -----+
 * </pre>
 */
final class IndexCheckpointDescriptor {
    static final int ROOT_OFFSET = 0;
    static final int WORDS_OFFSET = ROOT_OFFSET + Long.BYTES;
    static final int INDEX_LENGTH = 4096;

    static final int USED_LINES_OFFSET = WORDS_OFFSET;
    static final int UNTOUCHED_OFFSET = USED_LINES_OFFSET + Long.BYTES;

    static final int HELD_OFFSET = 0;
    static final int SLOT_WORDS = 32;
    static final int OWNER_WORDS_OFFSET = SLOT_WORDS * Long.BYTES;
    static final int OWNER_WORDS = 8;
    static final int INDEX_OWNER_WORDS_OFFSET = INDEX_LENGTH - OWNER_WORDS * Long.BYTES;
    static final int FOLLOWED_OFFSET = INDEX_OWNER_WORDS_OFFSET - Long.BYTES;
    static final int LABEL_LENGTH_OFFSET = OWNER_WORDS_OFFSET + OWNER_WORDS * Long.BYTES;
    static final int LABEL_OFFSET = LABEL_LENGTH_OFFSET + Long.BYTES;
    static final int SLOT_LENGTH = 512;
    static final int MOST_LABEL = SLOT_LENGTH - LABEL_OFFSET;

    private IndexCheckpointDescriptor() {}

    static long slotOffset(int slot) {
        return (long) slot * SLOT_LENGTH;
    }

    static long indexOwnerWordOffset(int word) {
        return INDEX_OWNER_WORDS_OFFSET + (long) word * Long.BYTES;
    }

    static long ownerWordOffset(int slot, int word) {
        return slotOffset(slot) + OWNER_WORDS_OFFSET + (long) word * Long.BYTES;
    }
}
