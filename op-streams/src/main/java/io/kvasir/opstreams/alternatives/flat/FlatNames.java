package io.kvasir.opstreams.alternatives.flat;

import static io.kvasir.opstreams.alternatives.flat.ChainedHashEntries.NONE;

import io.kvasir.core.memory.OffHeap;
import io.kvasir.core.memory.SlotLists;

/**
 * Hash table from (worker slot, engine hash) to the block that the name stands for, with one list
 * per slot of all that it holds. Writer thread only.
 */
final class FlatNames implements AutoCloseable {
    private static final long SLOT_SPREAD = 0xD6E8FEB86659FD93L;

    private final ChainedHashEntries chains;
    private final OffHeap memory;
    private final SlotLists lists;

    FlatNames(int workerSlots, long maxHeldBlocks) {
        this.chains =
                new ChainedHashEntries(
                        "maxHeldBlocks", maxHeldBlocks, FlatNameDescriptor.ENTRY_LENGTH);
        this.memory = chains.memory();
        this.lists =
                new SlotLists(
                        memory,
                        FlatNameDescriptor.ENTRY_LENGTH,
                        FlatNameDescriptor.SLOT_NEXT_OFFSET,
                        FlatNameDescriptor.SLOT_PREVIOUS_OFFSET,
                        workerSlots);
    }

    int find(int slot, long engineHash) {
        int entry = chains.firstAcquire(bucket(slot, engineHash));
        while (entry != NONE && (engineHash(entry) != engineHash || slot(entry) != slot)) {
            entry = chains.nextOpaque(entry);
        }
        return entry;
    }

    /** Adds a name that is not in the table, with one copy. The caller made sure that it fits. */
    void insert(int slot, long engineHash, int block) {
        final int entry = chains.acquire();
        assert entry != NONE : "no free holding; the store must check before it writes";
        final long offset = chains.offset(entry);
        memory.putInt(offset + FlatNameDescriptor.SLOT_OFFSET, slot);
        memory.putLong(offset + FlatNameDescriptor.ENGINE_HASH_OFFSET, engineHash);
        memory.putInt(offset + FlatNameDescriptor.BLOCK_OFFSET, block);
        memory.putInt(offset + FlatNameDescriptor.COPIES_OFFSET, 1);
        lists.add(slot, entry);
        chains.link(entry, bucket(slot, engineHash));
    }

    void remove(int entry) {
        final int slot = slot(entry);
        chains.unlink(entry, bucket(slot, engineHash(entry)));
        lists.remove(slot, entry);
        chains.release(entry);
    }

    int firstOf(int slot) {
        return lists.first(slot);
    }

    int slot(int entry) {
        return memory.getInt(chains.offset(entry) + FlatNameDescriptor.SLOT_OFFSET);
    }

    long engineHash(int entry) {
        return memory.getLong(chains.offset(entry) + FlatNameDescriptor.ENGINE_HASH_OFFSET);
    }

    int block(int entry) {
        return memory.getInt(chains.offset(entry) + FlatNameDescriptor.BLOCK_OFFSET);
    }

    void block(int entry, int block) {
        memory.putInt(chains.offset(entry) + FlatNameDescriptor.BLOCK_OFFSET, block);
    }

    int copies(int entry) {
        return memory.getInt(chains.offset(entry) + FlatNameDescriptor.COPIES_OFFSET);
    }

    void copies(int entry, int copies) {
        memory.putInt(chains.offset(entry) + FlatNameDescriptor.COPIES_OFFSET, copies);
    }

    int used() {
        return chains.used();
    }

    int free() {
        return chains.free();
    }

    long bytes() {
        return chains.bytes();
    }

    @Override
    public void close() {
        chains.close();
    }

    private int bucket(int slot, long engineHash) {
        return chains.bucket(engineHash ^ (slot * SLOT_SPREAD));
    }
}
