package io.kvasir.core.index;

import java.util.BitSet;

/** What is not given up for the operation under way. */
@FunctionalInterface
interface KeptRuns {
    /**
     * The held runs of a slot that stay; valid until the next call or change of the tree by the
     * operation itself.
     *
     * @param slot the one from which is evicted
     */
    BitSet of(int slot);
}
