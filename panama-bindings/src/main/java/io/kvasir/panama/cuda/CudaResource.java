package io.kvasir.panama.cuda;

/**
 * Something that belongs to a context and ends with it at the latest. Closing is safe from any
 * thread and more than once; it must not run while another thread is inside a call of the same
 * object, nor while a stream still uses it.
 */
abstract sealed class CudaResource implements AutoCloseable
        permits CudaMemory, CudaHostMemory, CudaStream, CudaEvent {
    private final CudaContext context;
    private volatile boolean closed;

    CudaResource(CudaContext context) {
        this.context = context;
    }

    /**
     * Returns the context that this belongs to.
     *
     * @return never null; it may be closed already, and this with it
     */
    public final CudaContext context() {
        return context;
    }

    final CudaApi api() {
        return context.api();
    }

    final void requireOpen() {
        if (closed) {
            throw new IllegalStateException(this + " is closed");
        }
    }

    /** Marks this as closed; returns whether it was open. Under the context's monitor. */
    final boolean markClosed() {
        final boolean wasOpen = !closed;
        closed = true;
        return wasOpen;
    }

    /** Gives the native handle back; the context is current. Called once. */
    abstract void release();

    /**
     * Gives it back to the driver, whichever context is current on the calling thread. Does nothing
     * the second time.
     *
     * @throws CudaException if the driver fails; it is given up all the same
     */
    @Override
    public final void close() {
        context.close(this);
    }
}
