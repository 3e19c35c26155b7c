package io.kvasir.opstreams.alternatives.flat;

import static io.kvasir.opstreams.alternatives.flat.ChainedHashEntries.NONE;

import io.kvasir.core.hash.BlockHasher;
import io.kvasir.core.memory.OffHeap;

import java.lang.invoke.VarHandle;
import java.util.Arrays;

/**
 * Hash table from sequence hash to the set of worker slots that hold the block.
 *
 * <p>One writer thread; {@link Match} and {@link #used} are for any thread. Entries never move and
 * a block that lost its last holder is free at once, so a reader may stand on an entry that becomes
 * another block: it believes an entry only if the version was even and unchanged around the read,
 * and starts the chain again when it is led into a foreign one. A writer that loses its core stops
 * no reader: an entry is unlinked before its version turns odd, and linked after it turned even.
 */
final class FlatBlocks implements AutoCloseable {
    private static final int MAX_TRIES = 32;
    private static final int MAX_WALK = 256;

    private final int workerSlots;
    private final int holderWords;
    private final ChainedHashEntries chains;
    private final OffHeap memory;

    /**
     * Allocates the table.
     *
     * @param name what the limit on blocks is called, for error messages
     * @param workerSlots worker slots
     * @param maxBlocks distinct blocks
     */
    public FlatBlocks(String name, int workerSlots, long maxBlocks) {
        this.workerSlots = workerSlots;
        this.holderWords = BlockEntryDescriptor.holderWords(workerSlots);
        this.chains =
                new ChainedHashEntries(
                        name, maxBlocks, BlockEntryDescriptor.entryLength(workerSlots));
        this.memory = chains.memory();
    }

    /** Entry of a block, or {@link ChainedHashEntries#NONE}. Writer thread. */
    public int find(long sequenceHash) {
        int entry = chains.firstAcquire(chains.bucket(sequenceHash));
        while (entry != NONE && sequenceHash(entry) != sequenceHash) {
            entry = chains.nextOpaque(entry);
        }
        return entry;
    }

    /**
     * Adds a block that is not in the table, without holders. Writer thread.
     *
     * @return its entry, or {@link ChainedHashEntries#NONE} when the table is full
     */
    public int insert(long sequenceHash) {
        final int entry = chains.acquire();
        if (entry == NONE) {
            return NONE;
        }
        final long offset = chains.offset(entry);
        final int odd = memory.getInt(offset + BlockEntryDescriptor.VERSION_OFFSET) | 1;
        memory.putIntOpaque(offset + BlockEntryDescriptor.VERSION_OFFSET, odd);
        VarHandle.storeStoreFence(); // a reader that sees the new hash sees the odd version too
        memory.putLongOpaque(offset + BlockEntryDescriptor.SEQUENCE_HASH_OFFSET, sequenceHash);
        for (int i = 0; i < holderWords; i++) {
            memory.putLongOpaque(holderWord(offset, i), 0);
        }
        final int bucket = chains.bucket(sequenceHash);
        chains.aim(entry, bucket); // before the version: a walker of its last life may stand here
        memory.putIntRelease(offset + BlockEntryDescriptor.VERSION_OFFSET, odd + 1);
        chains.publish(entry, bucket);
        return entry;
    }

    /** Sequence hash of an entry in use. Writer thread. */
    public long sequenceHash(int entry) {
        return memory.getLong(chains.offset(entry) + BlockEntryDescriptor.SEQUENCE_HASH_OFFSET);
    }

    /** Whether a slot holds the block. Writer thread. */
    public boolean isHolder(int entry, int slot) {
        final long word = chains.offset(entry) + BlockEntryDescriptor.holderWordOffset(slot);
        return (memory.getLong(word) & BlockEntryDescriptor.holderBit(slot)) != 0;
    }

    /** Makes a slot a holder of the block. Writer thread. */
    public void addHolder(int entry, int slot) {
        final long word = chains.offset(entry) + BlockEntryDescriptor.holderWordOffset(slot);
        // no version change: each word that a reader sees existed at some moment
        memory.putLongRelease(word, memory.getLong(word) | BlockEntryDescriptor.holderBit(slot));
    }

    /** Takes a slot from the holders; a block without holders leaves the table. Writer thread. */
    public void removeHolder(int entry, int slot) {
        final long offset = chains.offset(entry);
        final long word = offset + BlockEntryDescriptor.holderWordOffset(slot);
        memory.putLongRelease(word, memory.getLong(word) & ~BlockEntryDescriptor.holderBit(slot));
        for (int i = 0; i < holderWords; i++) {
            if (memory.getLong(holderWord(offset, i)) != 0) {
                return;
            }
        }
        remove(entry, offset);
    }

    private void remove(int entry, long offset) {
        final int version = memory.getInt(offset + BlockEntryDescriptor.VERSION_OFFSET);
        assert (version & 1) == 0 : "entry is free already: entry=" + entry;
        chains.unlink(entry, chains.bucket(sequenceHash(entry)));
        memory.putIntRelease(offset + BlockEntryDescriptor.VERSION_OFFSET, version + 1);
        // a walker that stands here must not follow the free list under the even version
        VarHandle.storeStoreFence();
        chains.release(entry);
    }

    /** A lookup with memory for its answer; one thread at a time. */
    final class Match {
        private final long[] alive = new long[holderWords];
        private final long[] holders = new long[holderWords];
        private final int[] depths = new int[workerSlots];

        /** Finds how many leading blocks of a prompt each slot holds; any thread. */
        int match(long[] localHashes, int count) {
            Arrays.fill(depths, 0);
            if (count == 0 || !readHolders(localHashes[0], alive)) {
                return 0;
            }
            long sequenceHash = localHashes[0];
            int depth = 1;
            boolean left = true;
            for (; left && depth < count; depth++) {
                sequenceHash = BlockHasher.nextSequenceHash(sequenceHash, localHashes[depth]);
                if (!readHolders(sequenceHash, holders)) {
                    break;
                }
                left = keepHolders(depth);
            }
            if (!left) {
                return depth - 1;
            }
            for (int i = 0; i < holderWords; i++) {
                record(i, alive[i], depth);
            }
            return depth;
        }

        /** Leading blocks that a slot holds. */
        int depth(int slot) {
            return depths[slot];
        }

        private boolean keepHolders(int depth) {
            long left = 0;
            for (int i = 0; i < holderWords; i++) {
                final long kept = alive[i] & holders[i];
                record(i, alive[i] & ~kept, depth);
                alive[i] = kept;
                left |= kept;
            }
            return left != 0;
        }

        private void record(int word, long bits, int depth) {
            for (long rest = bits; rest != 0; rest &= rest - 1) {
                depths[word * Long.SIZE + Long.numberOfTrailingZeros(rest)] = depth;
            }
        }
    }

    /** Copies a block's holders; false when it is not in the table, or not to be caught in it. */
    private boolean readHolders(long sequenceHash, long[] words) {
        final int bucket = chains.bucket(sequenceHash);
        for (int tries = 0; tries < MAX_TRIES; tries++) {
            final int entry = findConcurrently(sequenceHash, bucket, words);
            if (entry >= NONE) {
                return entry != NONE;
            }
            Thread.onSpinWait();
        }
        return false; // the writer changes this chain faster than it can be read: an undercount
    }

    /** Entry whose holders were copied, {@link ChainedHashEntries#NONE}, or -1 = read it again. */
    private int findConcurrently(long sequenceHash, int bucket, long[] words) {
        int entry = chains.firstAcquire(bucket);
        for (int walked = 0; entry != NONE && walked < MAX_WALK; walked++) {
            final long offset = chains.offset(entry);
            final int version = memory.getIntAcquire(offset + BlockEntryDescriptor.VERSION_OFFSET);
            final long found =
                    memory.getLongOpaque(offset + BlockEntryDescriptor.SEQUENCE_HASH_OFFSET);
            final int next = chains.nextOpaque(entry);
            if (found == sequenceHash) {
                for (int i = 0; i < holderWords; i++) {
                    words[i] = memory.getLongOpaque(holderWord(offset, i));
                }
            }
            VarHandle.loadLoadFence(); // the entry is read before its version is read again
            if ((version & 1) != 0
                    || version
                            != memory.getIntOpaque(offset + BlockEntryDescriptor.VERSION_OFFSET)) {
                return -1;
            }
            if (found == sequenceHash) {
                return entry;
            }
            if (chains.bucket(found) != bucket) {
                return -1; // used again for another chain while we went there
            }
            entry = next;
        }
        return NONE;
    }

    /** Distinct blocks; any thread. */
    public int used() {
        return chains.used();
    }

    /** Blocks that still fit. Writer thread. */
    public int free() {
        return chains.free();
    }

    /** Off-heap bytes; constant. */
    public long bytes() {
        return chains.bytes();
    }

    @Override
    public void close() {
        chains.close();
    }

    private static long holderWord(long entryOffset, int word) {
        return entryOffset + BlockEntryDescriptor.HOLDERS_OFFSET + (long) word * Long.BYTES;
    }
}
