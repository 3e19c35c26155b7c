package io.kvasir.pipeline.source;

import io.kvasir.pipeline.wire.BatchRank;
import io.kvasir.pipeline.wire.DropReason;
import io.kvasir.pipeline.wire.MessageDecoder;

import org.agrona.collections.LongHashSet;

import java.util.function.BiPredicate;

/**
 * Keeps messages of another data-parallel rank than the configured one out of a stream. Such a
 * message has other numbers, too: nothing else of it is read. Not thread-safe.
 */
final class RankFilter {
    /** Ranks with a line each; an engine has fewer. */
    static final int MOST_SAID = 64;

    private static final long NO_RANK = -1;

    private final SourceConfig config;
    private final MessageDecoder decoder;
    private final BiPredicate<StreamLog.Kind, String> log;
    private final LongHashSet said = new LongHashSet(); // ranks with a line in the log
    private long foreign = NO_RANK;
    private long learned = BatchRank.NONE;

    /**
     * Has seen nothing yet.
     *
     * @param log writes a warning, and answers whether it did
     */
    RankFilter(
            SourceConfig config, MessageDecoder decoder, BiPredicate<StreamLog.Kind, String> log) {
        this.config = config;
        this.decoder = decoder;
        this.log = log;
    }

    /** Whether a message is of the configured rank, or names none; counts it if it is not. */
    boolean accepts(byte[] payload, int offset, int length) {
        final long rank = decoder.rankOf(payload, offset, length);
        learned = rank < 0 ? learned : rank;
        if (rank < 0 || rank == config.dpRank()) {
            foreign = rank < 0 ? foreign : NO_RANK;
            return true;
        }
        decoder.drops().add(DropReason.FOREIGN_RANK);
        if (foreign != rank) {
            foreign = rank;
            say();
        }
        return false;
    }

    /** Each rank once, and of so many of them that an engine can have. */
    private void say() {
        if (said.size() < MOST_SAID
                && !said.contains(foreign)
                && log.test(StreamLog.Kind.FOREIGN_RANK, problem())) {
            said.add(foreign);
        }
    }

    /** Whether the last message that named a rank named another one. */
    boolean isForeign() {
        return foreign != NO_RANK;
    }

    /** The rank that the last message named, {@link BatchRank#NONE} before the first. */
    long learned() {
        return learned;
    }

    /** What is wrong while {@link #isForeign}, and what to do. */
    String problem() {
        return "the engine's events are of rank "
                + foreign
                + ", configured is "
                + config.dpRank()
                + ": they are dropped; set event-rank of the worker, or the address of rank "
                + config.dpRank();
    }
}
