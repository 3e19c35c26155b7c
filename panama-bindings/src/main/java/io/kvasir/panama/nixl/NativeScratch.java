package io.kvasir.panama.nixl;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * Native memory for arguments that are copied at each call; grows by doubling, what it outgrew is
 * given back with it. One thread.
 */
final class NativeScratch implements AutoCloseable {
    private static final int FEW = 8; // copied faster one by one than by a call

    private final Arena arena = Arena.ofShared(); // closed with its owner
    private MemorySegment memory;

    NativeScratch(long length) {
        memory = arena.allocate(length, Long.BYTES);
    }

    /** Address of at least so many bytes; what stood there before may be overwritten. */
    long reserve(long length) {
        if (memory.byteSize() < length) {
            memory = arena.allocate(Math.max(length, 2 * memory.byteSize()), Long.BYTES);
        }
        return memory.address();
    }

    /** Copies numbers from {@code first} on to {@code at} bytes from the start. */
    void put(long at, int[] values, int first, int count) {
        if (count <= FEW) {
            for (int i = 0; i < count; i++) {
                memory.set(ValueLayout.JAVA_INT, at + (long) i * Integer.BYTES, values[first + i]);
            }
            return;
        }
        MemorySegment.copy(values, first, memory, ValueLayout.JAVA_INT, at, count);
    }

    /** Copies bytes to the start. */
    void put(byte[] bytes) {
        MemorySegment.copy(bytes, 0, memory, ValueLayout.JAVA_BYTE, 0, bytes.length);
    }

    long getLong(long at) {
        return memory.get(ValueLayout.JAVA_LONG, at);
    }

    @Override
    public void close() {
        arena.close();
    }
}
