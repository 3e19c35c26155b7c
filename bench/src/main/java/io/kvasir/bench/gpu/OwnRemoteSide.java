package io.kvasir.bench.gpu;

import io.kvasir.panama.nixl.NixlMemory;

/** The far end inside the same agent, by its own name. */
record OwnRemoteSide(String name, Pools pools) implements RemoteSide {
    @Override
    public PoolRange range(NixlMemory memory) {
        return pools.of(memory).range();
    }

    @Override
    public void fill(NixlMemory memory, Cell cell, long seed) {
        pools.of(memory).fill(cell, seed);
    }

    @Override
    public void verify(NixlMemory memory, Cell cell, long seed) {
        pools.of(memory).verify(cell, seed);
    }
}
