package io.kvasir.opstreams.generate;

import static io.kvasir.opstreams.kvops.AnswerChecksum.mix;

/** Hashes and chance of generated streams, as the format describes them. */
final class StreamHashes {
    private static final long GOLDEN = 0x9E3779B97F4A7C15L;
    private static final long SUB_BLOCK = 0xD6E8FEB86659FD93L;
    private static final long SALT = 0x5A17_0000_0000L;
    private static final long OUTPUT = 0x0DEC0DE;
    private static final int COPY_SHIFT = 56;
    private static final int REQUEST_SHIFT = 24;
    private static final int SEED_ROTATION = 17;

    private final long seed;
    private long state;

    StreamHashes(long seed) {
        this.seed = seed;
        this.state = seed;
    }

    /** Local hash of a part of what a hash id of the trace covers. */
    long local(long hashId, int copy, int part) {
        final long id = hashId ^ (long) copy << COPY_SHIFT ^ Long.rotateLeft(seed, SEED_ROTATION);
        return mix(mix(id) + part * SUB_BLOCK);
    }

    /** Local hash of a block that a request generates. */
    long output(int request, int block) {
        return mix(OUTPUT ^ (long) request << REQUEST_SHIFT ^ mix(block ^ seed));
    }

    /** What a worker calls a block when names are salted. */
    static long salted(int worker, long sequenceHash) {
        return mix(sequenceHash ^ mix(SALT + worker));
    }

    /** The next number below {@code bound} of a splitmix64 sequence. */
    int below(int bound) {
        final long random = mix(state); // mix takes the step itself
        state += GOLDEN;
        return (int) Math.unsignedMultiplyHigh(random, bound);
    }
}
