package io.kvasir.core.index;

/** What became of a store. Anything but {@link #STORED} left the index as it was. */
public enum StoreResult {
    /** Every block is held now. */
    STORED,
    /** The slot does not hold the parent block: an event before this one was lost. */
    UNKNOWN_PARENT,
    /** The blocks do not fit; raise {@code maxBlocks} or {@code maxHeldBlocks}. */
    CAPACITY,
    /** The store names one engine hash twice, or a block as its own parent. */
    INVALID
}
