package io.kvasir.nats.events;

import io.kvasir.pipeline.source.IndexCause;
import io.kvasir.pipeline.source.IndexState;
import io.kvasir.router.EventPlaneWorker;
import io.kvasir.router.Worker;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Workers of an event plane whose index may lack something that is saved of them: what could not be
 * restored, with the time when it is read again, after a pause that doubles up to 32 times the
 * first, and messages that were lost. Not thread-safe.
 */
final class UnrestoredWorkers {
    private static final int MOST_DOUBLINGS = 5;

    private final long firstPauseNs;
    private final Map<EventPlaneWorker, SnapshotName> workers = new HashMap<>();
    private final Map<EventPlaneWorker, SnapshotName> restored = new HashMap<>(); // from which
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

    /** Nothing is saved of it. */
    void remove(EventPlaneWorker worker) {
        workers.remove(worker);
    }

    /** It was restored from a snapshot. */
    void restored(EventPlaneWorker worker, SnapshotName from) {
        workers.remove(worker);
        restored.put(worker, from);
    }

    /** Those of a router's workers that have lost messages, or have got none. */
    List<Worker> lacking(Collection<Worker> registered) {
        final List<Worker> lacking = new ArrayList<>();
        final Set<EventPlaneWorker> names = new HashSet<>();
        for (Worker worker : registered) {
            names.add(worker.planeOrNull());
            if (worker.planeOrNull() != null && hasLost(worker)) {
                lacking.add(worker);
            }
        }
        restored.keySet().retainAll(names);
        return lacking;
    }

    private static boolean hasLost(Worker worker) {
        final IndexState state = worker.state();
        if (state != IndexState.DEGRADED && state != IndexState.LOADING) {
            return false;
        }
        final IndexCause cause = worker.cause();
        return cause == IndexCause.LOST_MESSAGES || cause == IndexCause.NOT_LOADED;
    }

    /**
     * Those that a snapshot has whole which is newer than the one that they were restored from:
     * what they lack came after that one, and is lost for it, too.
     */
    List<Worker> savedOf(List<Worker> lacking, SnapshotCatalogue saved) {
        final List<Worker> whole = new ArrayList<>();
        for (Worker worker : lacking) {
            final EventPlaneWorker name = worker.planeOrNull();
            final SnapshotCatalogue.Found found = saved.of(name);
            if (found != null
                    && found.section().mark().complete()
                    && isNewer(found.object(), restored.get(name))) {
                whole.add(worker);
            }
        }
        return whole;
    }

    private static boolean isNewer(SnapshotName found, SnapshotName beforeOrNull) {
        return beforeOrNull == null || SnapshotName.NEWEST_FIRST.compare(found, beforeOrNull) < 0;
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
