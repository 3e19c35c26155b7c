package io.kvasir.opstreams.generate;

import io.kvasir.opstreams.kvops.KvopsHeader;

/**
 * How a trace becomes a stream.
 *
 * @param workers simulated workers
 * @param capacity blocks that one worker's cache holds
 * @param block tokens per block of the stream
 * @param traceBlock tokens per hash id of the trace, a multiple of {@code block}
 * @param copies copies of the trace with hashes of their own, each 977 ms after the one before
 * @param speedUp trace time ÷ stream time
 * @param timestampUs microseconds per unit of the trace's timestamps
 * @param prefillRate prompt tokens that a worker computes per second
 * @param interTokenMs time between two tokens of an answer
 * @param chunkTokens prompt tokens computed, and stored, at a time
 * @param decode whether output blocks are stored too
 * @param overlapWeight weight of a block to compute against a block in use
 * @param seed of the hashes and of ties between workers
 * @param salted whether every worker names blocks its own way
 */
public record GeneratorOptions(
        int workers,
        int capacity,
        int block,
        int traceBlock,
        int copies,
        double speedUp,
        double timestampUs,
        double prefillRate,
        double interTokenMs,
        int chunkTokens,
        boolean decode,
        double overlapWeight,
        long seed,
        boolean salted) {
    /** Largest number of workers. */
    public static final int MAX_WORKERS = KvopsHeader.MAX_WORKERS;

    private static final int MOST_WEIGHT = 1_000_000_000; // costs of the longest prompts are finite

    /**
     * Checks the values.
     *
     * @throws IllegalArgumentException naming the first that is out of range
     */
    public GeneratorOptions {
        require(workers >= 1 && workers <= MAX_WORKERS, "workers", workers, "1.." + MAX_WORKERS);
        require(capacity >= 1, "capacity", capacity, "at least 1");
        require(block >= 1, "block", block, "at least 1");
        require(
                traceBlock >= block && traceBlock % block == 0,
                "trace-block",
                traceBlock,
                "a multiple of block " + block);
        require(copies >= 1 && copies <= 256, "dup", copies, "1..256");
        requirePositive("speedup", speedUp);
        requirePositive("ts-us", timestampUs);
        requirePositive("prefill-rate", prefillRate);
        requireNotNegative("itl-ms", interTokenMs);
        require(chunkTokens >= 1, "chunk-tokens", chunkTokens, "at least 1");
        require(
                overlapWeight >= 0 && overlapWeight <= MOST_WEIGHT,
                "overlap-weight",
                overlapWeight,
                "0.." + MOST_WEIGHT);
    }

    static void requirePositive(String name, double value) {
        require(value > 0 && Double.isFinite(value), name, value, "above 0 and finite");
    }

    static void requireNotNegative(String name, double value) {
        require(value >= 0 && Double.isFinite(value), name, value, "0 or more and finite");
    }

    static void require(boolean holds, String name, Number value, String range) {
        if (!holds) {
            throw new IllegalArgumentException(
                    name + " out of range: value=" + value + ", must be " + range);
        }
    }

    /** 64 workers of 16,384 blocks of 16 tokens, the trace once at its own speed. */
    public static GeneratorOptions defaults() {
        return new GeneratorOptions(
                64, 16384, 16, 512, 1, 1, 1000, 20000, 15, 8192, true, 1, 42, false);
    }

    /** The same with other workers and caches. */
    public GeneratorOptions withWorkers(int newWorkers, int newCapacity) {
        return new GeneratorOptions(
                newWorkers,
                newCapacity,
                block,
                traceBlock,
                copies,
                speedUp,
                timestampUs,
                prefillRate,
                interTokenMs,
                chunkTokens,
                decode,
                overlapWeight,
                seed,
                salted);
    }
}
