package io.kvasir.pipeline.source;

import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Up to which message of a stream that keeps its messages an event plane has passed everything on.
 * What was left out, and what found no room, keeps it back. Guarded by the plane's lock, but for
 * the ranks that are expected.
 */
final class PlaneProgress {
    private static final int MOST_LEFT_OUT = 1_024;

    /** A worker and its rank. */
    private record Rank(long workerId, int dpRank) {}

    /** Numbers of messages about workers without a stream. */
    private static final class LeftOut {
        private long first = Long.MAX_VALUE;
        private long last;

        private void add(long number) {
            first = Math.min(first, number);
            last = Math.max(last, number);
        }

        private void forget() {
            first = Long.MAX_VALUE;
            last = 0;
        }
    }

    /** What found no room of one stream. */
    private static final class Refused {
        private long batches;
        private long wholeUpTo; // nothing of the messages up to it was refused
        private boolean lacks; // something after it was
    }

    private final Map<Rank, LeftOut> leftOut = new HashMap<>();
    private final LeftOut others = new LeftOut(); // of more workers than are kept apart
    private final Set<Rank> expected = ConcurrentHashMap.newKeySet();
    private final Map<EngineStream, Refused> refused = new HashMap<>();
    private long position; // number of the last message
    private long settledUpTo; // all up to it is in the index
    private long comesAgainAfter = Long.MAX_VALUE; // what a stream waits for
    private long followedAgainAfter = Long.MAX_VALUE; // the same where it may have had more before

    /** A message was passed on, or left out. */
    void at(long number) {
        position = number;
    }

    /** The message of now is about a worker without a stream. */
    void leftOut(long workerId, int dpRank) {
        final Rank rank = new Rank(workerId, dpRank);
        LeftOut missed = leftOut.get(rank);
        if (missed == null) {
            missed =
                    leftOut.size() < MOST_LEFT_OUT || expected.contains(rank)
                            ? new LeftOut()
                            : others;
            if (missed != others) {
                leftOut.put(rank, missed);
            }
        }
        missed.add(position);
    }

    /** Number of the last message. */
    long position() {
        return position;
    }

    /** A worker's events are not to be left out for long. Any thread. */
    void expect(long workerId, int dpRank) {
        expected.add(new Rank(workerId, dpRank));
    }

    /** They are of no use any more. Any thread. */
    void expectNoMore(long workerId, int dpRank) {
        expected.remove(new Rank(workerId, dpRank));
    }

    /**
     * A worker has a stream.
     *
     * @param waits whether it gets nothing before the messages come again
     * @param seenUpTo messages up to it hold nothing that the stream has not
     * @param allLeftOut whether all that came for it was left out here
     */
    void registered(long workerId, int dpRank, boolean waits, long seenUpTo, boolean allLeftOut) {
        final Rank rank = new Rank(workerId, dpRank);
        expected.remove(rank);
        final LeftOut missed = leftOut.remove(rank);
        if (waits) {
            final long first = missed == null ? others.first : missed.first;
            final long upTo = allLeftOut ? Math.max(seenUpTo, first - 1) : seenUpTo;
            comesAgainAfter = Math.min(comesAgainAfter, Math.min(upTo, position));
            followedAgainAfter = Math.min(followedAgainAfter, seenUpTo);
        }
    }

    /**
     * The messages come again.
     *
     * @param after the message before it
     */
    void again(long after) {
        startAfter(after);
        comesAgainAfter = Long.MAX_VALUE;
        followedAgainAfter = Long.MAX_VALUE;
    }

    /** The messages begin after this one; what was before is in the index, or is not to be had. */
    void startAfter(long number) {
        position = number;
        settledUpTo = number;
    }

    /** Numbers begin anew. */
    void renumbered() {
        again(0);
        leftOut.clear();
        others.forget();
        refused.values().forEach(stream -> stream.wholeUpTo = 0);
    }

    /** All that was passed on is in the index. */
    void settled() {
        settledUpTo = position;
    }

    /**
     * Up to which message the streams have all that came for them, and those that are expected:
     * what is left out of other workers does not count, nor what found no room, which does not come
     * again.
     */
    long followedUpTo() {
        long upTo = Math.min(settledUpTo, followedAgainAfter);
        for (Rank rank : expected) {
            final LeftOut missed = leftOut.get(rank);
            if (missed != null) {
                upTo = Math.min(upTo, missed.first - 1);
            }
        }
        return upTo;
    }

    /**
     * Up to which message the index has all that the stream has.
     *
     * @param first number of the oldest message that the stream still has
     */
    long vouchesUpTo(long first, Iterable<EngineStream> streams) {
        leftOut.values().removeIf(missed -> missed.last < first);
        if (others.last < first) {
            others.forget();
        }
        long upTo = Math.min(Math.min(settledUpTo, comesAgainAfter), others.first - 1);
        for (LeftOut missed : leftOut.values()) {
            upTo = Math.min(upTo, missed.first - 1);
        }
        for (EngineStream stream : streams) {
            upTo = Math.min(upTo, vouchesUpTo(stream));
        }
        return Math.max(upTo, first - 1);
    }

    private long vouchesUpTo(EngineStream stream) {
        final Refused of = refused.computeIfAbsent(stream, _ -> new Refused());
        final long batches = stream.refusedBatches();
        if (batches != of.batches) {
            of.batches = batches;
            of.lacks = true;
        } else if (!of.lacks || stream.state() == IndexState.EXACT) {
            of.lacks = false; // nothing is missing, or it has been cleared since
            of.wholeUpTo = Math.max(of.wholeUpTo, settledUpTo);
        }
        return of.lacks ? of.wholeUpTo : Long.MAX_VALUE;
    }

    /** A stream is there no more. */
    void removed(EngineStream stream) {
        refused.remove(stream);
    }
}
