package io.kvasir.router;

import io.kvasir.pipeline.source.LastComparisons;

/**
 * Whether an engine computes the last block of each cache hit anew, as vLLM does where it drafts
 * with EAGLE or MTP: the drafter's values at the end of a block depend on the token behind it. Then
 * each hit is a block less than the blocks that it holds, and its events say nothing of it, so that
 * it is concluded from the hits that it states. Any thread; {@link #applies} takes no lock.
 *
 * <p>It is concluded from hits that were exactly a block too low: 8 of the last 32 at least, and
 * twice as many as all others that were compared. It is given up when, of the hits after it, as
 * many were exactly a block too high; from then on it takes 32 to conclude it again.
 */
final class LastBlockRule {
    static final int WINDOW = LastComparisons.WINDOW;
    static final int ENOUGH = 8;
    private static final int OTHERS = 2;

    private final int blockSize;
    private final LastComparisons against = new LastComparisons(); // off by one block
    private int enough = ENOUGH;
    private volatile boolean applies;

    /**
     * @param blockSize tokens of a block
     */
    LastBlockRule(int blockSize) {
        this.blockSize = blockSize;
    }

    /** Whether each hit is a block less than what the engine holds of the prompt. */
    boolean applies() {
        return applies;
    }

    /**
     * Takes one comparison in which something was to be had.
     *
     * @param believed tokens that were expected to be cached, by the rule as it is
     * @param stated those that the engine says it had
     * @return whether the rule has changed, so that comparisons before this one mean nothing
     */
    synchronized boolean compare(int believed, int stated) {
        if (Math.max(believed, stated) < blockSize) {
            return false;
        }
        final int missing = applies ? stated - believed : believed - stated;
        final boolean oneBlock = missing >= blockSize && missing < 2 * blockSize;
        against.add(oneBlock);
        final int count = against.count();
        if (count < enough || count < OTHERS * (against.compared() - count)) {
            return false;
        }
        if (applies) {
            enough = WINDOW;
        }
        applies = !applies;
        against.clear();
        return true;
    }
}
