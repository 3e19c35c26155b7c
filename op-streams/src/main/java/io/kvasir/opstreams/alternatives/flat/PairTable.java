package io.kvasir.opstreams.alternatives.flat;

import static io.kvasir.opstreams.alternatives.flat.ChainedHashEntries.NONE;

import io.kvasir.core.memory.OffHeap;

/**
 * Counts by (worker slot, block): how many requests of a worker use a block, or how many further
 * names a worker has for it. A count that falls to zero leaves the table. Writer thread only.
 */
final class PairTable implements AutoCloseable {
    private final ChainedHashEntries chains;
    private final OffHeap memory;

    /**
     * Allocates the table.
     *
     * @param name what the limit is called, for error messages
     * @param maxPairs pairs with a count above zero
     */
    public PairTable(String name, long maxPairs) {
        this.chains = new ChainedHashEntries(name, maxPairs, PairDescriptor.ENTRY_LENGTH);
        this.memory = chains.memory();
    }

    /** Entry of a pair, or {@link ChainedHashEntries#NONE}. */
    public int find(int slot, int block) {
        int entry = chains.firstAcquire(bucket(slot, block));
        while (entry != NONE && !isPair(entry, slot, block)) {
            entry = chains.nextOpaque(entry);
        }
        return entry;
    }

    /**
     * Adds a pair that is not in the table, with count 1.
     *
     * @return its entry, or {@link ChainedHashEntries#NONE} when the table is full
     */
    public int insert(int slot, int block) {
        final int entry = chains.acquire();
        if (entry == NONE) {
            return NONE;
        }
        final long offset = chains.offset(entry);
        memory.putInt(offset + PairDescriptor.SLOT_OFFSET, slot);
        memory.putInt(offset + PairDescriptor.BLOCK_OFFSET, block);
        memory.putInt(offset + PairDescriptor.COUNT_OFFSET, 1);
        chains.link(entry, bucket(slot, block));
        return entry;
    }

    /** Adds one to the count of an entry in use. */
    public void increment(int entry) {
        final long offset = chains.offset(entry) + PairDescriptor.COUNT_OFFSET;
        memory.putInt(offset, memory.getInt(offset) + 1);
    }

    /**
     * Takes one from the count of an entry in use; the last one frees the entry.
     *
     * @return what is left
     */
    public int decrement(int entry) {
        final long offset = chains.offset(entry);
        final int count = memory.getInt(offset + PairDescriptor.COUNT_OFFSET) - 1;
        memory.putInt(offset + PairDescriptor.COUNT_OFFSET, count);
        if (count == 0) {
            chains.unlink(
                    entry,
                    bucket(memory.getInt(offset + PairDescriptor.SLOT_OFFSET), block(entry)));
            chains.release(entry);
        }
        assert count >= 0 : "pair is free already: entry=" + entry;
        return count;
    }

    /** Block of an entry in use. */
    public int block(int entry) {
        return memory.getInt(chains.offset(entry) + PairDescriptor.BLOCK_OFFSET);
    }

    /** Pairs in use; any thread. */
    public int used() {
        return chains.used();
    }

    /** Pairs that still fit. */
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

    private boolean isPair(int entry, int slot, int block) {
        final long offset = chains.offset(entry);
        return memory.getInt(offset + PairDescriptor.BLOCK_OFFSET) == block
                && memory.getInt(offset + PairDescriptor.SLOT_OFFSET) == slot;
    }

    private int bucket(int slot, int block) {
        return chains.bucket((long) slot << Integer.SIZE | block);
    }
}
