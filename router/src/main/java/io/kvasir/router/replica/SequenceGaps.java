package io.kvasir.router.replica;

/**
 * Which numbers of one sender never came: those among the 64 before the highest seen may still be
 * on their way; one that falls behind them is lost.
 */
final class SequenceGaps {
    private long highest;
    private long seen; // bit i: highest - i has come
    private boolean begun;

    /**
     * Takes a number.
     *
     * @return how many numbers are lost for good by now that were not before
     */
    long take(long sequence) {
        if (!begun) {
            begun = true;
            highest = sequence;
            seen = -1; // what came before the first is not missed
            return 0;
        }
        final long ahead = sequence - highest;
        if (ahead <= 0) {
            if (ahead > -Long.SIZE) {
                seen |= 1L << -ahead;
            }
            return 0;
        }
        highest = sequence;
        final long lost;
        if (ahead < Long.SIZE) {
            final long leaving = seen >>> (Long.SIZE - ahead);
            lost = ahead - Long.bitCount(leaving);
            seen = seen << ahead | 1;
        } else {
            lost = Long.SIZE - Long.bitCount(seen) + (ahead - Long.SIZE);
            seen = 1;
        }
        return lost;
    }
}
