package io.kvasir.core.memory;

/**
 * One doubly linked list of fixed-length off-heap entries per worker slot, threaded through two int
 * fields of the entries, which are named by a number from 1. Writer thread only.
 */
public final class SlotLists {
    /** Number of no entry. */
    public static final int NO_ENTRY = 0;

    private final OffHeap memory;
    private final int entryLength;
    private final int nextOffset;
    private final int previousOffset;
    private final int[] heads;

    /**
     * Makes empty lists.
     *
     * @param memory holds the entries: entry {@code n} at byte {@code n * entryLength}
     * @param entryLength bytes of an entry
     * @param nextOffset byte offset inside an entry of the int that names the next one of the slot
     * @param previousOffset byte offset inside an entry of the int that names the one before
     * @param slots number of lists
     */
    public SlotLists(
            OffHeap memory, int entryLength, int nextOffset, int previousOffset, int slots) {
        this.memory = memory;
        this.entryLength = entryLength;
        this.nextOffset = nextOffset;
        this.previousOffset = previousOffset;
        this.heads = new int[slots];
    }

    /** First entry of a slot, or {@link #NO_ENTRY}. */
    public int first(int slot) {
        return heads[slot];
    }

    /** Entry after {@code entry} in its slot's list, or {@link #NO_ENTRY}. */
    public int next(int entry) {
        return memory.getInt(offset(entry) + nextOffset);
    }

    /** Puts an entry at the head of a slot's list. */
    public void add(int slot, int entry) {
        final long offset = offset(entry);
        final int first = heads[slot];
        memory.putInt(offset + nextOffset, first);
        memory.putInt(offset + previousOffset, NO_ENTRY);
        if (first != NO_ENTRY) {
            memory.putInt(offset(first) + previousOffset, entry);
        }
        heads[slot] = entry;
    }

    /** Takes an entry out of its slot's list. */
    public void remove(int slot, int entry) {
        final long offset = offset(entry);
        final int next = memory.getInt(offset + nextOffset);
        final int previous = memory.getInt(offset + previousOffset);
        if (previous == NO_ENTRY) {
            assert heads[slot] == entry : "entry is not in its slot's list: slot=" + slot;
            heads[slot] = next;
        } else {
            memory.putInt(offset(previous) + nextOffset, next);
        }
        if (next != NO_ENTRY) {
            memory.putInt(offset(next) + previousOffset, previous);
        }
    }

    private long offset(int entry) {
        return (long) entry * entryLength;
    }
}
