package io.kvasir.core.index;

/** What a {@link PrefixIndex} does about a store that does not fit beside what is held. */
public enum CapacityRule {
    /**
     * The slot that holds most gives up the blocks that were stored longest ago, the deepest of a
     * prompt first, until the store fits. So each slot that wants its share of the room has it, and
     * may have more while others leave theirs.
     */
    EVICT,
    /** The store is refused. */
    REFUSE
}
