package io.kvasir.bench.gpu;

import io.kvasir.panama.nixl.NixlMemory;

/**
 * A run of memory that transfers go out of and into. For the thread that made it. Closed after it
 * was deregistered from NIXL.
 */
sealed interface Pool extends AutoCloseable permits HostPool, DevicePool {
    NixlMemory memory();

    PoolRange range();

    /** Writes the bytes of a transfer's source; they are there when this returns. */
    void fill(Cell cell, long seed);

    /**
     * Checks the bytes of a transfer's destination.
     *
     * @throws BenchFailure if any is wrong
     */
    void verify(Cell cell, long seed);

    @Override
    void close();

    /** The error for a wrong word, so that no number of a wrong transfer is ever printed. */
    static BenchFailure wrongBytes(NixlMemory memory, Cell cell, long offset) {
        return new BenchFailure(
                "wrong bytes in %s at offset %d of %d descriptors of %d bytes"
                        .formatted(memory, offset, cell.count(), cell.length()));
    }
}
