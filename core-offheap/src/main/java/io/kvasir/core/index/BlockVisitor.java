package io.kvasir.core.index;

/** Receives one held block at a time. */
@FunctionalInterface
public interface BlockVisitor {
    /**
     * Called for one (slot, engine hash) pair.
     *
     * @param slot worker slot that holds the block
     * @param engineHash the worker's own name of it
     * @param sequenceHash hash of the block with everything before it
     * @param copies physical copies that the worker holds, at least 1
     */
    void block(int slot, long engineHash, long sequenceHash, int copies);
}
