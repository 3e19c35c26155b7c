package io.kvasir.panama.cuda;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;

/**
 * One reference to a device's primary context. Owns the memory, streams and events made here and
 * closes what is left of them when it is closed.
 *
 * <p>A context is current on a thread: each thread calls {@link #setCurrent()} before it uses this
 * context or anything made here, and before it calls NIXL with memory of this device; without it
 * UCX drops its CUDA transports. Current means current on the operating system's thread: a virtual
 * thread may find itself on another one at any time and is refused, and a task in a pool sets it
 * for itself. Making and closing are serialised by this object's monitor.
 */
public final class CudaContext implements AutoCloseable {
    private final CudaApi api;
    private final CudaDevice device;
    private final long handle;
    private final Set<CudaResource> resources = new LinkedHashSet<>();
    private volatile boolean closed; // written under the monitor

    CudaContext(CudaApi api, CudaDevice device, long handle) {
        this.api = api;
        this.device = device;
        this.handle = handle;
    }

    /**
     * Returns the device of this context.
     *
     * @return never null
     */
    public CudaDevice device() {
        return device;
    }

    CudaApi api() {
        return api;
    }

    long handle() {
        return handle;
    }

    /**
     * Makes this context current on the calling thread, in place of any other. Cheap when it is
     * already.
     *
     * @throws IllegalStateException if this is closed or the thread is a virtual one
     * @throws CudaException if the driver fails
     */
    public void setCurrent() {
        requireOpen();
        if (Thread.currentThread().isVirtual()) {
            throw new IllegalStateException(
                    "a virtual thread keeps no context current: use a platform thread for " + this);
        }
        check(CudaFunction.CTX_SET_CURRENT, api.call(CudaFunction.CTX_SET_CURRENT, handle));
    }

    /**
     * Returns whether this context is current on the calling thread.
     *
     * @return false too if this is closed
     * @throws CudaException if the driver fails
     */
    public boolean isCurrent() {
        if (closed) {
            return false;
        }
        try (Arena arena = Arena.ofConfined()) {
            final MemorySegment out = arena.allocate(JAVA_LONG);
            check(CudaFunction.CTX_GET_CURRENT, api.call(CudaFunction.CTX_GET_CURRENT, out));
            return out.get(JAVA_LONG, 0) == handle;
        }
    }

    /**
     * Returns whether this context's device can reach memory of the peer's device directly.
     *
     * @param peer the other context
     * @return false for two contexts of one device
     * @throws CudaException if the driver fails
     */
    public boolean canAccessPeer(CudaContext peer) {
        return device.canAccessPeer(peer.device);
    }

    /**
     * Lets this context reach memory of the peer; one way. Does nothing if it is on already. This
     * context must be current.
     *
     * @param peer the context that owns the memory
     * @throws IllegalStateException if either is closed or this is not current
     * @throws CudaException if the devices cannot reach each other
     */
    public synchronized void enablePeerAccess(CudaContext peer) {
        requireCurrent();
        peer.requireOpen();
        final int result = api.call(CudaFunction.CTX_ENABLE_PEER_ACCESS, peer.handle, 0);
        if (result != CudaResult.PEER_ACCESS_ALREADY_ENABLED.code()) {
            api.check(
                    CudaFunction.CTX_ENABLE_PEER_ACCESS,
                    result,
                    "device=%d, peer=%d".formatted(device.ordinal(), peer.device.ordinal()));
        }
    }

    /**
     * Waits until the device has done everything asked of it in this context.
     *
     * @throws IllegalStateException if this is closed or not current
     * @throws CudaException if work before it failed
     */
    public void synchronizeAll() {
        requireCurrent();
        check(CudaFunction.CTX_SYNCHRONIZE, api.call(CudaFunction.CTX_SYNCHRONIZE));
    }

    /**
     * Returns how much memory of the device is free.
     *
     * @return bytes, all processes counted
     * @throws IllegalStateException if this is closed or not current
     * @throws CudaException if the driver fails
     */
    public long freeMemoryBytes() {
        requireCurrent();
        try (Arena arena = Arena.ofConfined()) {
            final MemorySegment free = arena.allocate(JAVA_LONG);
            final MemorySegment total = arena.allocate(JAVA_LONG);
            check(CudaFunction.MEM_GET_INFO, api.call(CudaFunction.MEM_GET_INFO, free, total));
            return free.get(JAVA_LONG, 0);
        }
    }

    /**
     * Allocates device memory that NIXL can register and other processes can open. Not cleared. May
     * wait for the device.
     *
     * @param length bytes, at least 1
     * @return the memory, aligned to 256 bytes
     * @throws IllegalArgumentException if the length is not positive
     * @throws IllegalStateException if this is closed or not current
     * @throws CudaException if there is not that much
     */
    public synchronized CudaMemory allocate(long length) {
        requireLength(length);
        requireCurrent();
        try (Arena arena = Arena.ofConfined()) {
            final MemorySegment out = arena.allocate(JAVA_LONG);
            api.check(
                    CudaFunction.MEM_ALLOC,
                    api.call(CudaFunction.MEM_ALLOC, out, length),
                    "device=%d, length=%d".formatted(device.ordinal(), length));
            return add(new CudaMemory(this, out.get(JAVA_LONG, 0), length, CudaMemory.Origin.OWN));
        }
    }

    /**
     * Opens memory of another process on the same machine.
     *
     * @param ipcHandle what {@link CudaMemory#exportHandle()} gave there; 64 bytes, copied
     * @param length bytes, as the other process says: the handle does not tell
     * @return the memory; closing it ends the access, not the memory
     * @throws IllegalArgumentException if the handle has another length or the length is not
     *     positive
     * @throws IllegalStateException if this is closed or not current
     * @throws CudaException if it cannot be opened, in the exporting process itself always
     */
    public synchronized CudaMemory openHandle(byte[] ipcHandle, long length) {
        requireLength(length);
        requireCurrent();
        try (Arena arena = Arena.ofConfined()) {
            final MemorySegment out = arena.allocate(JAVA_LONG);
            check(
                    CudaFunction.IPC_OPEN_MEM_HANDLE,
                    api.call(
                            CudaFunction.IPC_OPEN_MEM_HANDLE,
                            out,
                            IpcHandleDescriptor.allocate(arena, ipcHandle),
                            CudaConstants.CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
            return add(
                    new CudaMemory(this, out.get(JAVA_LONG, 0), length, CudaMemory.Origin.OPENED));
        }
    }

    /**
     * Page-locks host memory, so that copies run at full speed and beside other work.
     *
     * @param memory native memory, whole; it must stay allocated until the result is closed
     * @return the registration
     * @throws IllegalArgumentException if it is heap memory or empty
     * @throws IllegalStateException if this is closed or not current, or the memory is freed
     * @throws CudaException if it is registered already or cannot be locked
     */
    public synchronized CudaHostMemory register(MemorySegment memory) {
        HostMemory.requireNative(memory);
        requireLength(memory.byteSize());
        requireCurrent();
        api.check(
                CudaFunction.MEM_HOST_REGISTER,
                api.call(
                        CudaFunction.MEM_HOST_REGISTER,
                        memory.address(),
                        memory.byteSize(),
                        CudaConstants.CU_MEMHOSTREGISTER_PORTABLE),
                "host=0x%x, length=%d".formatted(memory.address(), memory.byteSize()));
        return add(new CudaHostMemory(this, memory));
    }

    /**
     * Makes a stream that does not wait for the default stream.
     *
     * @return the stream
     * @throws IllegalStateException if this is closed or not current
     * @throws CudaException if the driver fails
     */
    public synchronized CudaStream createStream() {
        requireCurrent();
        return add(
                new CudaStream(
                        this,
                        api.longOf(
                                CudaFunction.STREAM_CREATE,
                                CudaConstants.CU_STREAM_NON_BLOCKING,
                                subject())));
    }

    /**
     * Makes an event.
     *
     * @param timing whether it takes a time stamp when it happens; without is cheaper
     * @return the event
     * @throws IllegalStateException if this is closed or not current
     * @throws CudaException if the driver fails
     */
    public synchronized CudaEvent createEvent(boolean timing) {
        requireCurrent();
        final int flags =
                timing ? CudaConstants.CU_EVENT_DEFAULT : CudaConstants.CU_EVENT_DISABLE_TIMING;
        return add(new CudaEvent(this, api.longOf(CudaFunction.EVENT_CREATE, flags, subject())));
    }

    private <R extends CudaResource> R add(R resource) {
        resources.add(resource);
        return resource;
    }

    private static void requireLength(long length) {
        if (length < 1) {
            throw new IllegalArgumentException("length=" + length + " is not positive");
        }
    }

    private void requireOpen() {
        if (closed) {
            throw new IllegalStateException(this + " is closed");
        }
    }

    /** What is made goes to the current context, so a wrong one would take it in silence. */
    private void requireCurrent() {
        requireOpen();
        if (!isCurrent()) {
            throw new IllegalStateException(
                    "%s is not current on thread %s: call setCurrent() there first"
                            .formatted(this, Thread.currentThread().getName()));
        }
    }

    private void check(CudaFunction function, int result) {
        api.check(function, result, subject());
    }

    private String subject() {
        return "device=" + device.ordinal();
    }

    /** Closes one of this context's resources, with the context current meanwhile. */
    synchronized void close(CudaResource resource) {
        if (!resource.markClosed()) {
            return;
        }
        resources.remove(resource);
        check(CudaFunction.CTX_PUSH_CURRENT, api.call(CudaFunction.CTX_PUSH_CURRENT, handle));
        try (Arena arena = Arena.ofConfined()) {
            final MemorySegment popped = arena.allocate(JAVA_LONG);
            try {
                resource.release();
            } finally {
                // the resource's own failure is the one to tell
                api.call(CudaFunction.CTX_POP_CURRENT, popped);
            }
        }
    }

    /**
     * Closes what was made here, newest first, and gives the context back. On the threads where it
     * is current it stays so: they must make another one current. Does nothing the second time.
     *
     * @throws CudaException the first failure, the others suppressed in it; everything is given up
     *     all the same
     */
    @Override
    public synchronized void close() {
        if (closed) {
            return;
        }
        final List<CudaException> failures = new ArrayList<>();
        for (CudaResource resource : new ArrayList<>(resources).reversed()) {
            attempt(resource::close, failures);
        }
        closed = true;
        attempt(device::releasePrimaryContext, failures);
        if (!failures.isEmpty()) {
            final CudaException first = failures.removeFirst();
            failures.forEach(first::addSuppressed);
            throw first;
        }
    }

    private static void attempt(Runnable step, List<CudaException> failures) {
        try {
            step.run();
        } catch (CudaException e) {
            failures.add(e);
        }
    }

    @Override
    public String toString() {
        return "CudaContext[device=" + device.ordinal() + "]";
    }
}
