package io.kvasir.bench.gpu;

import io.kvasir.panama.nixl.NixlMemory;

/** The end that does not post: its memory is read and written by the other end's transfers. */
interface RemoteSide {
    /** Its agent's name. */
    String name();

    PoolRange range(NixlMemory memory);

    /** Has it write the bytes of a transfer's source; they are there when this returns. */
    void fill(NixlMemory memory, Cell cell, long seed);

    /**
     * Has it check the bytes of a transfer's destination.
     *
     * @throws BenchFailure if any is wrong, or it cannot say
     */
    void verify(NixlMemory memory, Cell cell, long seed);
}
