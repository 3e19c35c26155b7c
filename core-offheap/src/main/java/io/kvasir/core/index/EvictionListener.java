package io.kvasir.core.index;

/** Is called by the writer thread of an index when blocks are given up for others. */
public interface EvictionListener {
    /** Does nothing. */
    EvictionListener NONE = (workerSlot, engineHashes, count) -> {};

    /**
     * Engine hashes are not held any more.
     *
     * @param workerSlot slot that held them
     * @param engineHashes its names of the blocks; [count], not to be kept or changed
     * @param count 1 or more
     */
    void evicted(int workerSlot, long[] engineHashes, int count);
}
