package io.kvasir.panama.cuda;

import static java.lang.foreign.ValueLayout.JAVA_FLOAT;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * A mark in a stream: it happens when the work queued before it is done. Safe for any thread that
 * has the context current, see {@link CudaContext}.
 *
 * <p>A transfer of device memory is posted only after the event that follows its producer: NIXL
 * does not know streams.
 */
public final class CudaEvent extends CudaResource {
    private final long handle;

    CudaEvent(CudaContext context, long handle) {
        super(context);
        this.handle = handle;
    }

    long handle() {
        requireOpen();
        return handle;
    }

    /**
     * Puts the mark after the stream's work so far; an earlier mark is forgotten.
     *
     * @param stream of the same context
     * @throws IllegalStateException if the event or the stream is closed
     * @throws CudaException if the stream belongs to another context, or the driver fails
     */
    public void record(CudaStream stream) {
        check(CudaFunction.EVENT_RECORD, api().eventRecord(handle(), stream.handle()));
    }

    /**
     * Asks whether the event has happened. Does not wait.
     *
     * @return whether it has; true too if it was never recorded
     * @throws IllegalStateException if the event is closed
     * @throws CudaException if the work before it failed
     */
    public boolean isDone() {
        final int result = api().eventQuery(handle());
        if (result == CudaResult.NOT_READY.code()) {
            return false;
        }
        check(CudaFunction.EVENT_QUERY, result);
        return true;
    }

    /**
     * Waits until the event has happened. Holds its thread, a virtual one too.
     *
     * @throws IllegalStateException if the event is closed
     * @throws CudaException if the work before it failed
     */
    public void await() {
        check(CudaFunction.EVENT_SYNCHRONIZE, api().call(CudaFunction.EVENT_SYNCHRONIZE, handle()));
    }

    /**
     * Returns the time between two events on the device. Both must have happened and both must have
     * been made with timing.
     *
     * @param start the earlier event
     * @return milliseconds, to about half a microsecond
     * @throws IllegalStateException if either is closed
     * @throws CudaException {@code NOT_READY} if either is still to happen, {@code INVALID_HANDLE}
     *     if either takes no time or was never recorded
     */
    public float elapsedMillisSince(CudaEvent start) {
        try (Arena arena = Arena.ofConfined()) {
            final MemorySegment out = arena.allocate(JAVA_FLOAT);
            check(
                    CudaFunction.EVENT_ELAPSED_TIME,
                    api().call(CudaFunction.EVENT_ELAPSED_TIME, out, start.handle(), handle()));
            return out.get(JAVA_FLOAT, 0);
        }
    }

    private void check(CudaFunction function, int result) {
        if (result != 0) {
            throw api().failure(function, result, toString());
        }
    }

    @Override
    void release() {
        check(CudaFunction.EVENT_DESTROY, api().call(CudaFunction.EVENT_DESTROY, handle));
    }

    @Override
    public String toString() {
        return "CudaEvent[device=%d, 0x%x]".formatted(context().device().ordinal(), handle);
    }
}
