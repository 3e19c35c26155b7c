package io.kvasir.core.memory;

/**
 * Multiplicative hashing by 2<sup>64</sup> over the golden ratio: neighbouring keys are spread over
 * the whole range. The high bits of the product are the good ones.
 *
 * @see <a href="https://dl.acm.org/doi/10.5555/280635">Knuth, volume 3, 6.4</a>
 */
public final class FibonacciHash {
    private static final long SPREAD = 0x9E3779B97F4A7C15L;

    private FibonacciHash() {}

    /** Spreads a key; to be shifted down to as many of the high bits as are needed. */
    public static long spread(long key) {
        return key * SPREAD;
    }
}
