package io.kvasir.nats.events;

import io.kvasir.pipeline.source.IndexState;
import io.kvasir.router.EventPlaneWorker;
import io.kvasir.router.Worker;

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Workers of an event plane whose index may lack something that is saved of them, and when it is
 * read again: after a pause that doubles up to 32 times the first. Not thread-safe.
 */
final class UnrestoredWorkers {
    private static final int MOST_DOUBLINGS = 5;

    private final long firstPauseNs;
    private final Map<EventPlaneWorker, SnapshotName> workers = new HashMap<>();
    private long nextNs = System.nanoTime();
    private int doublings;

    UnrestoredWorkers(Duration firstPause) {
        firstPauseNs = firstPause.toNanos();
    }

    /**
     * What is saved of a worker could not be restored.
     *
     * @param unusableOrNull a snapshot that was read, and does not fit into the index; null where
     *     it was not read
     */
    void add(EventPlaneWorker worker, SnapshotName unusableOrNull) {
        workers.put(worker, unusableOrNull);
    }

    /** It was restored, or nothing is saved of it. */
    void remove(EventPlaneWorker worker) {
        workers.remove(worker);
    }

    /** Whether there are some. */
    boolean any() {
        return !workers.isEmpty();
    }

    /** Whether what is saved is to be read again now; begins the pause before the next time. */
    boolean isTime() {
        final long nowNs = System.nanoTime();
        if (nowNs - nextNs < 0) {
            return false;
        }
        nextNs = nowNs + (firstPauseNs << doublings);
        doublings = Math.min(doublings + 1, MOST_DOUBLINGS);
        return true;
    }

    /**
     * Forgets those that lack nothing: they are EXACT, and so have more than is saved of them,
     * nothing is saved of them, or they are not registered and restored when they are.
     *
     * @param registered the router's workers
     * @param saved what there is of them now
     * @return those that can be restored: another snapshot has them than one of no use
     */
    List<Worker> toRejoin(Iterable<Worker> registered, SnapshotCatalogue saved) {
        final Map<EventPlaneWorker, Worker> named = new HashMap<>();
        registered.forEach(worker -> named.put(worker.planeOrNull(), worker));
        workers.keySet().removeIf(name -> !lacks(named.get(name), saved.of(name)));
        final List<Worker> rejoining = new ArrayList<>();
        workers.forEach(
                (name, unusable) -> {
                    if (!saved.of(name).object().equals(unusable)) {
                        rejoining.add(named.get(name));
                    }
                });
        return rejoining;
    }

    private static boolean lacks(Worker worker, SnapshotCatalogue.Found saved) {
        return worker != null && saved != null && worker.state() != IndexState.EXACT;
    }
}
