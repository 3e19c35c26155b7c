package io.kvasir.panama.cuda;

import java.lang.foreign.MemorySegment;
import java.util.Objects;

/**
 * Checks of host memory before its address goes to the driver. Allocates nothing if all is well.
 */
final class HostMemory {
    private HostMemory() {}

    /**
     * Checks that the memory is native and that this thread may use it now.
     *
     * @throws IllegalArgumentException if it is heap memory
     * @throws IllegalStateException if it is freed
     * @throws WrongThreadException if it belongs to another thread
     */
    static void requireNative(MemorySegment memory) {
        if (!memory.isNative()) {
            throw new IllegalArgumentException("heap memory has no address: " + memory);
        }
        if (!memory.scope().isAlive()) {
            throw new IllegalStateException("host memory is freed: " + memory);
        }
        if (!memory.isAccessibleBy(Thread.currentThread())) {
            throw new WrongThreadException("host memory of another thread: " + memory);
        }
    }

    /**
     * Returns the address of a part of the memory.
     *
     * @throws IndexOutOfBoundsException if the part is not inside it
     */
    static long address(MemorySegment memory, long offset, long length) {
        requireNative(memory);
        Objects.checkFromIndexSize(offset, length, memory.byteSize());
        return memory.address() + offset;
    }
}
