package io.kvasir.core.memory;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;

/**
 * One zeroed, bounded piece of memory outside the Java heap and the ways to read and write it.
 *
 * <p>The only class that touches a {@link MemorySegment}: an offset beyond the end is an {@link
 * IndexOutOfBoundsException}, an access after {@link #close()} an {@link IllegalStateException},
 * never a dead JVM. The suffix names the memory order in {@link VarHandle}'s words; no suffix means
 * plain. Offsets are bytes from the start and must be a multiple of the value's length. Any thread
 * may call; who writes what is the business of the owner.
 */
public final class OffHeap implements AutoCloseable {
    /**
     * Alignment of the first byte: two cache lines, so that adjacent-line prefetch stays inside.
     */
    public static final int ALIGNMENT = 128;

    private static final VarHandle LONG =
            ValueLayout.JAVA_LONG.varHandle().withInvokeExactBehavior();
    private static final VarHandle INT = ValueLayout.JAVA_INT.varHandle().withInvokeExactBehavior();

    private final Arena arena;
    private final MemorySegment segment;

    private OffHeap(Arena arena, MemorySegment segment) {
        this.arena = arena;
        this.segment = segment;
    }

    /**
     * Allocates zeroed memory.
     *
     * @param length bytes, at least 1
     * @throws IllegalArgumentException if {@code length} is not positive
     * @throws OutOfMemoryError if the operating system refuses
     */
    public static OffHeap allocate(long length) {
        if (length <= 0) {
            throw new IllegalArgumentException("length must be positive: length=" + length);
        }
        final Arena arena = Arena.ofShared();
        try {
            return new OffHeap(arena, arena.allocate(length, ALIGNMENT));
        } catch (Throwable t) {
            arena.close();
            throw t;
        }
    }

    /** Length in bytes. */
    public long length() {
        return segment.byteSize();
    }

    /** Reads a long. */
    public long getLong(long offset) {
        return (long) LONG.get(segment, offset);
    }

    /** Reads a long in opaque mode. */
    public long getLongOpaque(long offset) {
        return (long) LONG.getOpaque(segment, offset);
    }

    /** Reads a long in acquire mode. */
    public long getLongAcquire(long offset) {
        return (long) LONG.getAcquire(segment, offset);
    }

    /** Reads longs that lie behind each other into an array; each by itself is whole. */
    public void getLongs(long offset, long[] out, int to, int count) {
        MemorySegment.copy(segment, ValueLayout.JAVA_LONG, offset, out, to, count);
    }

    /** Writes a long. */
    public void putLong(long offset, long value) {
        LONG.set(segment, offset, value);
    }

    /** Writes a long in opaque mode. */
    public void putLongOpaque(long offset, long value) {
        LONG.setOpaque(segment, offset, value);
    }

    /** Writes a long in release mode. */
    public void putLongRelease(long offset, long value) {
        LONG.setRelease(segment, offset, value);
    }

    /** Adds to a long atomically, in volatile mode; returns the value before. */
    public long getAndAddLong(long offset, long delta) {
        return (long) LONG.getAndAdd(segment, offset, delta);
    }

    /** Reads an int. */
    public int getInt(long offset) {
        return (int) INT.get(segment, offset);
    }

    /** Reads an int in opaque mode. */
    public int getIntOpaque(long offset) {
        return (int) INT.getOpaque(segment, offset);
    }

    /** Reads an int in acquire mode. */
    public int getIntAcquire(long offset) {
        return (int) INT.getAcquire(segment, offset);
    }

    /** Writes an int. */
    public void putInt(long offset, int value) {
        INT.set(segment, offset, value);
    }

    /** Writes an int in opaque mode. */
    public void putIntOpaque(long offset, int value) {
        INT.setOpaque(segment, offset, value);
    }

    /** Writes an int in release mode. */
    public void putIntRelease(long offset, int value) {
        INT.setRelease(segment, offset, value);
    }

    /** Gives the memory back; a second call does nothing. */
    @Override
    public void close() {
        if (arena.scope().isAlive()) {
            arena.close();
        }
    }
}
