package io.kvasir.pipeline.booking;

/**
 * One record of a {@link ReplicaOutbox}: what has become of the router's own bookings. Owned and
 * reused by the thread that reads the outbox.
 */
public final class ReplicaRecord {
    /** What a record says. */
    public enum Kind {
        /** A booking is there: {@code items} are the hashes of its prompt. */
        ADDED(0),
        /** Its prompt is computed. */
        PREFILLED(1),
        /** Its output has filled blocks: {@code ownBlocks} is the new total. */
        OUTPUT(2),
        /** It has ended. */
        FREED(3),
        /** {@code items} are sums over the bookings of some worker slots. */
        DIGEST(4),
        /** {@code items} are all bookings of one worker slot. */
        LIST(5);

        /** Stands for it in a record; index in {@link #values}. */
        final int code;

        Kind(int code) {
            this.code = code;
        }
    }

    /**
     * Items of a slot in a {@link Kind#DIGEST}: {@code [slot generation:32 | slot:32]}, bookings,
     * prefill tokens, own blocks, and the sum of {@link #mix} over the numbers of the bookings.
     */
    public static final int DIGEST_ITEMS = 5;

    /** Items of a booking in a {@link Kind#LIST}: number, prefill tokens, own blocks. */
    public static final int LIST_ITEMS = 3;

    private static final Kind[] KINDS = Kind.values();

    int kind;
    long sequence;
    long booking;
    int slot;
    int slotGeneration;
    long prefillTokens;
    int ownBlocks;
    int pathBlocks;
    int itemCount;
    long[] items = new long[256];

    /** An empty record. */
    public ReplicaRecord() {}

    /** What it says. */
    public Kind kind() {
        return KINDS[kind];
    }

    /**
     * Its number: each record that the writer makes has the next one, from 1; an {@link
     * Kind#OUTPUT} that of the record before it.
     */
    public long sequence() {
        return sequence;
    }

    /** Number of the booking; 0 where it is about several. */
    public long booking() {
        return booking;
    }

    /** Worker slot that it is about. */
    public int slot() {
        return slot;
    }

    /** Which tenant of the slot. */
    public int slotGeneration() {
        return slotGeneration;
    }

    /** Tokens that the worker has still to prefill, of a {@link Kind#ADDED}. */
    public long prefillTokens() {
        return prefillTokens;
    }

    /** Blocks that the booking shares with no other. */
    public int ownBlocks() {
        return ownBlocks;
    }

    /** Blocks of its prompt besides; the hashes may be those of the first of them alone. */
    public int pathBlocks() {
        return pathBlocks;
    }

    /** Items; their meaning is that of the kind. */
    public int itemCount() {
        return itemCount;
    }

    /** The items, [{@link #itemCount}]; overwritten by the next record. */
    public long[] items() {
        return items;
    }

    /**
     * What a booking's number adds to a digest: its bits mixed, so that the sums of two sets of
     * numbers are hardly ever equal.
     *
     * @see <a href="https://doi.org/10.1145/2660193.2660195">Steele, Lea, Flood 2014</a>
     */
    public static long mix(long number) {
        long z = number + 0x9E3779B97F4A7C15L;
        z = (z ^ z >>> 30) * 0xBF58476D1CE4E5B9L;
        z = (z ^ z >>> 27) * 0x94D049BB133111EBL;
        return z ^ z >>> 31;
    }
}
