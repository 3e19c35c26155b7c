package io.kvasir.pipeline.source;

import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Workers that have spoken on an event plane and have no stream there now: {@value #MOST} whose
 * events were left out, and {@value #MOST_DEPARTED} whose streams were removed. Beyond that any
 * worker may have spoken, until the transport no longer has what those have said. Guarded by the
 * plane's lock.
 */
final class DetachedWorkers {
    /** Workers without a stream whose events are counted apart. */
    static final int MOST = 1_024;

    /** Workers without a stream any more that are kept apart. */
    static final int MOST_DEPARTED = 16_384;

    /** A worker and its rank. */
    private record Rank(long workerId, int dpRank) {}

    /** Events that no stream has got, and the number of the last message with one. */
    private record LeftOut(long events, long last) {}

    private final Map<Rank, LeftOut> leftOut = new HashMap<>();
    private final LinkedHashMap<Rank, Long> departed = new LinkedHashMap<>(); // last message
    private long forgottenUpTo; // the transport had no messages up to this one
    private long othersUpTo = PlaneFeed.NOT_KEPT; // messages to it may be of workers not kept apart

    /**
     * Records a worker whose stream was removed after it had got events.
     *
     * @param last number of the last message that may have been about it
     */
    void departed(long workerId, int dpRank, long last) {
        departed.putLast(new Rank(workerId, dpRank), last);
        if (departed.size() > MOST_DEPARTED) {
            others(departed.pollFirstEntry().getValue());
        }
    }

    /**
     * Records an event that no stream has got.
     *
     * @param number of its message
     * @param counts whether it is one more of them; it may have come before
     */
    void leftOut(long workerId, int dpRank, long number, boolean counts) {
        final Rank rank = new Rank(workerId, dpRank);
        final LeftOut before = leftOut.get(rank);
        if (before != null) {
            final long events = before.events() + (counts ? 1 : 0);
            leftOut.put(rank, new LeftOut(events, Math.max(before.last(), number)));
        } else if (leftOut.size() < MOST) {
            leftOut.put(rank, new LeftOut(1, number));
        } else {
            others(number);
        }
    }

    private void others(long upTo) {
        othersUpTo = Math.max(othersUpTo, upTo);
    }

    /** Whether a worker may have spoken. */
    boolean contains(long workerId, int dpRank) {
        return hasDeparted(workerId, dpRank) || leftOut.containsKey(new Rank(workerId, dpRank));
    }

    /** Whether a stream of a worker may have had something. */
    boolean hasDeparted(long workerId, int dpRank) {
        return othersUpTo != PlaneFeed.NOT_KEPT || departed.containsKey(new Rank(workerId, dpRank));
    }

    /**
     * Whether it is known that no stream of a worker that departed had a message after this one.
     */
    boolean isSilentAfter(long workerId, int dpRank, long number) {
        final Long last = departed.get(new Rank(workerId, dpRank));
        return number >= Math.max(forgottenUpTo, othersUpTo) && (last == null || last <= number);
    }

    /** Forgets a worker, which has a stream now. */
    void forget(long workerId, int dpRank) {
        final Rank rank = new Rank(workerId, dpRank);
        leftOut.remove(rank);
        departed.remove(rank);
    }

    /** Forgets what the transport has no more: its oldest message has this number. */
    void keptFrom(long first) {
        forgottenUpTo = Math.max(forgottenUpTo, first - 1);
        leftOut.values().removeIf(events -> events.last() < first);
        departed.values().removeIf(last -> last < first);
        if (othersUpTo < first) {
            othersUpTo = PlaneFeed.NOT_KEPT;
        }
    }

    /** Forgets all: the transport has begun anew. */
    void renumbered() {
        keptFrom(Long.MAX_VALUE);
        forgottenUpTo = 0;
    }

    /** Those whose events were left out, most events first. */
    List<UnknownWorker> unknown() {
        return leftOut.entrySet().stream()
                .map(
                        entry ->
                                new UnknownWorker(
                                        entry.getKey().workerId(),
                                        entry.getKey().dpRank(),
                                        entry.getValue().events()))
                .sorted(Comparator.comparingLong(UnknownWorker::events).reversed())
                .toList();
    }
}
