package io.kvasir.core.index;

import io.kvasir.core.memory.LineArena;
import io.kvasir.core.memory.OffHeap;

/**
 * Hash table from a few of one slot's names to their positions: the last held name of each holding,
 * where engines append and where they begin to let go, and names that a search has found before.
 * Writer thread only.
 *
 * <pre>
 *   entry   [ upper half of the name's hash:32 | position + 1:32 ], 0 = empty; eight to a line
 * </pre>
 *
 * <p>An entry may be stale; who finds one looks whether the position is held and has the name. An
 * entry that finds no memory is left out: the name is then searched for.
 */
final class NameAnchors {
    private static final int ENTRIES_PER_LINE = LineArena.LINE_LENGTH / Long.BYTES;
    private static final long SPREAD = 0x9E37_79B9_7F4A_7C15L;

    private final LineArena arena;
    private final OffHeap memory;
    private final Holdings holdings;
    private int table = LineArena.NONE;
    private int mask = -1;
    private int used;

    NameAnchors(LineArena arena, Holdings holdings) {
        this.arena = arena;
        this.memory = arena.memory();
        this.holdings = holdings;
    }

    /** Position of a name that is anchored and held, or {@link Holdings#NONE}. */
    int find(long name) {
        final long hash = hash(name);
        for (int i = home(hash); table != LineArena.NONE; i = (i + 1) & mask) {
            final long entry = memory.getLong(offset(i));
            if (entry == 0) {
                break;
            }
            if (entry >>> 32 == hash) {
                final int position = (int) entry - 1;
                if (holdings.isHeld(position) && holdings.name(position) == name) {
                    return position;
                }
            }
        }
        return Holdings.NONE;
    }

    /** Anchors a name, as far as there is memory. */
    void put(long name, int position) {
        if (2 * (used + 1) > mask + 1 && !rebuild() && used >= mask) {
            return;
        }
        put(entry(name, position));
    }

    private void put(long entry) {
        int i = home(entry >>> 32);
        while (memory.getLong(offset(i)) != 0) {
            i = (i + 1) & mask;
        }
        memory.putLong(offset(i), entry);
        used++;
    }

    /** Takes an anchor away; nothing happens when it is not there. */
    void remove(long name, int position) {
        if (table == LineArena.NONE) {
            return;
        }
        final long wanted = entry(name, position);
        int hole = home(hash(name));
        for (long entry = memory.getLong(offset(hole)); entry != wanted; ) {
            if (entry == 0) {
                return;
            }
            hole = (hole + 1) & mask;
            entry = memory.getLong(offset(hole));
        }
        for (int i = (hole + 1) & mask; ; i = (i + 1) & mask) {
            final long entry = memory.getLong(offset(i));
            if (entry == 0) {
                break;
            }
            if (((i - home(entry >>> 32)) & mask) >= ((i - hole) & mask)) {
                memory.putLong(offset(hole), entry);
                hole = i;
            }
        }
        memory.putLong(offset(hole), 0);
        used--;
    }

    /** Moves the entries that are not stale into a table with room for three times as many. */
    private boolean rebuild() {
        int live = 1;
        for (int i = 0; i <= mask; i++) {
            live += isLive(memory.getLong(offset(i))) ? 1 : 0;
        }
        final int order = LineArena.orderFor(4L * live * Long.BYTES);
        final int rebuilt = arena.allocate(order);
        if (rebuilt == LineArena.NONE) {
            return false;
        }
        memory.zero(LineArena.offset(rebuilt), (long) LineArena.LINE_LENGTH << order);
        final int old = table;
        final int oldMask = mask;
        table = rebuilt;
        mask = (ENTRIES_PER_LINE << order) - 1;
        used = 0;
        for (int i = 0; i <= oldMask; i++) {
            final long entry = memory.getLong(LineArena.offset(old) + (long) i * Long.BYTES);
            if (isLive(entry)) {
                put(entry);
            }
        }
        if (old != LineArena.NONE) {
            arena.free(old);
        }
        return true;
    }

    /** Line of the table, {@link LineArena#NONE} = none; for tests. */
    int table() {
        return table;
    }

    private boolean isLive(long entry) {
        final int position = (int) entry - 1;
        return entry != 0
                && holdings.isHeld(position)
                && hash(holdings.name(position)) == entry >>> 32;
    }

    /** Gives all memory back. */
    void release() {
        if (table != LineArena.NONE) {
            arena.free(table);
        }
        table = LineArena.NONE;
        mask = -1;
        used = 0;
    }

    private int home(long hash) {
        return (int) hash & mask;
    }

    private long offset(int entry) {
        return LineArena.offset(table) + (long) entry * Long.BYTES;
    }

    private static long entry(long name, int position) {
        return hash(name) << 32 | ((position + 1) & 0xFFFF_FFFFL);
    }

    private static long hash(long name) {
        return ((name ^ (name >>> 32)) * SPREAD) >>> 32;
    }
}
