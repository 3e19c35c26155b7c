package io.kvasir.bench.gpu;

import io.kvasir.panama.cuda.CudaMemory;
import io.kvasir.panama.nixl.NixlMemory;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * A pool in GPU memory that other processes can open, with as much host memory beside it through
 * which its bytes are written and checked.
 */
final class DevicePool implements Pool {
    private final Gpu gpu;
    private final CudaMemory device;
    private final Arena arena = Arena.ofConfined();
    private final MemorySegment host;

    DevicePool(Gpu gpu, long length) {
        this.gpu = gpu;
        this.host = arena.allocate(length, HostPool.PAGE);
        this.device = gpu.context().allocate(length);
        device.syncMemoryOperations();
    }

    @Override
    public NixlMemory memory() {
        return NixlMemory.VRAM;
    }

    @Override
    public PoolRange range() {
        return new PoolRange(device.address(), device.length(), gpu.context().device().ordinal());
    }

    @Override
    public void fill(Cell cell, long seed) {
        BytePattern.fill(host, cell, seed);
        gpu.stream().copyToDevice(host, 0, device, 0, cell.bytes());
        gpu.stream().await();
    }

    @Override
    public void verify(Cell cell, long seed) {
        host.asSlice(0, cell.bytes()).fill((byte) 0);
        gpu.stream().copyToHost(device, 0, host, 0, cell.bytes());
        gpu.stream().await();
        final long wrong = BytePattern.firstWrong(host, cell, seed);
        if (wrong >= 0) {
            throw Pool.wrongBytes(memory(), cell, wrong);
        }
    }

    @Override
    public void close() {
        device.close();
        arena.close();
    }
}
