package io.kvasir.core.index;

import io.kvasir.core.memory.LineArena;
import io.kvasir.core.memory.OffHeap;

import java.util.Arrays;

/**
 * What one worker slot holds of each array of hashes, and under which names. Only the writer thread
 * uses it; its memory comes from the arena of the index, a line for each holding.
 *
 * <p>A <em>position</em> names a held block: the place of the block in an array, and the slot's
 * holding of that array. Splits of runs change no position. A position that was kept may have
 * become that of another block; the name tells.
 */
final class Holdings {
    /** No position, no holding. */
    static final int NONE = -1;

    private final LineArena arena;
    private final OffHeap memory;
    private final NameIndex names;
    private final NameAnchors anchors;

    /** Line of each holding in use; of a free one, how far below {@link #NONE} the next free is. */
    private int[] lines = new int[16];

    private int end;
    private int firstFree = NONE;
    private int used;

    @SuppressWarnings("UnusedVariable") // written so that the loads of touch() are not dropped
    private long lastTouched;

    Holdings(LineArena arena) {
        this.arena = arena;
        this.memory = arena.memory();
        this.names = new NameIndex(memory);
        this.anchors = new NameAnchors(arena, this);
    }

    /** Holdings. */
    int used() {
        return used;
    }

    /** Numbers of holdings are below this; not all of them are in use. */
    int end() {
        return end;
    }

    /** Whether a number below {@link #end} is a holding. */
    boolean isUsed(int holding) {
        return lines[holding] > LineArena.NONE;
    }

    /**
     * Makes a holding of nothing.
     *
     * @param run a piece of the array
     * @return its number, or {@link #NONE} when there is no memory
     */
    int allocate(int run) {
        final int line = end == HoldingDescriptor.MAX_HOLDINGS ? LineArena.NONE : arena.allocate(0);
        if (line == LineArena.NONE) {
            return NONE;
        }
        final int holding = firstFree == NONE ? end : firstFree;
        if (holding == end) {
            end++;
            if (holding == lines.length) {
                lines = Arrays.copyOf(lines, 2 * lines.length);
            }
        } else {
            firstFree = NONE - lines[holding];
        }
        lines[holding] = line;
        memory.zero(LineArena.offset(line), LineArena.LINE_LENGTH);
        memory.putInt(LineArena.offset(line) + HoldingDescriptor.RUN_OFFSET, run);
        used++;
        return holding;
    }

    /** Frees a holding of nothing. */
    void free(int holding) {
        final long at = at(holding);
        assert held(holding) == 0;
        freeBits(at);
        freeIndex(at);
        freeNames(at, 0);
        arena.free(lines[holding]);
        lines[holding] = NONE - firstFree;
        firstFree = holding;
        used--;
    }

    /** Gives all memory back; nothing is held any more. */
    void release() {
        assert used == 0 : "holdings=" + used;
        end = 0;
        firstFree = NONE;
        anchors.release();
    }

    /** Whether a position is one of a block that is held now. */
    boolean isHeld(int position) {
        final int holding = HoldingDescriptor.holding(position);
        return holding < end
                && isUsed(holding)
                && holds(holding, HoldingDescriptor.place(position));
    }

    private int indexOrder(long at) {
        return memory.getInt(at + HoldingDescriptor.INDEX_ORDER_OFFSET);
    }

    /** A piece of the array that the slot covers. */
    int run(int holding) {
        return memory.getInt(at(holding) + HoldingDescriptor.RUN_OFFSET);
    }

    void run(int holding, int run) {
        memory.putInt(at(holding) + HoldingDescriptor.RUN_OFFSET, run);
    }

    /** First held place. */
    int low(int holding) {
        return memory.getInt(at(holding) + HoldingDescriptor.LOW_OFFSET);
    }

    /** Place behind the last held one. */
    int high(int holding) {
        return memory.getInt(at(holding) + HoldingDescriptor.HIGH_OFFSET);
    }

    /** Held places. */
    int held(int holding) {
        return memory.getInt(at(holding) + HoldingDescriptor.HELD_OFFSET);
    }

    /** Whether all places between {@link #low} and {@link #high} are held. */
    boolean isSolid(int holding) {
        return memory.getInt(at(holding) + HoldingDescriptor.BITS_OFFSET) == LineArena.NONE;
    }

    /** Whether a place is held. */
    boolean holds(int holding, int place) {
        if (place < low(holding) || place >= high(holding)) {
            return false;
        }
        final int bits = memory.getInt(at(holding) + HoldingDescriptor.BITS_OFFSET);
        return bits == LineArena.NONE || bit(bits, place);
    }

    /** First place from {@code place} on that is held or not, as asked; at most {@code end}. */
    int next(int holding, int place, int end, boolean held) {
        int p = place;
        if (isSolid(holding)) {
            final int low = low(holding);
            final int high = high(holding);
            if (held) {
                return p >= high || low == high ? end : Math.min(Math.max(p, low), end);
            }
            return p >= low && p < high ? Math.min(high, end) : p;
        }
        while (p < end && holds(holding, p) != held) {
            p++;
        }
        return p;
    }

    /** The slot's name of a held place. */
    long name(int holding, int place) {
        return memory.getLong(nameOffset(at(holding), place));
    }

    /** The slot's name of a position. */
    long name(int position) {
        return name(HoldingDescriptor.holding(position), HoldingDescriptor.place(position));
    }

    /** Gives a held place another name. */
    void name(int holding, int place, long name) {
        final long at = at(holding);
        removeLastAnchor(holding);
        memory.putLong(nameOffset(at, place), name);
        putLastAnchor(holding);
        final int index = memory.getInt(at + HoldingDescriptor.INDEX_OFFSET);
        if (index != LineArena.NONE && !names.enter(index, indexOrder(at), name, place)) {
            reindex(at);
        }
    }

    /**
     * Writes names from a place on; they are not held yet.
     *
     * @return false when there is no memory for them
     */
    boolean putNames(int holding, int place, long[] hashes, int from, int count) {
        final long at = at(holding);
        int next = place;
        for (int left = count; left > 0; ) {
            final int inChunk = next % HoldingDescriptor.NAMES_PER_CHUNK;
            final int put = Math.min(left, HoldingDescriptor.NAMES_PER_CHUNK - inChunk);
            if (!growChunk(at, next / HoldingDescriptor.NAMES_PER_CHUNK, inChunk + put)) {
                return false;
            }
            memory.putLongs(nameOffset(at, next), hashes, from + next - place, put);
            next += put;
            left -= put;
        }
        final int places = Math.max(next, high(holding));
        if (places >= NameIndex.MIN_NAMES) {
            growIndex(at, places);
        }
        return true;
    }

    private boolean growChunk(long at, int chunk, int names) {
        final long offset = at + HoldingDescriptor.chunkOffset(chunk);
        final int line = memory.getInt(offset);
        final int order = LineArena.orderFor((long) names * Long.BYTES);
        if (line != LineArena.NONE && arena.order(line) >= order) {
            return true;
        }
        final int grown = arena.allocate(order);
        if (grown == LineArena.NONE) {
            return false;
        }
        if (line != LineArena.NONE) {
            memory.copy(
                    LineArena.offset(line),
                    LineArena.offset(grown),
                    (long) LineArena.LINE_LENGTH << arena.order(line));
            arena.free(line);
        }
        memory.putInt(offset, grown);
        return true;
    }

    /** Gives a holding an index as large as its names ask for, as far as there is memory. */
    private void growIndex(long at, int places) {
        final int index = memory.getInt(at + HoldingDescriptor.INDEX_OFFSET);
        final int order = NameIndex.order(places);
        if (index != LineArena.NONE && indexOrder(at) >= order) {
            return;
        }
        final int grown = arena.allocate(order);
        freeIndex(at);
        if (grown != LineArena.NONE) {
            memory.putInt(at + HoldingDescriptor.INDEX_OFFSET, grown);
            memory.putInt(at + HoldingDescriptor.INDEX_ORDER_OFFSET, order);
            reindex(at);
        }
    }

    private void reindex(long at) {
        final int index = memory.getInt(at + HoldingDescriptor.INDEX_OFFSET);
        final int order = indexOrder(at);
        names.clear(index, order);
        final int bits = memory.getInt(at + HoldingDescriptor.BITS_OFFSET);
        final int high = memory.getInt(at + HoldingDescriptor.HIGH_OFFSET);
        for (int p = memory.getInt(at + HoldingDescriptor.LOW_OFFSET); p < high; p++) {
            if (bits == LineArena.NONE || bit(bits, p)) {
                final boolean entered =
                        names.enter(index, order, memory.getLong(nameOffset(at, p)), p);
                assert entered : "an index has room for all names of its holding";
            }
        }
    }

    /** Enters names that were put and are held into the index. */
    void index(int holding, int place, long[] hashes, int from, int count) {
        final long at = at(holding);
        final int index = memory.getInt(at + HoldingDescriptor.INDEX_OFFSET);
        if (index == LineArena.NONE) {
            return;
        }
        final int order = indexOrder(at);
        for (int i = 0; i < count; i++) {
            if (!names.enter(index, order, hashes[from + i], place + i)) {
                reindex(at); // full of names that are not held any more
                return;
            }
        }
    }

    /**
     * Finds the name of the last block of a holding, or of one that was anchored.
     *
     * @return its position, or {@link #NONE}
     */
    int findAnchored(long name) {
        return anchors.find(name);
    }

    /** Lets a name be found as fast as the last one of a holding from now on. */
    void anchor(long name, int position) {
        anchors.put(name, position);
    }

    /**
     * Finds a name among all that the slot holds: takes time for each holding.
     *
     * @return its position, or {@link #NONE}
     */
    int search(long name) {
        final int end = end();
        long touched = 0;
        for (int holding = 0; holding < end; holding++) {
            touched += isUsed(holding) ? touch(at(holding), name) : 0;
        }
        lastTouched = touched;
        for (int holding = 0; holding < end; holding++) {
            if (isUsed(holding)) {
                final int place = findIn(holding, name);
                if (place != NONE) {
                    return HoldingDescriptor.position(holding, place);
                }
            }
        }
        return NONE;
    }

    /** Starts the load of the line where a holding has a name. */
    private long touch(long at, long name) {
        final int index = memory.getInt(at + HoldingDescriptor.INDEX_OFFSET);
        return index == LineArena.NONE ? 0 : names.touch(index, indexOrder(at), name);
    }

    private int findIn(int holding, long name) {
        final long at = at(holding);
        final int index = memory.getInt(at + HoldingDescriptor.INDEX_OFFSET);
        final int high = high(holding);
        if (index == LineArena.NONE) {
            for (int p = low(holding); p < high; p++) {
                if (name(holding, p) == name && holds(holding, p)) {
                    return p;
                }
            }
            return NONE;
        }
        final int order = indexOrder(at);
        long cursor = names.first(index, order, name);
        while (cursor != NameIndex.END) {
            final int place = names.place(cursor);
            if (place < high && name(holding, place) == name && holds(holding, place)) {
                return place;
            }
            cursor = names.next(index, order, name, cursor);
        }
        return NONE;
    }

    /**
     * Makes ready to {@link #hold} places: a holding with gaps needs bits.
     *
     * @return false when there is no memory for them
     */
    boolean prepareBits(int holding, int place, int count) {
        return !isSolid(holding)
                || held(holding) == 0
                || place == high(holding)
                || place + count == low(holding)
                || makeSparse(holding);
    }

    private boolean makeSparse(int holding) {
        final int bits = arena.allocate(0);
        if (bits == LineArena.NONE) {
            return false;
        }
        memory.zero(LineArena.offset(bits), LineArena.LINE_LENGTH);
        for (int p = low(holding); p < high(holding); p++) {
            setBit(bits, p, true);
        }
        memory.putInt(at(holding) + HoldingDescriptor.BITS_OFFSET, bits);
        return true;
    }

    /** Holds places that are not held; a solid holding needs them to touch what it has. */
    void hold(int holding, int place, int count) {
        final long at = at(holding);
        final int held = held(holding);
        final int bits = memory.getInt(at + HoldingDescriptor.BITS_OFFSET);
        removeLastAnchor(holding);
        if (held == 0) {
            memory.putInt(at + HoldingDescriptor.LOW_OFFSET, place);
            memory.putInt(at + HoldingDescriptor.HIGH_OFFSET, place + count);
        } else {
            memory.putInt(at + HoldingDescriptor.LOW_OFFSET, Math.min(low(holding), place));
            memory.putInt(
                    at + HoldingDescriptor.HIGH_OFFSET, Math.max(high(holding), place + count));
        }
        memory.putInt(at + HoldingDescriptor.HELD_OFFSET, held + count);
        if (bits != LineArena.NONE) {
            for (int p = place; p < place + count; p++) {
                setBit(bits, p, true);
            }
        }
        putLastAnchor(holding);
    }

    private void removeLastAnchor(int holding) {
        if (held(holding) > 0) {
            final int last = high(holding) - 1;
            anchors.remove(name(holding, last), HoldingDescriptor.position(holding, last));
        }
    }

    private void putLastAnchor(int holding) {
        if (held(holding) > 0) {
            final int last = high(holding) - 1;
            anchors.put(name(holding, last), HoldingDescriptor.position(holding, last));
        }
    }

    /** Gives back bits that are not needed any more; follows {@link #hold}. */
    void settle(int holding) {
        if (held(holding) == high(holding) - low(holding)) {
            freeBits(at(holding));
        }
    }

    /** Lets go of the last places of a solid holding. */
    void dropLast(int holding, int count) {
        final long at = at(holding);
        final int high = high(holding) - count;
        removeLastAnchor(holding);
        memory.putInt(at + HoldingDescriptor.HIGH_OFFSET, high);
        memory.putInt(at + HoldingDescriptor.HELD_OFFSET, held(holding) - count);
        shrinkNames(at, high);
        putLastAnchor(holding);
    }

    /**
     * Lets go of one held place.
     *
     * @return false when bits are needed and there is no memory for them; the place and all held
     *     ones behind it have to be given up instead
     */
    boolean drop(int holding, int place) {
        final long at = at(holding);
        final int low = low(holding);
        final int high = high(holding);
        if (isSolid(holding)) {
            if (place == high - 1) {
                dropLast(holding, 1);
                return true;
            }
            if (place == low) {
                memory.putInt(at + HoldingDescriptor.LOW_OFFSET, low + 1);
                memory.putInt(at + HoldingDescriptor.HELD_OFFSET, held(holding) - 1);
                return true;
            }
            if (!makeSparse(holding)) {
                return false;
            }
        }
        final int bits = memory.getInt(at + HoldingDescriptor.BITS_OFFSET);
        removeLastAnchor(holding);
        setBit(bits, place, false);
        memory.putInt(at + HoldingDescriptor.HELD_OFFSET, held(holding) - 1);
        trim(at, bits);
        settle(holding);
        shrinkNames(at, high(holding));
        putLastAnchor(holding);
        return true;
    }

    /** Moves low and high to the first and behind the last bit. */
    private void trim(long at, int bits) {
        int low = memory.getInt(at + HoldingDescriptor.LOW_OFFSET);
        int high = memory.getInt(at + HoldingDescriptor.HIGH_OFFSET);
        while (low < high && !bit(bits, low)) {
            low++;
        }
        while (low < high && !bit(bits, high - 1)) {
            high--;
        }
        memory.putInt(at + HoldingDescriptor.LOW_OFFSET, low);
        memory.putInt(at + HoldingDescriptor.HIGH_OFFSET, high);
    }

    private void shrinkNames(long at, int high) {
        final int chunk = high / HoldingDescriptor.NAMES_PER_CHUNK;
        final int names = high % HoldingDescriptor.NAMES_PER_CHUNK;
        freeNames(at, names == 0 ? chunk : chunk + 1);
        if (names > 0) {
            final int line = memory.getInt(at + HoldingDescriptor.chunkOffset(chunk));
            final int order = LineArena.orderFor((long) names * Long.BYTES);
            if (order < arena.order(line)) {
                arena.shrink(line, order);
            }
        }
    }

    private void freeNames(long at, int fromChunk) {
        for (int chunk = fromChunk; chunk < HoldingDescriptor.CHUNKS; chunk++) {
            final long offset = at + HoldingDescriptor.chunkOffset(chunk);
            final int line = memory.getInt(offset);
            if (line != LineArena.NONE) {
                memory.putInt(offset, LineArena.NONE);
                arena.free(line);
            }
        }
    }

    private void freeIndex(long at) {
        final int index = memory.getInt(at + HoldingDescriptor.INDEX_OFFSET);
        if (index != LineArena.NONE) {
            memory.putInt(at + HoldingDescriptor.INDEX_OFFSET, LineArena.NONE);
            arena.free(index);
        }
    }

    private void freeBits(long at) {
        final int bits = memory.getInt(at + HoldingDescriptor.BITS_OFFSET);
        if (bits != LineArena.NONE) {
            memory.putInt(at + HoldingDescriptor.BITS_OFFSET, LineArena.NONE);
            arena.free(bits);
        }
    }

    private boolean bit(int bits, int place) {
        return (memory.getLong(bitWord(bits, place)) & 1L << place) != 0;
    }

    private void setBit(int bits, int place, boolean held) {
        final long word = bitWord(bits, place);
        final long bit = 1L << place;
        final long before = memory.getLong(word);
        memory.putLong(word, held ? before | bit : before & ~bit);
    }

    private static long bitWord(int bits, int place) {
        return LineArena.offset(bits) + (place >>> 6 << 3);
    }

    private long nameOffset(long at, int place) {
        final int line =
                memory.getInt(
                        at
                                + HoldingDescriptor.chunkOffset(
                                        place / HoldingDescriptor.NAMES_PER_CHUNK));
        return LineArena.offset(line)
                + (long) (place % HoldingDescriptor.NAMES_PER_CHUNK) * Long.BYTES;
    }

    private long at(int holding) {
        return LineArena.offset(lines[holding]);
    }
}
