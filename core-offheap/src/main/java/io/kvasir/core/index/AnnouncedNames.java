package io.kvasir.core.index;

import io.kvasir.core.memory.FibonacciHash;

import java.security.SecureRandom;
import java.util.Arrays;

/**
 * Which worker slot has announced a name last, and all names of a slot. Every operation takes the
 * same time, whatever is held: a table by name over entries that are linked by slot. Grows with the
 * names; one thread.
 *
 * <pre>
 *   table   [ entry + 1 | 0 | … ]        by hash of the name, linear, at most half full
 *   entry   name · slot · previous and next entry of the slot; next free one in a free entry
 *   first   by slot: its first entry
 * </pre>
 */
final class AnnouncedNames {
    static final int NO_SLOT = -1;

    private static final int NONE = -1;
    private static final int FIRST_ENTRIES = 64;

    private final long secret = new SecureRandom().nextLong() | 1; // no name can be aimed at a line
    private final int[] first; // by slot
    private int[] table = new int[2 * FIRST_ENTRIES];
    private long[] names = new long[FIRST_ENTRIES];
    private int[] slots = new int[FIRST_ENTRIES];
    private int[] previous = new int[FIRST_ENTRIES];
    private int[] next = new int[FIRST_ENTRIES];
    private int free = NONE;
    private int end;
    private int size;

    /**
     * @param workerSlots slots are below
     */
    AnnouncedNames(int workerSlots) {
        first = new int[workerSlots];
        Arrays.fill(first, NONE);
    }

    /** Names. */
    int size() {
        return size;
    }

    /** Slot that has announced a name last; {@link #NO_SLOT} where none has. */
    int slotOf(long name) {
        final int entry = table[find(name)] - 1;
        return entry == NONE ? NO_SLOT : slots[entry];
    }

    /** A slot has announced a name. */
    void put(long name, int slot) {
        int at = find(name);
        int entry = table[at] - 1;
        if (entry == NONE) {
            if (size == names.length) {
                grow();
                at = find(name);
            }
            entry = newEntry();
            names[entry] = name;
            table[at] = entry + 1;
            size++;
        } else if (slots[entry] == slot) {
            return;
        } else {
            unlink(entry);
        }
        link(entry, slot);
    }

    /** A name is announced no more. */
    void remove(long name) {
        final int at = find(name);
        final int entry = table[at] - 1;
        if (entry != NONE) {
            unlink(entry);
            next[entry] = free;
            free = entry;
            size--;
            close(at);
        }
    }

    /**
     * Removes names that a slot has announced.
     *
     * @param out is given them
     * @return how many: fewer than there is room for when there are no more
     */
    int take(int slot, long[] out) {
        int count = 0;
        while (count < out.length && first[slot] != NONE) {
            out[count] = names[first[slot]];
            remove(out[count++]);
        }
        return count;
    }

    private int newEntry() {
        final int entry = free;
        if (entry == NONE) {
            return end++;
        }
        free = next[entry];
        return entry;
    }

    private void link(int entry, int slot) {
        slots[entry] = slot;
        previous[entry] = NONE;
        next[entry] = first[slot];
        if (first[slot] != NONE) {
            previous[first[slot]] = entry;
        }
        first[slot] = entry;
    }

    private void unlink(int entry) {
        if (previous[entry] == NONE) {
            first[slots[entry]] = next[entry];
        } else {
            next[previous[entry]] = next[entry];
        }
        if (next[entry] != NONE) {
            previous[next[entry]] = previous[entry];
        }
    }

    /** Where a name is in the table, or would be. */
    private int find(long name) {
        int at = home(name);
        while (table[at] != 0 && names[table[at] - 1] != name) {
            at = (at + 1) & (table.length - 1);
        }
        return at;
    }

    private int home(long name) {
        final long mixed = (name ^ (name >>> 32) ^ secret) * secret;
        return (int) (FibonacciHash.spread(mixed ^ (mixed >>> 29)) >>> 33) & (table.length - 1);
    }

    /** Empties an element of the table; those after it move up to where they are looked for. */
    private void close(int removed) {
        int hole = removed;
        int at = removed;
        table[hole] = 0;
        while (true) {
            at = (at + 1) & (table.length - 1);
            if (table[at] == 0) {
                return;
            }
            final int home = home(names[table[at] - 1]);
            final int distance = (at - home) & (table.length - 1);
            if (distance >= ((at - hole) & (table.length - 1))) {
                table[hole] = table[at];
                table[at] = 0;
                hole = at;
            }
        }
    }

    private void grow() {
        names = Arrays.copyOf(names, 2 * size);
        slots = Arrays.copyOf(slots, 2 * size);
        previous = Arrays.copyOf(previous, 2 * size);
        next = Arrays.copyOf(next, 2 * size);
        table = new int[4 * size];
        for (int entry = 0; entry < end; entry++) {
            table[find(names[entry])] = entry + 1;
        }
    }
}
