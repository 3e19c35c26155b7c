package io.kvasir.pipeline.wire;

import java.util.Arrays;

/**
 * What a decoder has learned from the events of one engine and needs for later ones. It may have
 * learned more since: an entry that outlives its block is harmless.
 *
 * @param mainGroup cache group that counts, −1 as long as none has announced itself
 * @param eagle whether blocks are hashed for EAGLE
 * @param chainSeeds seeds of the blocks of salted chains: engine hash and seed in turn; of a block
 *     that the engine has removed, twice
 */
@SuppressWarnings("ArrayRecordComponent") // compared by its content below
public record DecoderMemory(long mainGroup, boolean eagle, long[] chainSeeds) {
    /** Most pairs of engine hash and seed: as many as one chunk of a snapshot has room for. */
    public static final int MOST_CHAIN_SEEDS = (1 << 18) - 1;

    /** Of a decoder that has learned nothing. */
    public static final DecoderMemory NONE = new DecoderMemory(-1, false, new long[0]);

    /**
     * Checks the values.
     *
     * @throws IllegalArgumentException if a seed has no engine hash
     */
    public DecoderMemory {
        if (chainSeeds.length % 2 != 0) {
            throw new IllegalArgumentException(
                    "chain seeds are not in pairs: length=" + chainSeeds.length);
        }
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof DecoderMemory(long group, boolean forEagle, long[] seeds)
                && group == mainGroup
                && forEagle == eagle
                && Arrays.equals(seeds, chainSeeds);
    }

    @Override
    public int hashCode() {
        return Long.hashCode(mainGroup) + Arrays.hashCode(chainSeeds);
    }
}
