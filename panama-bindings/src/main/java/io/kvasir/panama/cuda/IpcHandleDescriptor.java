package io.kvasir.panama.cuda;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;

import java.lang.foreign.Arena;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;

/**
 * Layout of the C struct {@code CUipcMemHandle}: a name for device memory that other processes can
 * open. Passed by value.
 *
 * <pre>
 *   0                                                              64
 *   +----------------------------------------------------------------+
 *   | reserved: bytes that only the driver reads                     |
 *   +----------------------------------------------------------------+
 * </pre>
 */
final class IpcHandleDescriptor {
    static final int LENGTH = 64;
    static final StructLayout LAYOUT =
            MemoryLayout.structLayout(
                            MemoryLayout.sequenceLayout(LENGTH, JAVA_BYTE).withName("reserved"))
                    .withName("CUipcMemHandle");

    private IpcHandleDescriptor() {}

    /**
     * Returns the struct with these bytes.
     *
     * @throws IllegalArgumentException if they are not {@link #LENGTH} bytes
     */
    static MemorySegment allocate(Arena arena, byte[] bytes) {
        if (bytes.length != LENGTH) {
            throw new IllegalArgumentException(
                    "IPC handle has %d bytes, not %d".formatted(bytes.length, LENGTH));
        }
        return arena.allocate(LAYOUT).copyFrom(MemorySegment.ofArray(bytes));
    }
}
