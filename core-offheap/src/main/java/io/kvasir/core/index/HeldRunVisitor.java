package io.kvasir.core.index;

/** Receives consecutive blocks that one worker slot holds. */
@FunctionalInterface
public interface HeldRunVisitor {
    /** Depth of blocks of which the slot does not hold the one before: they follow a hole. */
    int BEHIND_HOLE = -1;

    /**
     * Called for some blocks of one path, each the parent of the next.
     *
     * @param depth blocks of the prompt before the first one; {@link #BEHIND_HOLE} when the slot
     *     does not hold its parent
     * @param parentEngineHash the slot's name of the block before the first one; without meaning
     *     where {@code depth} is 0 or {@link #BEHIND_HOLE}
     * @param engineHashes the slot's names of the blocks, [count]; the visitor must not keep the
     *     array
     * @param localHashes local hashes of the blocks, [count]; the visitor must not keep the array
     * @param count blocks, at least 1
     */
    void run(int depth, long parentEngineHash, long[] engineHashes, long[] localHashes, int count);
}
