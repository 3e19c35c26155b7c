package io.kvasir.core.index;

import io.kvasir.core.memory.BuddyArena;
import io.kvasir.core.memory.KeptWords;
import io.kvasir.core.memory.OffHeap;

/**
 * What one worker slot holds of each array of hashes, and under which names. Only the writer thread
 * uses it; its memory comes from the arena of the index, a line for each held run.
 *
 * <p>A <em>position</em> names a held block: the offset of the block in an array, and the slot's
 * held run of that array. Splits of runs change no position. A position that was kept may have
 * become that of another block; its name then differs.
 */
final class HeldRuns {
    /** No position, no held run. */
    static final int NO_HELD_RUN = -1;

    private static final int STORED = 1 << 31;

    private static final int LINES_PER_LINE = BuddyArena.LINE_LENGTH / Integer.BYTES;

    private final BuddyArena arena;
    private final OffHeap memory;

    /**
     * Line of each held run in use; of a free one, how far below {@link #NO_HELD_RUN} the next free
     * is.
     */
    private final SegmentedLines lines;

    /** The held run that was asked for last: the same is asked for many times. */
    private int seen = NO_HELD_RUN;

    /** Offset of its line. */
    private long seenAt;

    private int end;
    private int births;
    private int firstFree = NO_HELD_RUN;
    private int used;

    HeldRuns(BuddyArena arena) {
        this.arena = arena;
        this.memory = arena.memory();
        this.lines = new SegmentedLines(arena);
    }

    /** Names what there is beside the memory. */
    void keep(KeptWords words) {
        end = words.keep(end);
        births = words.keep(births);
        firstFree = words.keep(firstFree);
        used = words.keep(used);
        lines.keep(words);
    }

    /** Held runs in use. */
    int used() {
        return used;
    }

    /** Numbers of held runs are below this; not all of them are in use. */
    int end() {
        return end;
    }

    /** Lines that have the numbers of the lines of the held runs; for tests. */
    SegmentedLines lines() {
        return lines;
    }

    /** Line of a held run; not above {@link BuddyArena#NO_LINE} for one that is not in use. */
    int line(int heldRun) {
        return memory.getInt(lineOffset(heldRun));
    }

    /** Whether a number is that of a held run. */
    boolean isUsed(int heldRun) {
        return heldRun < end && line(heldRun) > BuddyArena.NO_LINE;
    }

    /**
     * Makes a held run of nothing.
     *
     * @param run a segment of the array
     * @param above the slot's held run that this one continues from, or {@link #NO_HELD_RUN}
     * @return its number, or {@link #NO_HELD_RUN} when there is no memory
     */
    int allocate(int run, int above) {
        if (firstFree == NO_HELD_RUN && !hasRoomForOneMore()) {
            return NO_HELD_RUN;
        }
        final int line = arena.allocate(0);
        if (line == BuddyArena.NO_LINE) {
            if (used == 0) {
                release();
            }
            return NO_HELD_RUN;
        }
        final int heldRun = firstFree == NO_HELD_RUN ? end++ : firstFree;
        if (heldRun == firstFree) {
            firstFree = NO_HELD_RUN - line(heldRun);
        }
        memory.putInt(lineOffset(heldRun), line);
        seen = NO_HELD_RUN;
        final long at = BuddyArena.offset(line);
        memory.zero(at, BuddyArena.LINE_LENGTH);
        memory.putInt(at + HeldRunDescriptor.RUN_OFFSET, run);
        memory.putInt(at + HeldRunDescriptor.BIRTH_OFFSET, births++);
        if (above != NO_HELD_RUN) {
            memory.putInt(at + HeldRunDescriptor.ABOVE_OFFSET, above + 1);
            memory.putInt(
                    at + HeldRunDescriptor.ABOVE_BIRTH_OFFSET,
                    memory.getInt(BuddyArena.offset(line(above)) + HeldRunDescriptor.BIRTH_OFFSET));
            addBelow(above, 1);
        }
        used++;
        return heldRun;
    }

    private boolean hasRoomForOneMore() {
        return end < HeldRunDescriptor.MAX_HELD_RUNS
                && (end < lines.lines() * LINES_PER_LINE || lines.grow());
    }

    /** Frees a held run of nothing; the last one frees the memory of all. */
    void free(int heldRun) {
        final long at = at(heldRun);
        assert held(heldRun) == 0;
        final int above = above(heldRun);
        if (above != NO_HELD_RUN) {
            addBelow(above, -1);
        }
        freeBits(at);
        freeNames(at, 0);
        arena.free(line(heldRun));
        memory.putInt(lineOffset(heldRun), NO_HELD_RUN - firstFree);
        firstFree = heldRun;
        used--;
        if (used == 0) {
            release();
        }
    }

    private void release() {
        lines.release();
        end = 0;
        firstFree = NO_HELD_RUN;
    }

    /** Whether a position is one of a block that is held now. */
    boolean isHeld(int position) {
        final int heldRun = HeldRunDescriptor.heldRun(position);
        return isUsed(heldRun) && holds(heldRun, HeldRunDescriptor.arrayOffset(position));
    }

    /** A segment of the array that the slot holds. */
    int run(int heldRun) {
        return memory.getInt(at(heldRun) + HeldRunDescriptor.RUN_OFFSET);
    }

    void run(int heldRun, int run) {
        memory.putInt(at(heldRun) + HeldRunDescriptor.RUN_OFFSET, run);
    }

    /** First held block. */
    int low(int heldRun) {
        return memory.getShort(at(heldRun) + HeldRunDescriptor.LOW_OFFSET);
    }

    /** Offset after the last held one. */
    int high(int heldRun) {
        return memory.getShort(at(heldRun) + HeldRunDescriptor.HIGH_OFFSET);
    }

    /** Held blocks. */
    int held(int heldRun) {
        return memory.getShort(at(heldRun) + HeldRunDescriptor.HELD_OFFSET);
    }

    private void putLow(long at, int arrayOffset) {
        memory.putShort(at + HeldRunDescriptor.LOW_OFFSET, (short) arrayOffset);
    }

    private void putHigh(long at, int arrayOffset) {
        memory.putShort(at + HeldRunDescriptor.HIGH_OFFSET, (short) arrayOffset);
    }

    private void putHeld(long at, int count) {
        memory.putShort(at + HeldRunDescriptor.HELD_OFFSET, (short) count);
    }

    /**
     * The held run that one continues from, which is that of its parent array when it was made;
     * {@link #NO_HELD_RUN} where there is none any more.
     */
    int above(int heldRun) {
        final long at = at(heldRun);
        final int above = memory.getInt(at + HeldRunDescriptor.ABOVE_OFFSET) - 1;
        final int birth = memory.getInt(at + HeldRunDescriptor.ABOVE_BIRTH_OFFSET);
        return above != NO_HELD_RUN
                        && isUsed(above)
                        && memory.getInt(
                                        BuddyArena.offset(line(above))
                                                + HeldRunDescriptor.BIRTH_OFFSET)
                                == birth
                ? above
                : NO_HELD_RUN;
    }

    /** How many held runs go on from one: none of them was made before it. */
    int below(int heldRun) {
        return memory.getInt(at(heldRun) + HeldRunDescriptor.BELOW_OFFSET) & ~STORED;
    }

    private void addBelow(int heldRun, int change) {
        final long at = BuddyArena.offset(line(heldRun)) + HeldRunDescriptor.BELOW_OFFSET;
        memory.putInt(at, memory.getInt(at) + change);
    }

    /** Whether blocks were stored since {@link #look}. */
    boolean isStored(int heldRun) {
        return memory.getInt(at(heldRun) + HeldRunDescriptor.BELOW_OFFSET) < 0;
    }

    /** Says that blocks were stored in a held run, or after it. */
    void stored(int heldRun) {
        final long at = at(heldRun) + HeldRunDescriptor.BELOW_OFFSET;
        memory.putInt(at, memory.getInt(at) | STORED);
    }

    /** Makes {@link #isStored} false until blocks are stored again. */
    void look(int heldRun) {
        final long at = at(heldRun) + HeldRunDescriptor.BELOW_OFFSET;
        memory.putInt(at, memory.getInt(at) & ~STORED);
    }

    /** Whether all blocks between {@link #low} and {@link #high} are held. */
    boolean isSolid(int heldRun) {
        return memory.getInt(at(heldRun) + HeldRunDescriptor.BITS_OFFSET) == BuddyArena.NO_LINE;
    }

    /** Whether a block is held. */
    boolean holds(int heldRun, int arrayOffset) {
        if (arrayOffset < low(heldRun) || arrayOffset >= high(heldRun)) {
            return false;
        }
        final int bits = memory.getInt(at(heldRun) + HeldRunDescriptor.BITS_OFFSET);
        return bits == BuddyArena.NO_LINE || bit(bits, arrayOffset);
    }

    /**
     * First block from {@code arrayOffset} on that is held or not, as asked; at most {@code end}.
     */
    int next(int heldRun, int arrayOffset, int end, boolean held) {
        int p = arrayOffset;
        if (isSolid(heldRun)) {
            final int low = low(heldRun);
            final int high = high(heldRun);
            if (held) {
                return p >= high || low == high ? end : Math.min(Math.max(p, low), end);
            }
            return p >= low && p < high ? Math.min(high, end) : p;
        }
        final int bits = memory.getInt(at(heldRun) + HeldRunDescriptor.BITS_OFFSET);
        while (p < end) {
            final long word = memory.getLong(bitWord(bits, p));
            final long wanted = (held ? word : ~word) >>> p;
            if (wanted != 0) {
                return Math.min(end, p + Long.numberOfTrailingZeros(wanted));
            }
            p = (p | Long.SIZE - 1) + 1;
        }
        return end;
    }

    /** The slot's name of a held block. */
    long name(int heldRun, int arrayOffset) {
        return memory.getLong(nameOffset(at(heldRun), arrayOffset));
    }

    /** The slot's name of a position. */
    long name(int position) {
        return name(HeldRunDescriptor.heldRun(position), HeldRunDescriptor.arrayOffset(position));
    }

    /** Gives a held position another name. */
    void name(int position, long name) {
        final long at = at(HeldRunDescriptor.heldRun(position));
        memory.putLong(nameOffset(at, HeldRunDescriptor.arrayOffset(position)), name);
    }

    /**
     * Writes names from a block on; they are not held yet.
     *
     * @return false when there is no memory for them
     */
    boolean putNames(int heldRun, int arrayOffset, long[] hashes, int from, int count) {
        final long at = at(heldRun);
        int next = arrayOffset;
        for (int left = count; left > 0; ) {
            final int inChunk = next % HeldRunDescriptor.NAMES_PER_CHUNK;
            final int put = Math.min(left, HeldRunDescriptor.NAMES_PER_CHUNK - inChunk);
            if (!growChunk(at, next / HeldRunDescriptor.NAMES_PER_CHUNK, inChunk + put)) {
                return false;
            }
            memory.putLongs(nameOffset(at, next), hashes, from + next - arrayOffset, put);
            next += put;
            left -= put;
        }
        return true;
    }

    private boolean growChunk(long at, int chunk, int names) {
        final long offset = at + HeldRunDescriptor.chunkOffset(chunk);
        final int line = memory.getInt(offset);
        final int order = BuddyArena.orderFor((long) names * Long.BYTES);
        if (line != BuddyArena.NO_LINE && arena.order(line) >= order) {
            return true;
        }
        final int grown = arena.grow(line, order);
        if (grown == BuddyArena.NO_LINE) {
            return false;
        }
        memory.putInt(offset, grown);
        return true;
    }

    /**
     * Makes ready to {@link #hold} blocks: a held run with gaps needs bits, and one that grows at
     * its start too, so that the blocks can be dropped in any order without more memory.
     *
     * @return false when there is no memory for them
     */
    boolean prepareBits(int heldRun, int arrayOffset) {
        return !isSolid(heldRun)
                || held(heldRun) == 0
                || arrayOffset == high(heldRun)
                || makeSparse(heldRun);
    }

    private boolean makeSparse(int heldRun) {
        final int bits = arena.allocate(0);
        if (bits == BuddyArena.NO_LINE) {
            return false;
        }
        memory.zero(BuddyArena.offset(bits), BuddyArena.LINE_LENGTH);
        setBits(bits, low(heldRun), high(heldRun));
        memory.putInt(at(heldRun) + HeldRunDescriptor.BITS_OFFSET, bits);
        return true;
    }

    /** Holds blocks that are not held; a solid held run needs them to touch what it has. */
    void hold(int heldRun, int arrayOffset, int count) {
        final long at = at(heldRun);
        final int held = held(heldRun);
        final int bits = memory.getInt(at + HeldRunDescriptor.BITS_OFFSET);
        if (held == 0) {
            putLow(at, arrayOffset);
            putHigh(at, arrayOffset + count);
        } else {
            putLow(at, Math.min(low(heldRun), arrayOffset));
            putHigh(at, Math.max(high(heldRun), arrayOffset + count));
        }
        putHeld(at, held + count);
        if (bits != BuddyArena.NO_LINE) {
            setBits(bits, arrayOffset, arrayOffset + count);
        }
    }

    /** Whether a held run has bits that are not needed any more. */
    boolean isUnsettled(int heldRun) {
        return !isSolid(heldRun) && held(heldRun) == high(heldRun) - low(heldRun);
    }

    /** Gives back bits that are not needed any more. */
    void settle(int heldRun) {
        if (isUnsettled(heldRun)) {
            freeBits(at(heldRun));
        }
    }

    /** Lets go of the last blocks of a solid held run. */
    void dropLast(int heldRun, int count) {
        final long at = at(heldRun);
        final int high = high(heldRun) - count;
        putHigh(at, high);
        putHeld(at, held(heldRun) - count);
        shrinkNames(at, high);
    }

    /**
     * Lets go of one held block.
     *
     * @return false when bits are needed and there is no memory for them; the block and all held
     *     ones after it have to be given up instead
     */
    boolean drop(int heldRun, int arrayOffset) {
        final long at = at(heldRun);
        final int low = low(heldRun);
        final int high = high(heldRun);
        if (isSolid(heldRun)) {
            if (arrayOffset == high - 1) {
                dropLast(heldRun, 1);
                return true;
            }
            if (arrayOffset == low) {
                putLow(at, low + 1);
                putHeld(at, held(heldRun) - 1);
                return true;
            }
            if (!makeSparse(heldRun)) {
                return false;
            }
        }
        final int bits = memory.getInt(at + HeldRunDescriptor.BITS_OFFSET);
        clearBit(bits, arrayOffset);
        putHeld(at, held(heldRun) - 1);
        trim(at, bits);
        settle(heldRun);
        shrinkNames(at, high(heldRun));
        return true;
    }

    /** Moves low and high to the first and after the last bit. */
    private void trim(long at, int bits) {
        int low = memory.getShort(at + HeldRunDescriptor.LOW_OFFSET);
        int high = memory.getShort(at + HeldRunDescriptor.HIGH_OFFSET);
        for (int p = low; p < high; p = (p | Long.SIZE - 1) + 1) {
            final long word = memory.getLong(bitWord(bits, p)) >>> p;
            if (word != 0) {
                low = p + Long.numberOfTrailingZeros(word);
                break;
            }
        }
        for (int p = high - 1; p >= low; p = (p & -Long.SIZE) - 1) {
            final long word = memory.getLong(bitWord(bits, p)) << (Long.SIZE - 1 - p);
            if (word != 0) {
                high = p + 1 - Long.numberOfLeadingZeros(word);
                break;
            }
        }
        putLow(at, low);
        putHigh(at, high);
    }

    private void shrinkNames(long at, int high) {
        final int chunk = high / HeldRunDescriptor.NAMES_PER_CHUNK;
        final int names = high % HeldRunDescriptor.NAMES_PER_CHUNK;
        freeNames(at, names == 0 ? chunk : chunk + 1);
        if (names > 0) {
            final int line = memory.getInt(at + HeldRunDescriptor.chunkOffset(chunk));
            final int order = BuddyArena.orderFor((long) names * Long.BYTES);
            if (order < arena.order(line)) {
                arena.shrink(line, order);
            }
        }
    }

    private void freeNames(long at, int fromChunk) {
        for (int chunk = fromChunk; chunk < HeldRunDescriptor.CHUNKS; chunk++) {
            final long offset = at + HeldRunDescriptor.chunkOffset(chunk);
            final int line = memory.getInt(offset);
            if (line != BuddyArena.NO_LINE) {
                memory.putInt(offset, BuddyArena.NO_LINE);
                arena.free(line);
            }
        }
    }

    private void freeBits(long at) {
        final int bits = memory.getInt(at + HeldRunDescriptor.BITS_OFFSET);
        if (bits != BuddyArena.NO_LINE) {
            memory.putInt(at + HeldRunDescriptor.BITS_OFFSET, BuddyArena.NO_LINE);
            arena.free(bits);
        }
    }

    private boolean bit(int bits, int arrayOffset) {
        return (memory.getLong(bitWord(bits, arrayOffset)) & 1L << arrayOffset) != 0;
    }

    private void setBits(int bits, int from, int to) {
        for (int p = from; p < to; p = (p | Long.SIZE - 1) + 1) {
            final long beyond = to > (p | Long.SIZE - 1) ? 0 : -1L << to;
            final long word = bitWord(bits, p);
            memory.putLong(word, memory.getLong(word) | ((-1L << p) & ~beyond));
        }
    }

    private void clearBit(int bits, int arrayOffset) {
        final long word = bitWord(bits, arrayOffset);
        memory.putLong(word, memory.getLong(word) & ~(1L << arrayOffset));
    }

    private static long bitWord(int bits, int arrayOffset) {
        return BuddyArena.offset(bits) + (arrayOffset >>> 6 << 3);
    }

    /** Offset of the line of the held run of a position. */
    long headerOffset(int position) {
        return BuddyArena.offset(line(HeldRunDescriptor.heldRun(position)));
    }

    /** Offset of the name of a position, of which the line of the held run is known. */
    long nameOffsetOf(long at, int position) {
        return nameOffset(at, HeldRunDescriptor.arrayOffset(position));
    }

    /** The name at an offset. */
    long nameAt(long offset) {
        return memory.getLong(offset);
    }

    private long nameOffset(long at, int arrayOffset) {
        final int line =
                memory.getInt(
                        at
                                + HeldRunDescriptor.chunkOffset(
                                        arrayOffset / HeldRunDescriptor.NAMES_PER_CHUNK));
        return BuddyArena.offset(line)
                + (long) (arrayOffset % HeldRunDescriptor.NAMES_PER_CHUNK) * Long.BYTES;
    }

    private long lineOffset(int heldRun) {
        return lines.offset(heldRun / LINES_PER_LINE)
                + (long) (heldRun % LINES_PER_LINE) * Integer.BYTES;
    }

    private long at(int heldRun) {
        if (heldRun != seen) {
            seen = heldRun;
            seenAt = BuddyArena.offset(line(heldRun));
        }
        return seenAt;
    }
}
