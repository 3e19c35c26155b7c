package io.kvasir.panama.cuda;

import java.lang.foreign.MemorySegment;

/**
 * A queue of work of one device, done in order. Copies only enter the queue: both sides must stay
 * allocated and unchanged until {@link #isDone()} or {@link #await()}. Copies to and from host
 * memory that is not registered may wait and go through the driver's own buffers.
 *
 * <p>Safe for any thread that has the context current, see {@link CudaContext}; what two threads
 * queue at once may take either order. Copies, {@link #isDone()} and {@link CudaEvent#record}
 * allocate nothing.
 */
public final class CudaStream extends CudaResource {
    private final long handle;

    CudaStream(CudaContext context, long handle) {
        super(context);
        this.handle = handle;
    }

    long handle() {
        requireOpen();
        return handle;
    }

    /**
     * Queues a copy from the host to the device.
     *
     * @param host native memory
     * @param hostOffset bytes from its start
     * @param device device memory
     * @param deviceOffset bytes from its start
     * @param length bytes
     * @throws IllegalArgumentException if {@code host} is heap memory
     * @throws IllegalStateException if the stream or a side is closed
     * @throws IndexOutOfBoundsException if a part is not inside its memory
     * @throws CudaException if the driver refuses, or work before it failed
     */
    public void copyToDevice(
            MemorySegment host,
            long hostOffset,
            CudaMemory device,
            long deviceOffset,
            long length) {
        final long from = HostMemory.address(host, hostOffset, length);
        final long to = device.address(deviceOffset, length);
        final int result = api().memcpyHtoDAsync(to, from, length, handle());
        if (result != 0) {
            throw failure(CudaFunction.MEMCPY_H_TO_D_ASYNC, result, to, from, length);
        }
    }

    /**
     * Queues a copy from the device to the host.
     *
     * @param device device memory
     * @param deviceOffset bytes from its start
     * @param host native memory that may be written
     * @param hostOffset bytes from its start
     * @param length bytes
     * @throws IllegalArgumentException if {@code host} is heap memory or read-only
     * @throws IllegalStateException if the stream or a side is closed
     * @throws IndexOutOfBoundsException if a part is not inside its memory
     * @throws CudaException if the driver refuses, or work before it failed
     */
    public void copyToHost(
            CudaMemory device,
            long deviceOffset,
            MemorySegment host,
            long hostOffset,
            long length) {
        if (host.isReadOnly()) {
            throw new IllegalArgumentException("host memory is read-only: " + host);
        }
        final long from = device.address(deviceOffset, length);
        final long to = HostMemory.address(host, hostOffset, length);
        final int result = api().memcpyDtoHAsync(to, from, length, handle());
        if (result != 0) {
            throw failure(CudaFunction.MEMCPY_D_TO_H_ASYNC, result, to, from, length);
        }
    }

    /**
     * Queues a copy between two addresses of device memory, of one device or of two.
     *
     * @param source where the bytes are
     * @param sourceOffset bytes from its start
     * @param target where they go; parts that overlap give any mixture
     * @param targetOffset bytes from its start
     * @param length bytes
     * @throws IllegalStateException if the stream or a side is closed
     * @throws IndexOutOfBoundsException if a part is not inside its memory
     * @throws CudaException if the driver refuses, or work before it failed
     */
    public void copyOnDevice(
            CudaMemory source,
            long sourceOffset,
            CudaMemory target,
            long targetOffset,
            long length) {
        final long from = source.address(sourceOffset, length);
        final long to = target.address(targetOffset, length);
        final long sourceContext = source.context().handle();
        final long targetContext = target.context().handle();
        if (sourceContext == targetContext) {
            final int result = api().memcpyDtoDAsync(to, from, length, handle());
            if (result != 0) {
                throw failure(CudaFunction.MEMCPY_D_TO_D_ASYNC, result, to, from, length);
            }
            return;
        }
        final int result =
                api().call(
                                CudaFunction.MEMCPY_PEER_ASYNC,
                                to,
                                targetContext,
                                from,
                                sourceContext,
                                length,
                                handle());
        if (result != 0) {
            throw failure(CudaFunction.MEMCPY_PEER_ASYNC, result, to, from, length);
        }
    }

    /**
     * Queues that every byte of a part is set.
     *
     * @param device device memory
     * @param offset bytes from its start
     * @param length bytes
     * @param value what each becomes
     * @throws IllegalStateException if the stream or the memory is closed
     * @throws IndexOutOfBoundsException if the part is not inside
     * @throws CudaException if the driver refuses, or work before it failed
     */
    public void fill(CudaMemory device, long offset, long length, byte value) {
        final long to = device.address(offset, length);
        final int result = api().call(CudaFunction.MEMSET_D8_ASYNC, to, value, length, handle());
        if (result != 0) {
            throw api().failure(
                            CudaFunction.MEMSET_D8_ASYNC,
                            result,
                            "to=0x%x, length=%d".formatted(to, length));
        }
    }

    /**
     * Makes later work of this stream wait until the event has happened; does not wait itself.
     *
     * @param event recorded in any stream
     * @throws IllegalStateException if the stream or the event is closed
     * @throws CudaException if the driver fails
     */
    public void waitFor(CudaEvent event) {
        check(
                CudaFunction.STREAM_WAIT_EVENT,
                api().call(CudaFunction.STREAM_WAIT_EVENT, handle(), event.handle(), 0));
    }

    /**
     * Asks whether all work queued so far is done. Does not wait.
     *
     * @return whether it is
     * @throws IllegalStateException if the stream is closed
     * @throws CudaException if any of it failed
     */
    public boolean isDone() {
        final int result = api().streamQuery(handle());
        if (result == CudaResult.NOT_READY.code()) {
            return false;
        }
        check(CudaFunction.STREAM_QUERY, result);
        return true;
    }

    /**
     * Waits until all work queued so far is done. Holds its thread, a virtual one too.
     *
     * @throws IllegalStateException if the stream is closed
     * @throws CudaException if any of it failed
     */
    public void await() {
        check(
                CudaFunction.STREAM_SYNCHRONIZE,
                api().call(CudaFunction.STREAM_SYNCHRONIZE, handle()));
    }

    private CudaException failure(
            CudaFunction function, int result, long to, long from, long length) {
        return api().failure(
                        function,
                        result,
                        "to=0x%x, from=0x%x, length=%d".formatted(to, from, length));
    }

    private void check(CudaFunction function, int result) {
        if (result != 0) {
            throw api().failure(function, result, toString());
        }
    }

    @Override
    void release() {
        check(CudaFunction.STREAM_DESTROY, api().call(CudaFunction.STREAM_DESTROY, handle));
    }

    @Override
    public String toString() {
        return "CudaStream[device=%d, 0x%x]".formatted(context().device().ordinal(), handle);
    }
}
