package io.kvasir.panama.cuda;

import java.lang.foreign.MemorySegment;

/**
 * Host memory that is page-locked until this is closed. Close it before the memory's arena: the
 * driver keeps using the pages by address, and an arena that unmaps them first takes them away
 * under it.
 */
public final class CudaHostMemory extends CudaResource {
    private final MemorySegment memory;

    CudaHostMemory(CudaContext context, MemorySegment memory) {
        super(context);
        this.memory = memory;
    }

    /**
     * Returns the memory.
     *
     * @return as it was registered
     * @throws IllegalStateException if this is closed
     */
    public MemorySegment memory() {
        requireOpen();
        return memory;
    }

    @Override
    void release() {
        final int result = api().call(CudaFunction.MEM_HOST_UNREGISTER, memory.address());
        if (result != 0) {
            throw api().failure(CudaFunction.MEM_HOST_UNREGISTER, result, toString());
        }
    }

    @Override
    public String toString() {
        return "CudaHostMemory[address=0x%x, length=%d]"
                .formatted(memory.address(), memory.byteSize());
    }
}
