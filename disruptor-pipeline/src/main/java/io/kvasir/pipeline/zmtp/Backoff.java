package io.kvasir.pipeline.zmtp;

import java.util.random.RandomGenerator;

/** Delays between tries: doubling, bounded, each with ±25 % of jitter so that tries spread. */
public final class Backoff {
    private final long firstNs;
    private final long mostNs;
    private final RandomGenerator random;
    private long nextNs;

    /**
     * Creates the delays of one series of tries.
     *
     * @param firstNs middle of the first delay
     * @param mostNs middle of the longest
     * @param random source of the jitter
     */
    public Backoff(long firstNs, long mostNs, RandomGenerator random) {
        this.firstNs = firstNs;
        this.mostNs = mostNs;
        this.random = random;
        this.nextNs = firstNs;
    }

    /** The delay before the next try. */
    public long nextNs() {
        final long middle = nextNs;
        nextNs = Math.min(mostNs, 2 * middle);
        return middle - middle / 4 + random.nextLong(middle / 2 + 1);
    }

    /**
     * Says how long what was tried for has held: if longer than the longest delay, the next try
     * comes after the first delay again. What keeps ending at once is tried ever more rarely.
     */
    public void heldFor(long ns) {
        if (ns >= mostNs) {
            nextNs = firstNs;
        }
    }
}
