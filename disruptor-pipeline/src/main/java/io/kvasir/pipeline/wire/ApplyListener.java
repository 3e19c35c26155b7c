package io.kvasir.pipeline.wire;

import io.kvasir.core.index.StoreResult;

/**
 * Notified of what became of a batch by the thread that applies it. Calls must be short, must not
 * throw and must not wait.
 */
public interface ApplyListener {
    /** Listens to nothing. */
    ApplyListener NONE = new ApplyListener() {};

    /**
     * A store was tried.
     *
     * @param result what the index said
     * @param blocks number of blocks of the store
     */
    default void stored(StoreResult result, int blocks) {}

    /**
     * Blocks were removed.
     *
     * @param blocks number of blocks of the removal
     * @param unknown how many of them the index did not know, and not because it is full
     */
    default void removed(int blocks, int unknown) {}

    /**
     * Blocks were given up for others.
     *
     * @param blocks how many
     */
    default void evicted(int blocks) {}

    /**
     * How many blocks that were announced are not held now because the index is full; called when
     * it may have changed.
     *
     * @param blocks missing blocks of the slot
     */
    default void missing(long blocks) {}

    /** Every block of the slot was dropped: what is known from here on is all there is. */
    default void cleared() {}

    /**
     * The whole batch was applied.
     *
     * @param operations number of operations
     */
    default void applied(int operations) {}

    /** The batch was left out, because its slot is set aside. */
    default void skipped() {}

    /** Applying the batch threw: the slot is set aside until the next clear. */
    default void failed() {}

    /** A reader found the index damaged: the slot may hold less than was applied, until a clear. */
    default void damaged() {}
}
