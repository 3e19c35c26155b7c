package io.kvasir.nats.events;

import io.kvasir.core.index.PrefixIndex;
import io.kvasir.nats.NatsAccess;
import io.kvasir.nats.NatsStore;
import io.kvasir.nats.state.SteppedStores;
import io.kvasir.pipeline.events.IndexPipeline;
import io.kvasir.registry.FaultyStore;
import io.kvasir.registry.LeaseLock;
import io.kvasir.registry.LeasedStore;
import io.kvasir.router.EventPlaneWorker;
import io.kvasir.router.KvRouter;
import io.kvasir.router.PlaneState;
import io.kvasir.router.Worker;
import io.kvasir.router.WorkerSpec;
import io.kvasir.router.state.SnapshotStatus;

import java.io.IOException;
import java.time.Duration;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.Consumer;

/** One router of several over an event plane, whose snapshots the test takes at its own time. */
final class PlaneReplica implements AutoCloseable {
    static final int BLOCK_SIZE = 4;
    private static final Duration TIMEOUT = Duration.ofSeconds(20);
    static final Duration RETRY = Duration.ofSeconds(10);
    private static final int AT_ONCE = 1 << 20;

    final FaultyStore locks;
    final PlaneSnapshots snapshots;
    final KvRouter router;

    /**
     * @param lockStore where the lock is; how long one that is silent keeps it is its matter
     * @param steps called after each step of a snapshot, with its name in small letters
     */
    PlaneReplica(
            String url,
            EventSubjects names,
            LeasedStore lockStore,
            PlaneSnapshotConfig config,
            Consumer<String> steps,
            long... workers)
            throws IOException {
        this(url, access(url), names, lockStore, config, steps, RETRY, workers);
    }

    /** The same with another way to what is saved, and another pause after what has failed. */
    PlaneReplica(
            String url,
            NatsAccess saved,
            EventSubjects names,
            LeasedStore lockStore,
            PlaneSnapshotConfig config,
            Consumer<String> steps,
            Duration retry,
            long... workers)
            throws IOException {
        final NatsAccess access = access(url);
        locks = new FaultyStore(lockStore);
        snapshots =
                PlaneSnapshots.open(
                        saved,
                        names,
                        SteppedStores.open(
                                saved, names.bucket(), new LeaseLock(locks, names.bucket()), steps),
                        config,
                        step -> steps.accept(step.name().toLowerCase(Locale.ROOT)),
                        retry);
        router =
                KvRouter.builder()
                        .blockSize(config.blockSize())
                        .maxBlocks(50_000, 100_000)
                        .planeState(new ByHand(snapshots))
                        .eventPlane(
                                plane ->
                                        new JetStreamEventSource(
                                                access, names, 1, null, plane, snapshots.start()))
                        .build();
        for (long worker : workers) {
            add(worker);
        }
    }

    static NatsAccess access(String url) {
        return new NatsAccess(url, null, null, TIMEOUT);
    }

    /** A store for locks in NATS. */
    static LeasedStore locks(String url, Duration ttl) {
        return new NatsStore(access(url), "locks-" + ttl.toSeconds(), ttl);
    }

    static PlaneSnapshotConfig past(long threshold) {
        return new PlaneSnapshotConfig(threshold, BLOCK_SIZE, 1, false);
    }

    /** The same without a thread. */
    record ByHand(PlaneSnapshots snapshots) implements PlaneState {
        @Override
        public Restored restore(
                EventPlaneWorker worker, int slot, IndexPipeline pipeline, PrefixIndex index) {
            return snapshots.restore(worker, slot, pipeline, index);
        }

        @Override
        public void start(KvRouter started) {}

        @Override
        public SnapshotStatus status() {
            return snapshots.status();
        }

        @Override
        public void close() {
            snapshots.close();
        }
    }

    Worker add(long worker) {
        return router.addWorker(
                WorkerSpec.of(worker, "w" + worker, "http://w")
                        .onEventPlane(new EventPlaneWorker(worker, 0)));
    }

    /** Takes a snapshot if one is due; whether it was taken. */
    boolean look() throws InterruptedException {
        return snapshots.look(router);
    }

    /** Engine hashes that each worker holds. */
    Map<Long, Set<Long>> held() {
        return held(router);
    }

    /** The same of any router. */
    static Map<Long, Set<Long>> held(KvRouter router) {
        final Map<Long, Set<Long>> held = new TreeMap<>();
        try {
            for (Worker worker : router.workers()) {
                final Set<Long> names = new TreeSet<>();
                int from = 0;
                while (from != PrefixIndex.NO_MORE_RUNS) {
                    from =
                            router.indexPipeline()
                                    .visitRuns(
                                            worker.slot(),
                                            from,
                                            AT_ONCE,
                                            (depth, parent, engine, local, count) -> {
                                                for (int i = 0; i < count; i++) {
                                                    names.add(engine[i]);
                                                }
                                            });
                }
                held.put(worker.id(), names);
            }
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
        return held;
    }

    @Override
    public void close() {
        router.close();
    }
}
