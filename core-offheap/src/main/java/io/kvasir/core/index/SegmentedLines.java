package io.kvasir.core.index;

import io.kvasir.core.memory.BuddyArena;
import io.kvasir.core.memory.KeptWords;
import io.kvasir.core.memory.OffHeap;

import java.util.stream.IntStream;

/**
 * Lines of the arena, numbered from 0, that grow and shrink at their end. Writer thread only.
 *
 * <p>A segment is 4 lines, 256 bytes; a directory of line numbers says where each segment is, so no
 * growth moves what is there. The first segment alone is smaller while that is enough, and is
 * copied when it grows. Where a fragmented memory has no block for a directory twice as large, the
 * further segments are in a {@link PageTree}, which is slower and grows everywhere.
 *
 * <pre>
 *   directory   [ segment 0:32 | segment 1:32 | … ]     line of each segment
 *   segment 0   2^n lines, n up to 2; every other one 4 lines
 * </pre>
 */
final class SegmentedLines {
    private static final int SEGMENT_ORDER = 2;

    /** Lines of a whole segment. */
    static final int SEGMENT_LINES = 1 << SEGMENT_ORDER;

    private static final int SEGMENTS_PER_LINE = BuddyArena.LINE_LENGTH / Integer.BYTES;

    private final BuddyArena arena;
    private final OffHeap memory;
    private final PageTree further;
    private int directory = BuddyArena.NO_LINE;
    private long directoryOffset;

    /** Segments for which the directory has room. */
    private int inDirectory;

    private int lines;

    SegmentedLines(BuddyArena arena) {
        this.arena = arena;
        this.memory = arena.memory();
        this.further = new PageTree(arena);
    }

    /** Names what there is beside the memory. */
    void keep(KeptWords words) {
        final long kept = words.keep((long) lines << Integer.SIZE | directory);
        lines = (int) (kept >>> Integer.SIZE);
        if ((int) kept != directory) { // restored
            setDirectory((int) kept);
        }
        final int tree = words.keep(further.root());
        final int segments = (lines + SEGMENT_LINES - 1) >>> SEGMENT_ORDER;
        further.restore(tree, tree == BuddyArena.NO_LINE ? 0 : segments - inDirectory);
    }

    private void setDirectory(int line) {
        directory = line;
        directoryOffset = BuddyArena.offset(line);
        inDirectory = line == BuddyArena.NO_LINE ? 0 : SEGMENTS_PER_LINE << arena.order(line);
    }

    /** Lines that there are. */
    int lines() {
        return lines;
    }

    /** Byte offset of a line in the arena. */
    long offset(int line) {
        return BuddyArena.offset(segment(line >>> SEGMENT_ORDER))
                + (long) (line & (SEGMENT_LINES - 1)) * BuddyArena.LINE_LENGTH;
    }

    /**
     * Adds lines with whatever bytes they have.
     *
     * @return false when there is no memory for them; nothing has changed then
     */
    boolean grow() {
        return lines < SEGMENT_LINES ? growFirst() : addSegment();
    }

    private boolean growFirst() {
        if (directory == BuddyArena.NO_LINE && !growDirectory(0)) {
            return false;
        }
        final int order = lines == 0 ? 0 : Integer.numberOfTrailingZeros(lines) + 1;
        final int grown = arena.grow(lines == 0 ? BuddyArena.NO_LINE : segment(0), order);
        if (grown == BuddyArena.NO_LINE) {
            if (lines == 0) {
                release();
            }
            return false;
        }
        segment(0, grown);
        lines = 1 << order;
        return true;
    }

    private boolean addSegment() {
        final int added = arena.allocate(SEGMENT_ORDER);
        if (added == BuddyArena.NO_LINE) {
            return false;
        }
        final int segment = lines >>> SEGMENT_ORDER;
        if (segment < inDirectory
                || (segment == inDirectory && growDirectory(arena.order(directory) + 1))) {
            segment(segment, added);
        } else if (!further.add(added)) {
            arena.free(added);
            return false;
        }
        lines += SEGMENT_LINES;
        return true;
    }

    private boolean growDirectory(int order) {
        final int grown =
                order > BuddyArena.MAX_ORDER ? BuddyArena.NO_LINE : arena.grow(directory, order);
        if (grown == BuddyArena.NO_LINE) {
            return false;
        }
        setDirectory(grown);
        return true;
    }

    /** Gives lines at the end back that are not needed, as far as a segment can be. */
    void shrinkTo(int needed) {
        while (lines > SEGMENT_LINES && lines - SEGMENT_LINES >= needed) {
            removeLast();
        }
        while (lines <= SEGMENT_LINES && lines > 1 && lines >> 1 >= needed) {
            lines >>= 1;
            arena.shrink(segment(0), Integer.numberOfTrailingZeros(lines));
        }
        final int segments = (lines + SEGMENT_LINES - 1) >>> SEGMENT_ORDER;
        final int order = BuddyArena.orderFor((long) segments * Integer.BYTES);
        if (order < arena.order(directory)) {
            arena.shrink(directory, order);
            setDirectory(directory);
        }
    }

    private void removeLast() {
        lines -= SEGMENT_LINES;
        arena.free(further.size() > 0 ? further.removeLast() : segment(lines >>> SEGMENT_ORDER));
    }

    /** Gives all memory back. */
    void release() {
        if (directory == BuddyArena.NO_LINE) {
            return;
        }
        while (lines > SEGMENT_LINES) {
            removeLast();
        }
        if (lines > 0) {
            arena.free(segment(0));
        }
        arena.free(directory);
        setDirectory(BuddyArena.NO_LINE);
        lines = 0;
    }

    /** Lines where the directory and its pages begin; for tests. */
    IntStream directory() {
        return IntStream.concat(IntStream.of(directory), further.pages())
                .filter(line -> line != BuddyArena.NO_LINE);
    }

    private int segment(int segment) {
        return segment < inDirectory
                ? memory.getInt(directoryOffset + (long) segment * Integer.BYTES)
                : further.get(segment - inDirectory);
    }

    private void segment(int segment, int line) {
        memory.putInt(directoryOffset + (long) segment * Integer.BYTES, line);
    }
}
