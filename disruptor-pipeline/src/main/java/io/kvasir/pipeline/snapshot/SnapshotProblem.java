package io.kvasir.pipeline.snapshot;

import java.util.Locale;

/**
 * Why something of a snapshot is not used.
 *
 * @param kind what is wrong
 * @param what the worker, or what else of the snapshot, with the values that matter
 */
public record SnapshotProblem(Kind kind, String what) {
    /** What is wrong. */
    public enum Kind {
        /** The bytes end too early. */
        TRUNCATED,
        /** Bytes are not those that were written. */
        CORRUPTED,
        /** A later version has written it. */
        FUTURE_VERSION,
        /** Of another block size than is used here. */
        WRONG_BLOCK_SIZE,
        /** Local hashes of another seed than are used here. */
        WRONG_SEED
    }

    @Override
    public String toString() {
        return kind.name().toLowerCase(Locale.ROOT).replace('_', ' ') + ": " + what;
    }
}
