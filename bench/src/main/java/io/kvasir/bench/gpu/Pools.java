package io.kvasir.bench.gpu;

import io.kvasir.panama.nixl.NixlMemory;

import java.util.Collection;
import java.util.EnumMap;
import java.util.Map;
import java.util.Set;

/** One pool for each memory that an end of the transfers has. For the thread that made them. */
final class Pools implements AutoCloseable {
    private final Map<NixlMemory, Pool> pools = new EnumMap<>(NixlMemory.class);

    /**
     * Allocates them.
     *
     * @param memories DRAM and VRAM, or one of them
     * @param gpu needed for VRAM, else null
     * @param length bytes of each
     */
    Pools(Set<NixlMemory> memories, Gpu gpu, long length) {
        for (NixlMemory memory : memories) {
            pools.put(
                    memory,
                    memory == NixlMemory.VRAM ? new DevicePool(gpu, length) : new HostPool(length));
        }
    }

    Pool of(NixlMemory memory) {
        final Pool pool = pools.get(memory);
        if (pool == null) {
            throw new BenchFailure("no pool in " + memory + ": both ends need the same --kinds");
        }
        return pool;
    }

    Collection<Pool> all() {
        return pools.values();
    }

    @Override
    public void close() {
        pools.values().forEach(Pool::close);
    }
}
