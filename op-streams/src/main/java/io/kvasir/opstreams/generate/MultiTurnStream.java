package io.kvasir.opstreams.generate;

import java.io.IOException;
import java.nio.file.Path;

/**
 * Writes the stream of a multi-turn trace with a given share of hits. What caches and routing make
 * of conversations cannot be computed beforehand, so the stream is written again with another share
 * of requests that share nothing until the hits are near what is asked for.
 */
public final class MultiTurnStream {
    /** Difference from the share of hits asked for at which no other stream is tried. */
    public static final double NEAR = 0.01;

    /** Tokens per block at which half more than the longest prompt is still an int. */
    public static final int MOST_BLOCK_TOKENS = 1 << 17;

    private static final int MOST_TRIES = 8;

    private MultiTurnStream() {}

    /**
     * What was made.
     *
     * @param options with the share of cold requests that was found
     * @param made of the stream
     */
    public record Result(MultiTurnOptions options, StreamGenerator.Summary made) {
        /** Whether the hits differ from a share by no more than {@link #NEAR}. */
        public boolean isNear(double hitRate) {
            return Math.abs(made.hitRatio() - hitRate) <= NEAR;
        }
    }

    /**
     * Writes a stream of conversations as they are.
     *
     * @param generator workers; one hash id is one block
     * @param out file to create or overwrite
     * @throws IllegalArgumentException if a time is beyond 2^53 microseconds, or blocks are too
     *     large
     * @throws IOException if it cannot be written
     */
    public static Result generate(MultiTurnOptions options, GeneratorOptions generator, Path out)
            throws IOException {
        return new Result(
                options,
                StreamGenerator.generate(
                        MultiTurnTrace.of(options, generator.block(), generator.interTokenMs()),
                        generator,
                        out));
    }

    /**
     * Writes a stream in which the chosen workers held a share of all prompts' blocks.
     *
     * @param options their share of cold requests does not count
     * @param hitRate the share, 0..1
     * @param generator workers; one hash id is one block
     * @param out file to create or overwrite
     * @return the last that was tried; below {@code hitRate} when conversations alone have fewer
     *     hits
     * @throws IllegalArgumentException if a time is beyond 2^53 microseconds, or blocks are too
     *     large
     * @throws IOException if it cannot be written
     */
    public static Result generate(
            MultiTurnOptions options, double hitRate, GeneratorOptions generator, Path out)
            throws IOException {
        Result result = generate(options.withCold(0), generator, out);
        double low = 0; // share of cold requests with more hits
        double high = 1; // and with fewer
        double lowHits = result.made.hitRatio();
        double highHits = 0;
        for (int i = 1; i < MOST_TRIES && lowHits > hitRate && !result.isNear(hitRate); i++) {
            final double cold = low + (high - low) * (lowHits - hitRate) / (lowHits - highHits);
            result = generate(options.withCold(cold), generator, out);
            if (result.made.hitRatio() > hitRate) {
                low = cold;
                lowHits = result.made.hitRatio();
            } else {
                high = cold;
                highHits = result.made.hitRatio();
            }
        }
        return result;
    }
}
