package io.kvasir.core.index;

/**
 * What became of a store. Anything but {@link #STORED} left the index as it was, but for what was
 * evicted to make room.
 */
public enum StoreResult {
    /** Every block is held now. */
    STORED,
    /** The slot does not hold the parent block: an event before this one was lost. */
    UNKNOWN_PARENT,
    /** The slot does not hold the parent block, and some of its blocks did not fit before. */
    MISSING_PARENT,
    /**
     * The blocks do not fit, whatever may be evicted; raise {@code maxBlocks} or {@code
     * maxHeldBlocks}.
     */
    CAPACITY,
    /** The store names one engine hash twice, or a block as its own parent. */
    INVALID
}
