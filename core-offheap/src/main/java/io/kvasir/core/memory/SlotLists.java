package io.kvasir.core.memory;

import static io.kvasir.core.memory.ChainedHashEntries.NONE;

/**
 * One doubly linked list of entries per worker slot, threaded through two int fields of the
 * entries. Writer thread only.
 */
public final class SlotLists {
    private final ChainedHashEntries entries;
    private final int nextOffset;
    private final int previousOffset;
    private final int[] heads;

    /**
     * Makes empty lists.
     *
     * @param entries owner of the entries
     * @param nextOffset byte offset inside an entry of the int that names the next one of the slot
     * @param previousOffset byte offset inside an entry of the int that names the one before
     * @param slots number of lists
     */
    public SlotLists(ChainedHashEntries entries, int nextOffset, int previousOffset, int slots) {
        this.entries = entries;
        this.nextOffset = nextOffset;
        this.previousOffset = previousOffset;
        this.heads = new int[slots];
    }

    /** First entry of a slot, or {@link ChainedHashEntries#NONE}. */
    public int first(int slot) {
        return heads[slot];
    }

    /** Entry after {@code entry} in its slot's list, or {@link ChainedHashEntries#NONE}. */
    public int next(int entry) {
        return entries.memory().getInt(entries.offset(entry) + nextOffset);
    }

    /** Puts an entry at the head of a slot's list. */
    public void add(int slot, int entry) {
        final OffHeap memory = entries.memory();
        final long offset = entries.offset(entry);
        final int first = heads[slot];
        memory.putInt(offset + nextOffset, first);
        memory.putInt(offset + previousOffset, NONE);
        if (first != NONE) {
            memory.putInt(entries.offset(first) + previousOffset, entry);
        }
        heads[slot] = entry;
    }

    /** Takes an entry out of its slot's list. */
    public void remove(int slot, int entry) {
        final OffHeap memory = entries.memory();
        final long offset = entries.offset(entry);
        final int next = memory.getInt(offset + nextOffset);
        final int previous = memory.getInt(offset + previousOffset);
        if (previous == NONE) {
            assert heads[slot] == entry : "entry is not in its slot's list: slot=" + slot;
            heads[slot] = next;
        } else {
            memory.putInt(entries.offset(previous) + nextOffset, next);
        }
        if (next != NONE) {
            memory.putInt(entries.offset(next) + previousOffset, previous);
        }
    }
}
