package io.kvasir.opstreams.alternatives.flat;

/**
 * Layout of one block of a {@link FlatBlocks}: its sequence hash and a bit for every worker slot
 * that holds it.
 *
 * <pre>
 *   0        4        8                16               24       16 + 8 n
 *   +--------+--------+----------------+----------------+-- ... --+
 *   | next   | version| sequence hash  | slots 0..63    | 64..127 |
 *   +--------+--------+----------------+----------------+-- ... --+
 *   version: odd = free or being written, even = the sequence hash stands
 *   slots:   bit s % 64 of word s / 64 is set while worker slot s holds the block
 * </pre>
 */
final class BlockEntryDescriptor {
    /** Version int; rises by 2 each time the entry gets another sequence hash. */
    public static final int VERSION_OFFSET = ChainedHashEntries.FIELDS_OFFSET;

    /** Sequence hash. */
    public static final int SEQUENCE_HASH_OFFSET = VERSION_OFFSET + Integer.BYTES;

    /** First word of holder bits. */
    public static final int HOLDERS_OFFSET = SEQUENCE_HASH_OFFSET + Long.BYTES;

    private BlockEntryDescriptor() {}

    /** Words of holder bits for that many worker slots. */
    public static int holderWords(int workerSlots) {
        return (workerSlots + Long.SIZE - 1) / Long.SIZE;
    }

    /** Bytes of an entry for that many worker slots. */
    public static int entryLength(int workerSlots) {
        return HOLDERS_OFFSET + holderWords(workerSlots) * Long.BYTES;
    }

    /** Offset, inside an entry, of the word with a slot's bit. */
    public static int holderWordOffset(int slot) {
        return HOLDERS_OFFSET + slot / Long.SIZE * Long.BYTES;
    }

    /** A slot's bit in its word. */
    public static long holderBit(int slot) {
        return 1L << slot;
    }
}
