package io.kvasir.core.index;

/** Is shown what one worker slot holds: each block after the one before it on its path. */
public interface SlotVisitor {
    /**
     * Called for blocks that follow each other. A block that was shown before, with another engine
     * hash, is an alias of it.
     *
     * @param path valid during the call only
     */
    void path(SlotPath path);

    /**
     * Called for an engine hash of more than one copy, after its block.
     *
     * @param engineHash the slot's name of the block
     * @param copies physical copies, 2 or more
     */
    void copies(long engineHash, int copies);
}
