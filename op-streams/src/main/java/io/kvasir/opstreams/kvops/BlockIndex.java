package io.kvasir.opstreams.kvops;

/**
 * What a replay asks of an index. One thread calls everything except {@link Reader#match}; an index
 * with concurrent reads takes readers on other threads meanwhile, one thread per reader.
 */
public interface BlockIndex extends AutoCloseable {
    /**
     * Records that a worker holds a run of blocks.
     *
     * @param worker number of the worker
     * @param root whether the run starts a prompt; {@code parent} means nothing then
     * @param parent the worker's name of the block before the run
     * @param names the worker's names of the blocks, [count]
     * @param localHashes local hashes of the blocks, [count]
     * @param count blocks
     * @return whether it was stored; false when it was refused (unknown parent, no room)
     */
    boolean store(
            int worker, boolean root, long parent, long[] names, long[] localHashes, int count);

    /**
     * Removes blocks; unknown names change nothing.
     *
     * @param worker number of the worker
     * @param names the worker's names of the blocks, [count]
     * @param count blocks
     */
    void remove(int worker, long[] names, int count);

    /**
     * Forgets everything that a worker holds.
     *
     * @param worker number of the worker
     */
    void clear(int worker);

    /** A new reader with memory for its answers. */
    Reader reader();

    /** (Worker, block) pairs held. */
    long heldBlocks();

    /** Bytes of all memory of the index, heap or not; -1 when it cannot tell. */
    long bytes();

    /** Bytes of {@link #bytes()} that are in use now; the same where nothing tells. */
    default long usedBytes() {
        return bytes();
    }

    /** Gives the memory back. */
    @Override
    void close();

    /** Asks for matches; keeps the last answer. One thread at a time. */
    interface Reader {
        /**
         * Finds how many leading blocks of a prompt each worker holds.
         *
         * @param localHashes local hashes of the prompt's blocks, [count]
         * @param count blocks
         * @return deepest match in blocks
         */
        int match(long[] localHashes, int count);

        /** Checksum of the last answer, see {@link AnswerChecksum}. */
        long checksum();
    }
}
