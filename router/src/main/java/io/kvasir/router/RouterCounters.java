package io.kvasir.router;

import io.kvasir.core.counters.CountersFile;
import io.kvasir.core.memory.DiskRoom;
import io.kvasir.pipeline.source.EventPlaneStatus;
import io.kvasir.pipeline.source.SourceStatus;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.router.state.SnapshotStatus;

import java.io.IOException;
import java.time.Clock;
import java.util.ArrayList;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.SequencedMap;
import java.util.Set;
import java.util.function.LongSupplier;
import java.util.function.Supplier;
import java.util.function.ToLongFunction;

/**
 * Keeps what a router and its workers count in a {@link CountersFile}, from the status that metrics
 * are read from: the router's counters at every call, those of 256 workers in turn. A worker's are
 * there from a call after it was added until the first after it was removed. Any thread.
 */
final class RouterCounters implements AutoCloseable {
    /** Type of the router's first counter; the others follow in the order of the file. */
    static final int ROUTER_TYPE = 1_000;

    /** Type of a worker's first counter; the others follow in the order of {@link #OF_WORKER}. */
    static final int WORKER_TYPE = 2_000;

    private static final int ERROR_LENGTH = 1 << 18;
    private static final int WORKERS_AT_ONCE = 256;

    /** Counters of removed workers are free again after a second. */
    private static final int SPARE_WORKERS = 64;

    private static final int MOST_OF_ROUTER = 128;

    /** A worker and the status of its events, read once for all its counters. */
    private record WorkerState(Worker worker, SourceStatus sourceOrNull) {
        static WorkerState of(Worker worker) {
            return new WorkerState(worker, worker.sourceStatus());
        }
    }

    private record WorkerCounter(String label, ToLongFunction<WorkerState> value) {}

    private static final List<WorkerCounter> OF_WORKER =
            List.of(
                    of("active requests", Worker::activeRequests),
                    of("active blocks", Worker::activeBlocks),
                    of("prefill tokens", Worker::prefillTokens),
                    of("indexed blocks", Worker::indexedBlocks),
                    of(
                            "index state: 0 loading, 1 exact, 2 resync, 3 stale, 4 degraded,"
                                    + " 5 predicted, 6 gone",
                            worker -> worker.state().number()),
                    ofSource("event messages", SourceStatus::messages),
                    ofSource("events applied", SourceStatus::applied),
                    ofSource("gaps in event numbers", SourceStatus::gaps),
                    ofSource("event messages lost", SourceStatus::lostMessages),
                    ofSource("event batches failed", SourceStatus::failures));

    private static WorkerCounter of(String label, ToLongFunction<Worker> value) {
        return new WorkerCounter(label, state -> value.applyAsLong(state.worker));
    }

    private static WorkerCounter ofSource(String label, ToLongFunction<SourceStatus> value) {
        return new WorkerCounter(
                label,
                state -> state.sourceOrNull == null ? 0 : value.applyAsLong(state.sourceOrNull));
    }

    private final CountersFile file;
    private final Supplier<RouterStatus> status;
    private final Supplier<List<Worker>> workers;
    private final LongSupplier epochMs;
    private final List<Integer> ofRouter = new ArrayList<>();
    private final IdentityHashMap<Worker, List<Integer>> ofWorkers = new IdentityHashMap<>();
    private int next; // index of the worker whose turn it is
    private boolean closed;

    /**
     * @param file closed by this
     * @param epochMs milliseconds since the epoch
     */
    RouterCounters(
            CountersFile file,
            Supplier<RouterStatus> status,
            Supplier<List<Worker>> workers,
            LongSupplier epochMs) {
        this.file = file;
        this.status = status;
        this.workers = workers;
        this.epochMs = epochMs;
        for (String label : values(status.get()).keySet()) {
            ofRouter.add(file.allocate(label, ROUTER_TYPE + ofRouter.size(), epochMs.getAsLong()));
        }
        write();
    }

    /**
     * Makes the file of a router.
     *
     * @throws IllegalStateException if another router has the folder
     * @throws java.io.UncheckedIOException if it cannot be written to
     */
    static CountersFile file(RouterConfig config) {
        return CountersFile.create(
                config.get(RouterSettings.COUNTERS_DIR),
                counters(config),
                ERROR_LENGTH,
                Clock.systemUTC().millis());
    }

    /**
     * Checks that the file can be made, and leaves all as it is.
     *
     * @throws IOException if not
     */
    static void check(RouterConfig config, DiskRoom room) throws IOException {
        CountersFile.check(
                config.get(RouterSettings.COUNTERS_DIR), counters(config), ERROR_LENGTH, room);
    }

    private static int counters(RouterConfig config) {
        return MOST_OF_ROUTER
                + (config.get(RouterSettings.MAX_WORKERS) + SPARE_WORKERS) * OF_WORKER.size();
    }

    /** Values by label; the labels are the same in every status. */
    private static SequencedMap<String, Long> values(RouterStatus status) {
        final SequencedMap<String, Long> values = new LinkedHashMap<>();
        for (RouterStatus.Usage usage : status.usages()) {
            values.put(usage.resource() + " used", usage.used());
            values.put(usage.resource() + " limit", usage.limit());
        }
        status.refusals()
                .byCause()
                .forEach((cause, count) -> values.put("refused: " + cause, count));
        values.put("failures", status.failures());
        values.put("bookings expired", status.expiredLeases());
        values.put("bookings without a shared path", status.pathlessBookings());
        values.put("leases forgotten", status.forgottenLeases());
        values.put("loads corrected", status.loadCorrections());
        status.policyFailures()
                .byPart()
                .forEach((part, count) -> values.put("selection policy failed: " + part, count));
        if (status.replicaOrNull() != null) {
            values.put("replicas", status.replicaOrNull().peers());
            values.put("replicas' bookings", status.replicaOrNull().peerBookings());
            status.replicaOrNull()
                    .byEvent()
                    .forEach((event, count) -> values.put("replica sync: " + event, count));
        }
        final EventPlaneStatus plane = status.planeOrNull();
        if (plane != null) {
            values.put("event plane's streams", (long) plane.streams());
            values.put("event plane: waiting", plane.waiting() + plane.behind());
            values.put("event plane: recovering", (long) plane.recovering());
            plane.byEvent().forEach((event, count) -> values.put("event plane: " + event, count));
        }
        addSnapshots(values, "snapshots", status.snapshots().ofRouterOrNull());
        addSnapshots(values, "shared snapshots", status.snapshots().ofPlaneOrNull());
        return values;
    }

    private static void addSnapshots(
            SequencedMap<String, Long> values, String what, SnapshotStatus statusOrNull) {
        if (statusOrNull != null) {
            values.put(what + " taken", statusOrNull.taken());
            values.put(what + " failed", statusOrNull.failed());
            statusOrNull
                    .abandoned()
                    .forEach((cause, count) -> values.put(what + " abandoned: " + cause, count));
            values.put(what + ": bytes of the last", statusOrNull.lastBytes());
            values.put(what + ": blocks restored", statusOrNull.restoredBlocks());
        }
    }

    /** Sets the values to those of now; nothing once it is closed. */
    synchronized void write() {
        if (closed) {
            return;
        }
        final long nowMs = epochMs.getAsLong();
        int counter = 0;
        for (long value : values(status.get()).values()) {
            file.set(ofRouter.get(counter++), value);
        }
        final List<Worker> present = workers.get();
        freeAllBut(present, nowMs);
        for (int n = Math.min(WORKERS_AT_ONCE, present.size()); n > 0; n--) {
            next = next + 1 < present.size() ? next + 1 : 0;
            write(present.get(next), nowMs);
        }
        file.written(nowMs);
    }

    private void freeAllBut(List<Worker> present, long nowMs) {
        if (ofWorkers.isEmpty()) {
            return;
        }
        final Set<Worker> kept = Collections.newSetFromMap(new IdentityHashMap<>());
        kept.addAll(present);
        ofWorkers
                .entrySet()
                .removeIf(
                        entry -> {
                            final boolean removed = !kept.contains(entry.getKey());
                            if (removed) {
                                entry.getValue().forEach(counter -> file.free(counter, nowMs));
                            }
                            return removed;
                        });
    }

    private void write(Worker worker, long nowMs) {
        final List<Integer> counters = ofWorkers.computeIfAbsent(worker, _ -> new ArrayList<>());
        allocate(worker, counters, nowMs);
        final WorkerState state = WorkerState.of(worker);
        for (int i = 0; i < counters.size(); i++) {
            file.set(counters.get(i), OF_WORKER.get(i).value().applyAsLong(state));
        }
    }

    /** Adds the counters that are missing; without room as many as fit, the others another time. */
    private void allocate(Worker worker, List<Integer> counters, long nowMs) {
        while (counters.size() < OF_WORKER.size()) {
            final int kind = counters.size();
            final int counter =
                    file.allocate(
                            "worker "
                                    + worker.name()
                                    + "/"
                                    + worker.dpRank()
                                    + ": "
                                    + OF_WORKER.get(kind).label(),
                            WORKER_TYPE + kind,
                            nowMs);
            if (counter == CountersFile.NONE) {
                return;
            }
            counters.add(counter);
        }
    }

    /** Sets the values once more and says in the file that the router has ended. */
    @Override
    public void close() {
        try {
            synchronized (this) {
                write();
                closed = true;
            }
        } finally {
            file.close();
        }
    }
}
