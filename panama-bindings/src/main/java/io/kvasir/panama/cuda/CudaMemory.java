package io.kvasir.panama.cuda;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Objects;

/**
 * A run of device memory, own or opened from another process. Safe for any thread that has the
 * context current; see {@link CudaContext} for that and for closing.
 *
 * <p>Close it after the last stream, NIXL registration and peer have done with it: freed device
 * memory is given to the next allocation.
 */
public final class CudaMemory extends CudaResource {
    /** The owner of memory, which frees it. */
    enum Origin {
        /** Allocated here: freed when closed. */
        OWN,
        /** Allocated by another process: only let go when closed. */
        OPENED
    }

    private final long address;
    private final long length;
    private final Origin origin;

    CudaMemory(CudaContext context, long address, long length, Origin origin) {
        super(context);
        this.address = address;
        this.length = length;
        this.origin = origin;
    }

    /**
     * Returns where the memory starts, for a transfer descriptor. Java cannot read it.
     *
     * @return an address of the device
     * @throws IllegalStateException if this is closed
     */
    public long address() {
        requireOpen();
        return address;
    }

    /**
     * Returns how long the memory is.
     *
     * @return bytes
     */
    public long length() {
        return length;
    }

    /**
     * Returns the address of a part, checked.
     *
     * @throws IllegalStateException if this is closed
     * @throws IndexOutOfBoundsException if the part is not inside
     */
    long address(long offset, long partLength) {
        requireOpen();
        Objects.checkFromIndexSize(offset, partLength, length);
        return address + offset;
    }

    /**
     * Sets every byte of a part. May return before the device has done it; streams made by {@link
     * CudaContext#createStream()} do not wait for it.
     *
     * @param offset bytes from the start
     * @param partLength bytes
     * @param value what each becomes
     * @throws IllegalStateException if this is closed
     * @throws IndexOutOfBoundsException if the part is not inside
     * @throws CudaException if the driver fails
     */
    public void fill(long offset, long partLength, byte value) {
        final long start = address(offset, partLength);
        check(CudaFunction.MEMSET_D8, api().call(CudaFunction.MEMSET_D8, start, value, partLength));
    }

    /**
     * Makes every later synchronous operation on this memory finish before it returns. Needed where
     * a NIC or another process reads the memory behind CUDA's back.
     *
     * @throws IllegalStateException if this is closed
     * @throws CudaException if the driver fails
     */
    public void syncMemoryOperations() {
        final long start = address();
        try (Arena arena = Arena.ofConfined()) {
            check(
                    CudaFunction.POINTER_SET_ATTRIBUTE,
                    api().call(
                                    CudaFunction.POINTER_SET_ATTRIBUTE,
                                    arena.allocateFrom(JAVA_INT, 1),
                                    CudaConstants.CU_POINTER_ATTRIBUTE_SYNC_MEMOPS,
                                    start));
        }
    }

    /**
     * Asks the driver which device holds the memory.
     *
     * @return its ordinal
     * @throws IllegalStateException if this is closed
     * @throws CudaException if the driver fails
     */
    public int deviceOrdinal() {
        final long start = address();
        try (Arena arena = Arena.ofConfined()) {
            final MemorySegment out = arena.allocate(JAVA_INT);
            check(
                    CudaFunction.POINTER_GET_ATTRIBUTE,
                    api().call(
                                    CudaFunction.POINTER_GET_ATTRIBUTE,
                                    out,
                                    CudaConstants.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                    start));
            return out.get(JAVA_INT, 0);
        }
    }

    /**
     * Asks the driver how much was allocated at this address; for opened memory what the other
     * process allocated.
     *
     * @return bytes
     * @throws IllegalStateException if this is closed
     * @throws CudaException if the driver fails
     */
    public long allocatedLength() {
        final long start = address();
        try (Arena arena = Arena.ofConfined()) {
            final MemorySegment base = arena.allocate(JAVA_LONG);
            final MemorySegment size = arena.allocate(JAVA_LONG);
            check(
                    CudaFunction.MEM_GET_ADDRESS_RANGE,
                    api().call(CudaFunction.MEM_GET_ADDRESS_RANGE, base, size, start));
            return size.get(JAVA_LONG, 0);
        }
    }

    /**
     * Names this memory for other processes on this machine.
     *
     * @return 64 bytes for {@link CudaContext#openHandle}; the length is to be sent beside them
     * @throws IllegalStateException if this is closed
     * @throws CudaException if this memory cannot be shared, such as opened memory
     */
    public byte[] exportHandle() {
        final long start = address();
        try (Arena arena = Arena.ofConfined()) {
            final MemorySegment out = arena.allocate(IpcHandleDescriptor.LAYOUT);
            check(
                    CudaFunction.IPC_GET_MEM_HANDLE,
                    api().call(CudaFunction.IPC_GET_MEM_HANDLE, out, start));
            return out.toArray(JAVA_BYTE);
        }
    }

    @Override
    void release() {
        final CudaFunction function =
                origin == Origin.OWN ? CudaFunction.MEM_FREE : CudaFunction.IPC_CLOSE_MEM_HANDLE;
        check(function, api().call(function, address));
    }

    private void check(CudaFunction function, int result) {
        if (result != 0) {
            throw api().failure(function, result, toString());
        }
    }

    @Override
    public String toString() {
        return "CudaMemory[device=%d, address=0x%x, length=%d]"
                .formatted(context().device().ordinal(), address, length);
    }
}
