package io.kvasir.nixl.loopback;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;

/**
 * Ordered reads and writes of memory that processes share; the suffix names the order. The core's
 * {@code OffHeap} does the same for the index, whose memory it allocates and frees; this module
 * knows nothing of the core, and needs the bounds checks of a segment for what peers write.
 */
final class OrderedMemory {
    private static final VarHandle LONG =
            ValueLayout.JAVA_LONG.varHandle().withInvokeExactBehavior();
    private static final VarHandle INT = ValueLayout.JAVA_INT.varHandle().withInvokeExactBehavior();

    private OrderedMemory() {}

    static long getLong(MemorySegment memory, long offset) {
        return (long) LONG.get(memory, offset);
    }

    static long getLongAcquire(MemorySegment memory, long offset) {
        return (long) LONG.getAcquire(memory, offset);
    }

    static long getLongOpaque(MemorySegment memory, long offset) {
        return (long) LONG.getOpaque(memory, offset);
    }

    static void setLong(MemorySegment memory, long offset, long value) {
        LONG.set(memory, offset, value);
    }

    static void setLongOpaque(MemorySegment memory, long offset, long value) {
        LONG.setOpaque(memory, offset, value);
    }

    static void setLongRelease(MemorySegment memory, long offset, long value) {
        LONG.setRelease(memory, offset, value);
    }

    static boolean compareAndSetLong(MemorySegment memory, long offset, long expected, long value) {
        return (boolean) LONG.compareAndSet(memory, offset, expected, value);
    }

    static int getInt(MemorySegment memory, long offset) {
        return (int) INT.get(memory, offset);
    }

    static int getIntAcquire(MemorySegment memory, long offset) {
        return (int) INT.getAcquire(memory, offset);
    }

    static void setInt(MemorySegment memory, long offset, int value) {
        INT.set(memory, offset, value);
    }

    static void setIntRelease(MemorySegment memory, long offset, int value) {
        INT.setRelease(memory, offset, value);
    }

    static boolean compareAndSetInt(MemorySegment memory, long offset, int expected, int value) {
        return (boolean) INT.compareAndSet(memory, offset, expected, value);
    }
}
