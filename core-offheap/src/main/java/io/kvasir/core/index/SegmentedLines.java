package io.kvasir.core.index;

import io.kvasir.core.memory.BuddyArena;
import io.kvasir.core.memory.KeptWords;
import io.kvasir.core.memory.OffHeap;

/**
 * Lines of the arena, numbered from 0, that grow and shrink at their end. Writer thread only.
 *
 * <p>A segment is 4 lines, 256 bytes; a directory of line numbers says where each segment is, so no
 * growth moves what is there. The first segment alone is smaller while that is enough, and is
 * copied when it grows.
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
    private int directory = BuddyArena.NO_LINE;
    private long directoryOffset;
    private int lines;

    SegmentedLines(BuddyArena arena) {
        this.arena = arena;
        this.memory = arena.memory();
    }

    /** Names what there is beside the memory. */
    void keep(KeptWords words) {
        directory = words.keep(directory);
        directoryOffset = BuddyArena.offset(directory);
        lines = words.keep(lines);
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
        final int grown = arena.allocate(order);
        if (grown == BuddyArena.NO_LINE) {
            if (lines == 0) {
                release();
            }
            return false;
        }
        if (lines > 0) {
            final int first = segment(0);
            memory.copy(
                    BuddyArena.offset(first),
                    BuddyArena.offset(grown),
                    (long) lines * BuddyArena.LINE_LENGTH);
            arena.free(first);
        }
        segment(0, grown);
        lines = 1 << order;
        return true;
    }

    private boolean addSegment() {
        final int segments = lines >>> SEGMENT_ORDER;
        final int order = arena.order(directory);
        if (segments == SEGMENTS_PER_LINE << order && !growDirectory(order + 1)) {
            return false;
        }
        final int added = arena.allocate(SEGMENT_ORDER);
        if (added == BuddyArena.NO_LINE) {
            return false;
        }
        segment(segments, added);
        lines += SEGMENT_LINES;
        return true;
    }

    private boolean growDirectory(int order) {
        final int grown = order > BuddyArena.MAX_ORDER ? BuddyArena.NO_LINE : arena.allocate(order);
        if (grown == BuddyArena.NO_LINE) {
            return false;
        }
        if (directory != BuddyArena.NO_LINE) {
            memory.copy(
                    directoryOffset,
                    BuddyArena.offset(grown),
                    (long) BuddyArena.LINE_LENGTH << arena.order(directory));
            arena.free(directory);
        }
        directory = grown;
        directoryOffset = BuddyArena.offset(grown);
        return true;
    }

    /** Gives lines at the end back that are not needed, as far as a segment can be. */
    void shrinkTo(int needed) {
        while (lines > SEGMENT_LINES && lines - SEGMENT_LINES >= needed) {
            lines -= SEGMENT_LINES;
            arena.free(segment(lines >>> SEGMENT_ORDER));
        }
        while (lines <= SEGMENT_LINES && lines > 1 && lines >> 1 >= needed) {
            lines >>= 1;
            arena.shrink(segment(0), Integer.numberOfTrailingZeros(lines));
        }
        final int segments = (lines + SEGMENT_LINES - 1) >>> SEGMENT_ORDER;
        final int order = BuddyArena.orderFor((long) segments * Integer.BYTES);
        if (order < arena.order(directory)) {
            arena.shrink(directory, order);
        }
    }

    /** Gives all memory back. */
    void release() {
        if (directory == BuddyArena.NO_LINE) {
            return;
        }
        for (int first = 0; first < lines; first += SEGMENT_LINES) {
            arena.free(segment(first >>> SEGMENT_ORDER));
        }
        arena.free(directory);
        directory = BuddyArena.NO_LINE;
        lines = 0;
    }

    /** Line of the arena where the directory is, {@link BuddyArena#NO_LINE} = none; for tests. */
    int directory() {
        return directory;
    }

    private int segment(int segment) {
        return memory.getInt(directoryOffset + (long) segment * Integer.BYTES);
    }

    private void segment(int segment, int line) {
        memory.putInt(directoryOffset + (long) segment * Integer.BYTES, line);
    }
}
