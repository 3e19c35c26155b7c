package io.kvasir.opstreams.alternatives.flat;

import io.kvasir.core.memory.OffHeap;
import io.kvasir.core.memory.WriterCounter;

/**
 * Fixed-length off-heap entries that hang in chains from the buckets of a hash table.
 *
 * <p>Entries are named by a number from 1 and never move; {@link #NONE} names none. A free entry is
 * in a free list and is handed out again at once, last freed first. An entry starts with the number
 * of the next one (in its chain while in use, in the free list otherwise); the rest belongs to the
 * owner:
 *
 * <pre>
 *   0        4                          entryLength
 *   +--------+--------------------------+
 *   | next   | the owner's fields       |
 *   +--------+--------------------------+
 * </pre>
 *
 * <p>One writer thread. Other threads may walk a chain with {@link #firstAcquire} and {@link
 * #nextOpaque}: an entry is complete when it becomes reachable, but may be taken out and used again
 * during the walk: a walker must verify each entry by its fields.
 */
final class ChainedHashEntries implements AutoCloseable {
    /** Number of no entry. */
    static final int NONE = 0;

    /** Byte offset, inside an entry, of the int that names the next entry. */
    static final int NEXT_OFFSET = 0;

    /** Byte offset, inside an entry, of the first field that belongs to the owner. */
    static final int FIELDS_OFFSET = NEXT_OFFSET + Integer.BYTES;

    /** Largest number of entries of one table. */
    static final long MAX_ENTRIES = 1L << 30;

    private static final long SPREAD = 0x9E3779B97F4A7C15L;

    private final OffHeap heads;
    private final OffHeap entries;
    private final int entryLength;
    private final int capacity;
    private final int bucketShift;
    private final WriterCounter used = new WriterCounter();
    private int firstFree = NONE;
    private int lastFresh = NONE;

    /**
     * Allocates the table.
     *
     * @param name what the entries are, for error messages
     * @param capacity entries, 1..{@link #MAX_ENTRIES}
     * @param entryLength bytes of an entry, a multiple of 8
     * @throws IllegalArgumentException if a limit is broken
     */
    ChainedHashEntries(String name, long capacity, int entryLength) {
        if (capacity < 1 || capacity > MAX_ENTRIES) {
            throw new IllegalArgumentException(
                    name + " out of range: value=" + capacity + ", limits=1.." + MAX_ENTRIES);
        }
        if (entryLength < Long.BYTES || entryLength % Long.BYTES != 0) {
            throw new IllegalArgumentException(
                    "entry length must be a multiple of 8: table="
                            + name
                            + ", entryLength="
                            + entryLength);
        }
        this.capacity = (int) capacity;
        this.entryLength = entryLength;
        // at least two buckets: a shift by 64 would be a shift by 0
        final int bucketBits = Math.max(1, Long.SIZE - Long.numberOfLeadingZeros(capacity - 1));
        this.bucketShift = Long.SIZE - bucketBits;
        this.heads = OffHeap.allocate((long) Integer.BYTES << bucketBits);
        this.entries = OffHeap.orClose(heads, () -> OffHeap.allocate((capacity + 1) * entryLength));
    }

    /** Memory of the entries. */
    OffHeap memory() {
        return entries;
    }

    /** Byte offset of an entry in {@link #memory()}. */
    long offset(int entry) {
        return (long) entry * entryLength;
    }

    /** Bucket of a key; every bit of {@code key} takes part. */
    int bucket(long key) {
        return (int) (((key ^ (key >>> 32)) * SPREAD) >>> bucketShift);
    }

    /** First entry of a bucket's chain; any thread. */
    int firstAcquire(int bucket) {
        return heads.getIntAcquire((long) bucket * Integer.BYTES);
    }

    /** Entry after {@code entry} in its chain; any thread. */
    int nextOpaque(int entry) {
        return entries.getIntOpaque(offset(entry) + NEXT_OFFSET);
    }

    /**
     * Takes a free entry, which keeps the bytes that it had. Writer thread.
     *
     * @return its number, or {@link #NONE} when all are in use
     */
    int acquire() {
        final int entry;
        if (firstFree != NONE) {
            entry = firstFree;
            firstFree = entries.getInt(offset(entry) + NEXT_OFFSET);
        } else if (lastFresh < capacity) {
            entry = ++lastFresh;
        } else {
            return NONE;
        }
        used.add(1);
        return entry;
    }

    /** Puts a completely written entry at the head of a chain. Writer thread. */
    void link(int entry, int bucket) {
        aim(entry, bucket);
        publish(entry, bucket);
    }

    /** First half of {@link #link}: the entry names the chain's head as its next. Writer. */
    void aim(int entry, int bucket) {
        entries.putIntOpaque(
                offset(entry) + NEXT_OFFSET, heads.getInt((long) bucket * Integer.BYTES));
    }

    /** Second half of {@link #link}: the aimed entry becomes the chain's head. Writer thread. */
    void publish(int entry, int bucket) {
        // after the entry's fields and next (release): a walker acquires the head by firstAcquire
        heads.putIntRelease((long) bucket * Integer.BYTES, entry);
    }

    /**
     * Takes an entry out of its chain; its next link stays valid for concurrent readers that stand
     * on it. Writer thread.
     */
    void unlink(int entry, int bucket) {
        final int next = entries.getInt(offset(entry) + NEXT_OFFSET);
        final long head = (long) bucket * Integer.BYTES;
        int before = heads.getInt(head);
        if (before == entry) {
            heads.putIntRelease(head, next); // the next entry was published before
            return;
        }
        int after = entries.getInt(offset(before) + NEXT_OFFSET);
        while (after != entry) {
            assert after != NONE : "entry is not in its chain: entry=" + entry;
            before = after;
            after = entries.getInt(offset(before) + NEXT_OFFSET);
        }
        // one word: a walker on the entry before goes to the entry or past it
        entries.putIntRelease(offset(before) + NEXT_OFFSET, next);
    }

    /** Gives an unlinked entry back. Writer thread. */
    void release(int entry) {
        assert entry > NONE && entry <= lastFresh : "never handed out: entry=" + entry;
        entries.putIntOpaque(offset(entry) + NEXT_OFFSET, firstFree);
        firstFree = entry;
        used.add(-1);
    }

    /** Entries in use; any thread. */
    int used() {
        return (int) used.get();
    }

    /** Entries that {@link #acquire()} can still hand out. Writer thread. */
    int free() {
        return capacity - used();
    }

    /** Entries in all. */
    int capacity() {
        return capacity;
    }

    /** Off-heap bytes of the table; constant over its life. */
    long bytes() {
        return heads.length() + entries.length();
    }

    @Override
    public void close() {
        heads.close();
        entries.close();
    }
}
