package io.kvasir.core.index;

import static io.kvasir.core.memory.EntryChains.NONE;

import io.kvasir.core.memory.EntryChains;
import io.kvasir.core.memory.OffHeap;
import io.kvasir.core.memory.SlotLists;

/**
 * Hash table from (worker slot, engine hash) to a note about the name: the position that it stands
 * for and how many physical copies of the block the slot holds under it. Only names with more than
 * one copy, or beside the first name of their block, have a note. Writer thread only.
 */
final class NoteTable implements AutoCloseable {
    private static final long SLOT_SPREAD = 0xD6E8FEB86659FD93L;

    private final EntryChains chains;
    private final OffHeap memory;
    private final SlotLists lists;

    NoteTable(int workerSlots, long maxNotes) {
        this.chains = new EntryChains("notes", maxNotes, NoteDescriptor.ENTRY_LENGTH);
        this.memory = chains.memory();
        this.lists =
                new SlotLists(
                        chains,
                        NoteDescriptor.SLOT_NEXT_OFFSET,
                        NoteDescriptor.SLOT_PREVIOUS_OFFSET,
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
    void insert(int slot, long engineHash, int position) {
        final int entry = chains.acquire();
        assert entry != NONE : "no free note; the caller must check before it writes";
        final long offset = chains.offset(entry);
        memory.putInt(offset + NoteDescriptor.SLOT_OFFSET, slot);
        memory.putLong(offset + NoteDescriptor.ENGINE_HASH_OFFSET, engineHash);
        memory.putInt(offset + NoteDescriptor.POSITION_OFFSET, position);
        memory.putInt(offset + NoteDescriptor.COPIES_OFFSET, 1);
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

    int nextOfSlot(int entry) {
        return lists.next(entry);
    }

    int slot(int entry) {
        return memory.getInt(chains.offset(entry) + NoteDescriptor.SLOT_OFFSET);
    }

    long engineHash(int entry) {
        return memory.getLong(chains.offset(entry) + NoteDescriptor.ENGINE_HASH_OFFSET);
    }

    int position(int entry) {
        return memory.getInt(chains.offset(entry) + NoteDescriptor.POSITION_OFFSET);
    }

    int copies(int entry) {
        return memory.getInt(chains.offset(entry) + NoteDescriptor.COPIES_OFFSET);
    }

    void copies(int entry, int copies) {
        memory.putInt(chains.offset(entry) + NoteDescriptor.COPIES_OFFSET, copies);
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
