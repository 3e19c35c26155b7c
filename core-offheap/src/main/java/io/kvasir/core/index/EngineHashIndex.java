package io.kvasir.core.index;

import static io.kvasir.core.index.EngineHashIndexDescriptor.COUNT_MASK;
import static io.kvasir.core.index.EngineHashIndexDescriptor.ENTRIES_PER_LINE;
import static io.kvasir.core.index.EngineHashIndexDescriptor.LAST_TAGS_OFFSET;
import static io.kvasir.core.index.EngineHashIndexDescriptor.LINK_SHIFT;
import static io.kvasir.core.index.EngineHashIndexDescriptor.META_OFFSET;
import static io.kvasir.core.index.EngineHashIndexDescriptor.TAGS_OFFSET;
import static io.kvasir.core.index.EngineHashIndexDescriptor.entryOffset;
import static io.kvasir.core.index.EngineHashIndexDescriptor.tagOffset;

import io.kvasir.core.memory.BuddyArena;
import io.kvasir.core.memory.KeptWords;
import io.kvasir.core.memory.OffHeap;

import java.util.Arrays;

/**
 * Hash table from the engine hashes that one worker slot holds to an int each: where the block is.
 * Writer thread only.
 *
 * <p>The engine hashes themselves are not kept here: an entry whose tag fits is verified against
 * what the owner has under it ({@link Names}). So a lookup costs one line, a negative one too, and
 * what the owner reads to verify. The table grows and shrinks by one bucket at a time (linear
 * hashing), with the changes that make it necessary: no change costs more than the entries of two
 * buckets. The hash is keyed, so that no client can aim at a bucket.
 *
 * @see <a href="https://dl.acm.org/doi/10.5555/1286887.1286911">Litwin 1980</a> for linear hashing
 */
final class EngineHashIndex {
    /** No entry. An entry may have any other value. */
    static final int NO_ENTRY = -1;

    /** No overflow line; those are numbered from 0. */
    private static final int NO_OVERFLOW = -1;

    /** The engine hash that an entry stands for. */
    interface Names {
        long name(int entry);

        /** Those of several entries. */
        default void names(int[] entries, int count, long[] names) {
            for (int i = 0; i < count; i++) {
                names[i] = name(entries[i]);
            }
        }
    }

    /** What became of an insertion. */
    enum Insertion {
        DONE,
        /** The engine hash is there already. */
        KNOWN,
        NO_MEMORY
    }

    /** Keys of the hash of all tables of an index. */
    record Key(long mask, long factor) {
        Key {
            factor |= 1;
        }
    }

    /**
     * Where the entries of a batch belong, while no bucket is added or merged. All tables of an
     * index share one, which so stays in the nearest cache.
     */
    static final class Batch {
        /** Most engine hashes of one. */
        static final int LENGTH = 64;

        private static final int TAG_SHIFT = 56;

        private final long[] entries = new long[LENGTH];

        @SuppressWarnings("UnusedVariable") // written so that loads which only bring near stay
        private int lastTouched;

        private void set(int i, long line, int tag) {
            entries[i] = line | (long) tag << TAG_SHIFT;
        }

        private long line(int i) {
            return entries[i] & ((1L << TAG_SHIFT) - 1);
        }

        private int tag(int i) {
            return (int) (entries[i] >>> TAG_SHIFT);
        }
    }

    /** Entries for each bucket above which the table grows. */
    private static final int GROW_LOAD = 6;

    /** Entries for each bucket below which it shrinks. */
    private static final int SHRINK_LOAD = 3;

    /** Entries for each bucket that it takes when there is no memory to grow. */
    private static final int FULL_LOAD = 2 * GROW_LOAD;

    private static final int ALL = (1 << ENTRIES_PER_LINE) - 1;
    private static final long LOW_BITS = 0x7F7F_7F7F_7F7F_7F7FL;
    private static final long BYTES = 0x0101_0101_0101_0101L;
    private static final long HIGH_BITS = ~LOW_BITS;
    private static final long NO_TAGS = 0xFFFF_FFFFL << Integer.SIZE;
    private static final long GATHER = 0x0102_0408_1020_4080L;

    private final OffHeap memory;
    private final long keyMask;
    private final long keyFactor;
    private final Batch batch;
    private final Names names;
    private final SegmentedLines buckets;
    private final SegmentedLines overflow;

    private int bucketCount;

    /** Buckets of the last whole doubling, less 1. */
    private int mask;

    private int size;
    private int overflowUsed;
    private int freshOverflow;
    private int freeOverflow = NO_OVERFLOW;
    private long steps;

    /** Entries of a bucket that is being split or merged. */
    private int[] movedEntries = new int[2 * ENTRIES_PER_LINE];

    private long[] movedHashes = new long[2 * ENTRIES_PER_LINE];

    EngineHashIndex(BuddyArena arena, Key key, Batch batch, Names names) {
        this.memory = arena.memory();
        this.keyMask = key.mask;
        this.keyFactor = key.factor;
        this.batch = batch;
        this.names = names;
        this.buckets = new SegmentedLines(arena);
        this.overflow = new SegmentedLines(arena);
    }

    /** Names what there is beside the memory and the key. */
    void keep(KeptWords words) {
        bucketCount = words.keep(bucketCount);
        mask = words.keep(mask);
        size = words.keep(size);
        overflowUsed = words.keep(overflowUsed);
        freshOverflow = words.keep(freshOverflow);
        freeOverflow = words.keep(freeOverflow);
        buckets.keep(words);
        overflow.keep(words);
    }

    /** Entries. */
    int size() {
        return size;
    }

    /**
     * Lines followed, entries verified and entries moved so far, beyond the one line that each call
     * needs; for tests of what an event costs.
     */
    long steps() {
        return steps;
    }

    /**
     * Computes the lines of engine hashes, then loads them: two loops without a branch, so that as
     * many loads as the processor can have under way overlap.
     */
    private void prepare(long[] hashes, int from, int count) {
        for (int i = 0; i < count; i++) {
            final long hash = hash(hashes[from + i]);
            batch.set(i, line(hash), tag(hash));
        }
        int touched = 0;
        for (int i = 0; i < count; i++) {
            touched += memory.getInt(batch.line(i) + META_OFFSET);
        }
        batch.lastTouched = touched;
    }

    /** Entry of an engine hash, or {@link #NO_ENTRY}. */
    int find(long name) {
        if (bucketCount == 0) {
            return NO_ENTRY;
        }
        final long hash = hash(name);
        return find(line(hash), tag(hash), name);
    }

    private int find(long bucket, int tag, long name) {
        long line = bucket;
        while (true) {
            for (int same = withTag(line, tag); same != 0; same &= same - 1) {
                final int entry = entry(line, Integer.numberOfTrailingZeros(same));
                steps++;
                if (names.name(entry) == name) {
                    return entry;
                }
            }
            final int next = next(line);
            if (next == NO_OVERFLOW) {
                return NO_ENTRY;
            }
            line = overflow.offset(next);
            steps++;
        }
    }

    /** Adds an engine hash that is not there; {@link Names} must know it already. */
    Insertion insert(long name, int entry) {
        if (size >= bucketCount * GROW_LOAD && !addBucket() && size >= bucketCount * FULL_LOAD) {
            return Insertion.NO_MEMORY;
        }
        final long hash = hash(name);
        return insert(line(hash), tag(hash), name, entry);
    }

    /**
     * Adds engine hashes that are not there, all or none; {@link Names} must know them already.
     *
     * @param count at most {@link Batch#LENGTH}
     * @param entry entry of the first; each other one's is larger by 1
     */
    Insertion insert(long[] hashes, int from, int count, int entry) {
        boolean grown = true;
        while (grown && size + count > bucketCount * GROW_LOAD) {
            grown = addBucket();
        }
        if (size + count > bucketCount * FULL_LOAD) {
            shrink(count);
            return Insertion.NO_MEMORY;
        }
        prepare(hashes, from, count);
        for (int i = 0; i < count; i++) {
            final Insertion added =
                    insert(batch.line(i), batch.tag(i), hashes[from + i], entry + i);
            if (added != Insertion.DONE) {
                for (int done = 0; done < i; done++) {
                    remove(batch.line(done), batch.tag(done), entry + done);
                }
                shrink(count);
                return added;
            }
        }
        return Insertion.DONE;
    }

    /** Mostly the bucket has one line with room, and no entry with the same tag. */
    private Insertion insert(long line, int tag, long name, int entry) {
        final long pattern = tag * BYTES;
        final long last = memory.getLong(line + LAST_TAGS_OFFSET);
        final long same =
                someZeroBytes(memory.getLong(line + TAGS_OFFSET) ^ pattern)
                        | someZeroBytes((last ^ pattern) | NO_TAGS);
        final int meta = (int) (last >>> Integer.SIZE);
        if (same == 0 && meta < ENTRIES_PER_LINE) {
            put(line, meta, tag, entry);
        } else if (find(line, tag, name) != NO_ENTRY) {
            return Insertion.KNOWN;
        } else if (!append(line, tag, entry)) {
            return Insertion.NO_MEMORY;
        }
        size++;
        return Insertion.DONE;
    }

    /** Takes an entry away, which must be there. */
    void remove(long name, int entry) {
        final long hash = hash(name);
        remove(line(hash), tag(hash), entry);
        shrink(1);
    }

    /**
     * Takes entries away, which must be there.
     *
     * @param count at most {@link Batch#LENGTH}
     * @param entry entry of the first
     * @param step by how much each other one's is larger
     */
    void remove(long[] hashes, int from, int count, int entry, int step) {
        prepare(hashes, from, count);
        for (int i = 0; i < count; i++) {
            remove(batch.line(i), batch.tag(i), entry + i * step);
        }
        shrink(count);
    }

    /** Mostly the bucket has one line, and no other entry with the same tag. */
    private void remove(long line, int tag, int entry) {
        final int i = Integer.numberOfTrailingZeros(withTag(line, tag));
        final int meta = memory.getInt(line + META_OFFSET);
        if (meta <= ENTRIES_PER_LINE && i < ENTRIES_PER_LINE && entry(line, i) == entry) {
            take(line, i, meta);
        } else {
            removeFromChain(line, find(line, tag, entry));
        }
        size--;
    }

    /** Closes the gap that an entry leaves by the last one of its line. */
    private void take(long line, int i, int meta) {
        final int last = count(meta) - 1;
        memory.putInt(line + entryOffset(i), entry(line, last));
        memory.putByte(line + tagOffset(i), memory.getByte(line + tagOffset(last)));
        memory.putByte(line + tagOffset(last), (byte) 0);
        memory.putInt(line + META_OFFSET, meta - 1);
    }

    /** Gives an engine hash that is there another entry. */
    void replace(long name, int entry, int replacement) {
        final long hash = hash(name);
        memory.putInt(find(line(hash), tag(hash), entry), replacement);
    }

    /** Gives all memory back; takes time for each segment. */
    void clear() {
        buckets.release();
        overflow.release();
        bucketCount = 0;
        mask = 0;
        size = 0;
        overflowUsed = 0;
        freshOverflow = 0;
        freeOverflow = NO_OVERFLOW;
    }

    /** Lines of buckets; for tests. */
    SegmentedLines buckets() {
        return buckets;
    }

    /** Lines of what did not fit into its bucket; for tests. */
    SegmentedLines overflow() {
        return overflow;
    }

    /** Buckets; for tests. */
    int bucketCount() {
        return bucketCount;
    }

    /** Overflow lines in use; for tests. */
    int overflowUsed() {
        return overflowUsed;
    }

    // -- entries of a bucket ----------------------------------------------------------------

    /** Offset of an entry that is in the bucket. */
    private long find(long bucket, int tag, int entry) {
        long line = bucket;
        while (true) {
            for (int same = withTag(line, tag); same != 0; same &= same - 1) {
                final int i = Integer.numberOfTrailingZeros(same);
                if (entry(line, i) == entry) {
                    return line + entryOffset(i);
                }
            }
            final int next = next(line);
            if (next == NO_OVERFLOW) {
                throw new IllegalStateException("engine hash is not indexed: entry=" + entry);
            }
            line = overflow.offset(next);
            steps++;
        }
    }

    /** Adds an entry to a bucket of whatever length. */
    private boolean append(long bucket, int tag, int entry) {
        for (long line = bucket; ; ) {
            final int count = count(meta(line));
            if (count < ENTRIES_PER_LINE) {
                put(line, count, tag, entry);
                return true;
            }
            final int next = next(line);
            if (next == NO_OVERFLOW) {
                break;
            }
            line = overflow.offset(next);
            steps++;
        }
        final int added = takeOverflow();
        if (added == NO_OVERFLOW) {
            return false;
        }
        final long line = overflow.offset(added);
        memory.zero(line, BuddyArena.LINE_LENGTH);
        next(line, next(bucket));
        put(line, 0, tag, entry);
        next(bucket, added);
        return true;
    }

    /** Takes an entry out of a bucket, whose own line is filled up from its overflow lines. */
    private void removeFromChain(long bucket, long at) {
        final long line = at & -BuddyArena.LINE_LENGTH;
        final int first = next(bucket);
        if (line != bucket) {
            take(line, entryAt(at), meta(line));
            long before = bucket;
            while (overflow.offset(next(before)) != line) {
                before = overflow.offset(next(before));
                steps++;
            }
            unlinkIfEmpty(before, next(before));
        } else if (first == NO_OVERFLOW) {
            take(line, entryAt(at), meta(line));
        } else {
            final long source = overflow.offset(first);
            final int last = count(meta(source)) - 1;
            memory.putInt(at, entry(source, last));
            memory.putByte(line + tagOffset(entryAt(at)), memory.getByte(source + tagOffset(last)));
            take(source, last, meta(source));
            unlinkIfEmpty(bucket, first);
        }
    }

    private void unlinkIfEmpty(long before, int number) {
        final long line = overflow.offset(number);
        if (count(meta(line)) == 0) {
            next(before, next(line));
            freeOverflow(number);
            releaseUnusedOverflow();
        }
    }

    /** Fills the first entry of a line that is empty. */
    private void put(long line, int i, int tag, int entry) {
        memory.putInt(line + entryOffset(i), entry);
        memory.putByte(line + tagOffset(i), (byte) tag);
        memory.putInt(line + META_OFFSET, meta(line) + 1);
    }

    private int takeOverflow() {
        final int taken;
        if (freeOverflow != NO_OVERFLOW) {
            taken = freeOverflow;
            freeOverflow = next(overflow.offset(taken));
        } else if (freshOverflow < overflow.lines() || overflow.grow()) {
            taken = freshOverflow++;
        } else {
            return NO_OVERFLOW;
        }
        overflowUsed++;
        return taken;
    }

    private void freeOverflow(int number) {
        overflowUsed--;
        next(overflow.offset(number), freeOverflow);
        freeOverflow = number;
    }

    /** Not to be called within a split, which needs the lines that it has freed again. */
    private void releaseUnusedOverflow() {
        if (overflowUsed == 0) {
            overflow.release();
            freshOverflow = 0;
            freeOverflow = NO_OVERFLOW;
        }
    }

    // -- growing and shrinking --------------------------------------------------------------

    /** Adds a bucket and moves what belongs there; false when there is no memory for it. */
    private boolean addBucket() {
        if (bucketCount == buckets.lines() && !buckets.grow()) {
            return false;
        }
        final int added = bucketCount;
        final long line = buckets.offset(added);
        memory.zero(line, BuddyArena.LINE_LENGTH);
        if (added > 0) {
            final int split = added - Integer.highestOneBit(added);
            split(buckets.offset(split), line, Integer.highestOneBit(added));
        }
        bucketCount++;
        mask = Integer.highestOneBit(bucketCount) - 1;
        return true;
    }

    /** Moves those entries of a bucket whose hash has the bit; needs no memory. */
    private void split(long from, long to, int bit) {
        final int count = takeAll(from);
        names.names(movedEntries, count, movedHashes);
        for (int i = 0; i < count; i++) {
            final long hash = hash(movedHashes[i]);
            final boolean added = append((hash & bit) == 0 ? from : to, tag(hash), movedEntries[i]);
            assert added : "a split needs no more lines than there were";
        }
        releaseUnusedOverflow();
    }

    /** Empties a bucket into the scratch arrays: entries, and tags in the place of hashes. */
    private int takeAll(long bucket) {
        int count = 0;
        long line = bucket;
        int number = NO_OVERFLOW;
        while (true) {
            if (count + ENTRIES_PER_LINE > movedEntries.length) {
                movedEntries = Arrays.copyOf(movedEntries, 2 * movedEntries.length);
                movedHashes = Arrays.copyOf(movedHashes, movedEntries.length);
            }
            final int taken = count(meta(line));
            for (int i = 0; i < taken; i++) {
                movedHashes[count] = memory.getByte(line + tagOffset(i));
                movedEntries[count++] = entry(line, i);
            }
            final int next = next(line);
            if (number != NO_OVERFLOW) {
                freeOverflow(number);
            }
            if (next == NO_OVERFLOW) {
                break;
            }
            number = next;
            line = overflow.offset(next);
        }
        memory.putLong(bucket + TAGS_OFFSET, 0);
        memory.putLong(bucket + LAST_TAGS_OFFSET, 0);
        steps += count;
        return count;
    }

    /** Merges as many buckets at most, as far as there is room, or gives all memory back. */
    private void shrink(int most) {
        if (size == 0) {
            clear();
            return;
        }
        for (int i = 0; i < most && size < bucketCount * SHRINK_LOAD && bucketCount > 1; i++) {
            mergeLast();
        }
    }

    /** Merges the last bucket with the one that it was split from, unless they are too full. */
    private void mergeLast() {
        final int last = bucketCount - 1;
        final long from = buckets.offset(last);
        final long to = buckets.offset(last - Integer.highestOneBit(last));
        if (next(from) != NO_OVERFLOW
                || next(to) != NO_OVERFLOW
                || count(meta(from)) + count(meta(to)) > ENTRIES_PER_LINE) {
            return;
        }
        final int count = takeAll(from);
        for (int i = 0; i < count; i++) {
            append(to, (int) movedHashes[i], movedEntries[i]);
        }
        bucketCount--;
        mask = Integer.highestOneBit(bucketCount) - 1;
        buckets.shrinkTo(bucketCount);
    }

    // -- hashing ----------------------------------------------------------------------------

    private long hash(long name) {
        final long keyed = name ^ keyMask;
        return keyed * keyFactor ^ Math.unsignedMultiplyHigh(keyed, keyFactor);
    }

    /** Without a branch: one that depends on a hash is mispredicted every other time. */
    private long line(long hash) {
        final int wide = (int) hash & (2 * mask + 1);
        final int beyond = (bucketCount - 1 - wide) >> 31 & (mask + 1);
        return buckets.offset(wide - beyond);
    }

    private static int tag(long hash) {
        final int tag = (int) (hash >>> 56);
        return tag + ((tag - 1) >>> 31);
    }

    /** One bit for each entry of a line that has the tag. */
    private int withTag(long line, int tag) {
        final long pattern = tag * BYTES;
        final long first = zeroBytes(memory.getLong(line + TAGS_OFFSET) ^ pattern);
        final long last = zeroBytes(memory.getLong(line + LAST_TAGS_OFFSET) ^ pattern);
        return (gather(first) | gather(last) << Long.BYTES) & ALL;
    }

    /** Sets the highest bit of each byte that is 0; exact. */
    private static long zeroBytes(long value) {
        return ~(((value & LOW_BITS) + LOW_BITS) | value | LOW_BITS);
    }

    /** Not 0 when a byte is 0; the lowest bit says which one is the first. */
    private static long someZeroBytes(long value) {
        return (value - BYTES) & ~value & HIGH_BITS;
    }

    /** Puts the highest bits of the bytes beside each other. */
    private static int gather(long highestBits) {
        return (int) (((highestBits >>> 7) * GATHER) >>> 56);
    }

    private int meta(long line) {
        return memory.getInt(line + META_OFFSET);
    }

    /** Entries of a line. */
    private static int count(int meta) {
        return meta & COUNT_MASK;
    }

    /** Overflow line after a line, or {@link #NO_OVERFLOW}. */
    private int next(long line) {
        return (meta(line) >>> LINK_SHIFT) - 1;
    }

    private void next(long line, int number) {
        memory.putInt(line + META_OFFSET, (number + 1) << LINK_SHIFT | count(meta(line)));
    }

    private int entry(long line, int i) {
        return memory.getInt(line + entryOffset(i));
    }

    /** Number, in its line, of the entry at an offset. */
    private static int entryAt(long at) {
        return (int) (at % BuddyArena.LINE_LENGTH - EngineHashIndexDescriptor.ENTRIES_OFFSET) >> 2;
    }
}
