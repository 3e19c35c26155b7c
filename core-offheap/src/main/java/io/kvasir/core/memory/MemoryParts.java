package io.kvasir.core.memory;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Objects;

/**
 * A range of memory of which each part of 1 MiB is taken, and zeroed, when it is touched first: for
 * processes that may not map memory, where a large allocation would be written as a whole. Any
 * thread.
 */
final class MemoryParts {
    private static final int SHIFT = 20;

    /** Bytes of a part. */
    static final long LENGTH = 1L << SHIFT;

    private final Arena arena;
    private final long length;

    /** Segments are immutable: a thread that sees one without the lock sees all of it. */
    private final MemorySegment[] parts;

    MemoryParts(Arena arena, long length) {
        this.arena = arena;
        this.length = length;
        this.parts = new MemorySegment[Math.toIntExact((length + LENGTH - 1) >> SHIFT)];
    }

    /** The part in which an offset lies. */
    MemorySegment at(long offset) {
        final MemorySegment part = parts[Objects.checkIndex((int) (offset >> SHIFT), parts.length)];
        return part == null ? take((int) (offset >> SHIFT)) : part;
    }

    /** Where an offset is in its part. */
    static long offset(long offset) {
        return offset & (LENGTH - 1);
    }

    /** Bytes from an offset to the end of its part. */
    static long left(long offset) {
        return LENGTH - offset(offset);
    }

    private synchronized MemorySegment take(int part) {
        if (parts[part] == null) {
            final long left = length - ((long) part << SHIFT);
            parts[part] = arena.allocate(Math.min(LENGTH, left), OffHeap.ALIGNMENT);
        }
        return parts[part];
    }

    /** Parts taken so far; for tests. */
    synchronized int taken() {
        int taken = 0;
        for (MemorySegment part : parts) {
            taken += part == null ? 0 : 1;
        }
        return taken;
    }
}
