package io.kvasir.core.memory;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;

/**
 * A small, fixed number of longs on the Java heap that any thread reads and adds to: gauges, which
 * must stay readable when everything off-heap has been given back. Offsets are bytes from the
 * start, as in {@link OffHeap}, and multiples of 8; one out of range is an {@link
 * IndexOutOfBoundsException}, always.
 */
public final class SharedCells {
    private static final VarHandle CELL =
            MethodHandles.arrayElementVarHandle(long[].class).withInvokeExactBehavior();

    private final long[] cells;

    /**
     * Makes zeros.
     *
     * @param length bytes, a multiple of 8
     */
    public SharedCells(long length) {
        cells = new long[Math.toIntExact(length / Long.BYTES)];
    }

    /** Length in bytes. */
    public long length() {
        return (long) cells.length * Long.BYTES;
    }

    /** Reads a long. */
    public long getLong(long offset) {
        return cells[index(offset)];
    }

    /** Reads a long in acquire mode. */
    public long getLongAcquire(long offset) {
        return (long) CELL.getAcquire(cells, index(offset));
    }

    /** Writes a long in release mode. */
    public void putLongRelease(long offset, long value) {
        CELL.setRelease(cells, index(offset), value);
    }

    /** Adds to a long atomically, in volatile mode; returns the value before. */
    public long getAndAddLong(long offset, long delta) {
        return (long) CELL.getAndAdd(cells, index(offset), delta);
    }

    /** Reads neighbouring longs into an array; each by itself is whole. */
    public void getLongs(long offset, long[] out, int to, int count) {
        System.arraycopy(cells, index(offset), out, to, count);
    }

    private static int index(long offset) {
        return (int) (offset >> 3);
    }
}
