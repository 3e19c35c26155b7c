package io.kvasir.core.index;

import io.kvasir.core.memory.LineArena;
import io.kvasir.core.memory.OffHeap;

/**
 * Layout and use of the hash tables that find a name among those of one holding. Each line of a
 * table has 31 entries and how many of them are taken:
 *
 * <pre>
 *   0       2                                                      62      64
 *   +-------+-------+-----------------------------------------------+-------+
 *   | taken | entry 0 | …                                         | entry 30|
 *   +-------+-------+-----------------------------------------------+-------+
 *   entry   [ tag:7 | place:9 ]; the tag is a part of the name's hash, never 0
 * </pre>
 *
 * <p>Names are never taken out: who finds a place looks whether it is held and has that name. A
 * full line goes on in the next one. A new name costs two stores into memory that the names before
 * it have just brought near, instead of a random access to a table of everything.
 */
final class NameIndex {
    /** No entry (left). */
    static final long END = -1;

    /** Fewer names are not worth a table. */
    static final int MIN_NAMES = 64;

    private static final int ENTRIES = 31;
    private static final int PLACE_BITS = 9;
    private static final long SPREAD = 0x9E37_79B9_7F4A_7C15L;

    private final OffHeap memory;

    NameIndex(OffHeap memory) {
        this.memory = memory;
    }

    /** Order of the table for that many places: about twice as many entries. */
    static int order(int places) {
        return LineArena.orderFor((long) places * 2 * Short.BYTES);
    }

    /** Empties a table. */
    void clear(int index, int order) {
        for (int line = 0; line < 1 << order; line++) {
            memory.putShort(LineArena.offset(index + line), (short) 0);
        }
    }

    /**
     * Enters a name.
     *
     * @return false when the table is full
     */
    boolean enter(int index, int order, long name, int place) {
        final long hash = hash(name);
        final int mask = (1 << order) - 1;
        int line = home(hash, mask);
        for (int tried = 0; tried <= mask; tried++) {
            final long at = LineArena.offset(index + line);
            final int taken = memory.getShort(at);
            if (taken < ENTRIES) {
                memory.putShort(entryOffset(at, taken), (short) (tag(hash) | place));
                memory.putShort(at, (short) (taken + 1));
                return true;
            }
            line = (line + 1) & mask;
        }
        return false;
    }

    /** Loads the line where a name would be; returns a number without meaning. */
    long touch(int index, int order, long name) {
        return memory.getShort(LineArena.offset(index + home(hash(name), (1 << order) - 1)));
    }

    /** First entry that may be that of a name, or {@link #END}. */
    long first(int index, int order, long name) {
        final int mask = (1 << order) - 1;
        return search(index, mask, hash(name), home(hash(name), mask), 0, 0);
    }

    /** Entry behind one that may be that of the name, or {@link #END}. */
    long next(int index, int order, long name, long cursor) {
        return search(
                index,
                (1 << order) - 1,
                hash(name),
                (int) (cursor >>> 40),
                (int) (cursor >>> 32) & 0xFF,
                ((int) (cursor >>> 16) & 0xFFFF) + 1);
    }

    /** Place that an entry says. */
    int place(long cursor) {
        return (int) cursor & ((1 << PLACE_BITS) - 1);
    }

    /** Cursor: [ line:24 | lines tried:8 | entry:16 | place:16 ]. */
    private long search(int index, int mask, long hash, int line, int tried, int from) {
        final int tag = tag(hash);
        int entry = from;
        int at = line;
        for (int lines = tried; lines <= mask; lines++) {
            final long offset = LineArena.offset(index + at);
            final int taken = memory.getShort(offset);
            for (; entry < taken; entry++) {
                final int found = memory.getShort(entryOffset(offset, entry)) & 0xFFFF;
                if ((found >>> PLACE_BITS << PLACE_BITS) == tag) {
                    return (long) at << 40
                            | (long) lines << 32
                            | (long) entry << 16
                            | (found & ((1 << PLACE_BITS) - 1));
                }
            }
            if (taken < ENTRIES) {
                return END;
            }
            entry = 0;
            at = (at + 1) & mask;
        }
        return END;
    }

    private static long entryOffset(long line, int entry) {
        return line + Short.BYTES + (long) entry * Short.BYTES;
    }

    private static long hash(long name) {
        return (name ^ name >>> 32) * SPREAD;
    }

    private static int home(long hash, int mask) {
        return (int) (hash >>> 40) & mask;
    }

    private static int tag(long hash) {
        final int tag = (int) (hash >>> 57);
        return (tag == 0 ? 1 : tag) << PLACE_BITS;
    }
}
