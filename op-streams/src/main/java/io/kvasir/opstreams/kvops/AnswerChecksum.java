package io.kvasir.opstreams.kvops;

/**
 * Checksum of an answer: the wrapping sum over all workers with a score above 0 of {@code
 * mix(worker << 32 | score)}; 0 when there is none. Independent of the order of the workers.
 */
public final class AnswerChecksum {
    private AnswerChecksum() {}

    /**
     * A worker's share of the sum.
     *
     * @param worker number of the worker
     * @param score leading blocks of the query that it holds; 0 gives 0
     */
    public static long of(int worker, int score) {
        return score == 0 ? 0 : mix((long) worker << Integer.SIZE | score);
    }

    /** One step and the finaliser of splitmix64: the format's way to spread bits. */
    public static long mix(long value) {
        long z = value + 0x9E3779B97F4A7C15L;
        z = (z ^ (z >>> 30)) * 0xBF58476D1CE4E5B9L;
        z = (z ^ (z >>> 27)) * 0x94D049BB133111EBL;
        return z ^ (z >>> 31);
    }
}
