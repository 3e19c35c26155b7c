package io.kvasir.bench.gpu;

import io.kvasir.panama.nixl.NixlMemory;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/** A pool in host memory, aligned to a page. */
final class HostPool implements Pool {
    static final long PAGE = 4096;

    private final Arena arena = Arena.ofConfined();
    private final MemorySegment bytes;

    HostPool(long length) {
        bytes = arena.allocate(length, PAGE);
    }

    @Override
    public NixlMemory memory() {
        return NixlMemory.DRAM;
    }

    @Override
    public PoolRange range() {
        return new PoolRange(bytes.address(), bytes.byteSize(), 0);
    }

    @Override
    public void fill(Cell cell, long seed) {
        BytePattern.fill(bytes, cell, seed);
    }

    @Override
    public void verify(Cell cell, long seed) {
        final long wrong = BytePattern.firstWrong(bytes, cell, seed);
        if (wrong >= 0) {
            throw Pool.wrongBytes(memory(), cell, wrong);
        }
    }

    @Override
    public void close() {
        arena.close();
    }
}
