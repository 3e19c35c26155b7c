package io.kvasir.pipeline.source;

import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Workers that have spoken on an event plane and have no stream there now. Keeps {@value #MOST} of
 * them; beyond that any worker may have spoken. Guarded by the plane's lock.
 */
final class HeardWorkers {
    /** Workers that are kept apart. */
    static final int MOST = 1_024;

    /** A worker and its rank. */
    private record Rank(long workerId, int dpRank) {}

    private final Map<Rank, Long> leftOut = new HashMap<>(); // events, by worker
    private boolean incomplete;

    /** Records a worker whose stream was removed after it had got events. */
    void add(long workerId, int dpRank) {
        count(workerId, dpRank, 0);
    }

    /** Records an event that no stream has got. */
    void leftOut(long workerId, int dpRank) {
        count(workerId, dpRank, 1);
    }

    private void count(long workerId, int dpRank, long events) {
        final Rank rank = new Rank(workerId, dpRank);
        if (leftOut.size() < MOST || leftOut.containsKey(rank)) {
            leftOut.merge(rank, events, Long::sum);
        } else {
            incomplete = true;
        }
    }

    /** Whether a worker may have spoken. */
    boolean contains(long workerId, int dpRank) {
        return incomplete || leftOut.containsKey(new Rank(workerId, dpRank));
    }

    /** Forgets a worker, which has a stream now. */
    void forget(long workerId, int dpRank) {
        leftOut.remove(new Rank(workerId, dpRank));
    }

    /** Those whose events were left out, most events first. */
    List<UnknownWorker> unknown() {
        return leftOut.entrySet().stream()
                .filter(entry -> entry.getValue() > 0)
                .map(
                        entry ->
                                new UnknownWorker(
                                        entry.getKey().workerId(),
                                        entry.getKey().dpRank(),
                                        entry.getValue()))
                .sorted(Comparator.comparingLong(UnknownWorker::events).reversed())
                .toList();
    }
}
