package io.kvasir.router.policy;

import java.util.concurrent.atomic.AtomicLong;

/**
 * Random numbers for ties, sampling and the random mode; injected so that one seed is one story.
 *
 * <p>Where one throws or answers with a number out of range, the router takes a number of its own
 * instead and counts the failure: no request fails by it.
 */
@FunctionalInterface
public interface RandomSource {
    /**
     * Returns the next number. Called from any thread.
     *
     * @return 64 uniformly distributed bits
     */
    long nextLong();

    /**
     * Returns a number below a bound.
     *
     * @param bound exclusive upper bound, &gt; 0
     * @return uniform in 0..bound-1 (bias below 2^-32)
     */
    default int nextInt(int bound) {
        return (int) (((nextLong() >>> 32) * bound) >>> 32);
    }

    /**
     * Returns a number in the unit interval.
     *
     * @return uniform in [0, 1), 53 bits
     */
    default double nextDouble() {
        return (nextLong() >>> 11) * 0x1.0p-53;
    }

    /**
     * A source whose numbers follow from a seed: SplitMix64 over an atomic counter, so that threads
     * share it without a lock. The order in which threads take numbers is theirs.
     *
     * @param seed any number
     * @return a thread-safe source
     * @see <a href="https://doi.org/10.1145/2714064.2660195">Steele, Lea, Flood: Fast splittable
     *     pseudorandom number generators</a>
     */
    static RandomSource seeded(long seed) {
        final AtomicLong state = new AtomicLong(seed);
        return () -> mix(state.getAndAdd(0x9E3779B97F4A7C15L));
    }

    /** SplitMix64's permutation of the 64-bit numbers: near ones become unlike. */
    static long mix(long number) {
        long z = number;
        z = (z ^ (z >>> 30)) * 0xBF58476D1CE4E5B9L;
        z = (z ^ (z >>> 27)) * 0x94D049BB133111EBL;
        return z ^ (z >>> 31);
    }
}
