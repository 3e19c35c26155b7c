package io.kvasir.nats.events;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.pipeline.source.EventPlane;
import io.kvasir.pipeline.source.IndexState;
import io.kvasir.router.EventPlaneWorker;
import io.kvasir.router.KvRouter;
import io.kvasir.router.Worker;
import io.kvasir.router.WorkerSpec;
import io.kvasir.testsupport.Seeds;
import io.kvasir.testsupport.Trials;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;

/**
 * Routers over one plane whose snapshots and messages are in memory: they start, end, are killed,
 * save in the middle of each other's steps and lose their lock; reads and writes fail, snapshots
 * are damaged, messages are dropped, the stream is made anew. A worker that a router calls EXACT
 * has all that was published. Where nothing was lost each is EXACT in the end, also for a router
 * that starts when the newest snapshot is damaged, but for workers that are not in a snapshot with
 * all that the stream has no more, as a router without them took it.
 */
class PlaneSnapshotsModelTest {
    private static final int TRIALS = Trials.of(3, 20);
    private static final int STEPS = 150;
    private static final int MOST_REPLICAS = 3;
    private static final int THRESHOLD = 6;
    private static final long[] WORKERS = {7, 8, 9};
    private static final long STAYING = 7;

    @Tag("trials")
    @Test
    void whatIsCalledExactIsAndInTheEndAllIs() throws Exception {
        final long seed = Seeds.next("PlaneSnapshotsModelTest");
        for (int trial = 0; trial < TRIALS; trial++) {
            try (Model model = new Model(seed + trial)) {
                try {
                    model.run();
                } catch (RuntimeException | AssertionError e) {
                    throw new AssertionError(
                            "trial with -Dseed="
                                    + (seed + trial)
                                    + "\n"
                                    + String.join("\n", model.trace),
                            e);
                }
            }
        }
    }

    @Test
    void nothingIsSavedOfAStreamMadeAnewBeforeItIsRead() throws Exception {
        try (Model model = new Model(1)) {
            model.quiet = true;
            final Replica one = model.start();
            one.add(STAYING);
            model.publish(2 * THRESHOLD, STAYING);
            model.settle();
            model.stream.makeAnew();
            model.publish(2 * THRESHOLD, STAYING);
            final List<String> before = model.bucket.names();
            assertFalse(one.snapshots.look(one.router));
            assertEquals(before, model.bucket.names());
            one.reader.read(Integer.MAX_VALUE);
            assertTrue(one.snapshots.look(one.router));
        }
    }

    @Test
    void nothingSavedIsNotConcludedFromAnOldList() throws Exception {
        try (Model model = new Model(1)) {
            model.quiet = true;
            final Replica saving = model.start();
            saving.add(STAYING);
            final Replica joining = new Replica(model, Duration.ofHours(1)); // trusts it for 1 s
            model.replicas.add(joining);
            model.publish(2 * THRESHOLD, STAYING);
            saving.reader.read(Integer.MAX_VALUE);
            assertTrue(saving.snapshots.look(saving.router));
            joining.add(STAYING);
            assertEquals(1, joining.snapshots.status().restoredWorkers());
        }
    }

    /** One that was cut off, while another saved twice and purged. */
    @Test
    void whatWasLostIsRestoredFromANewerSnapshot() throws Exception {
        try (Model model = new Model(1)) {
            model.quiet = true;
            final Replica saving = model.start();
            saving.add(STAYING);
            final Replica cutOff = model.start();
            cutOff.add(STAYING);
            for (int i = 0; i < 3; i++) {
                model.publish(2 * THRESHOLD, STAYING);
                model.stream.forgetInactive(); // cutOff's consumer
                saving.reader.read(Integer.MAX_VALUE);
                assertTrue(saving.snapshots.look(saving.router));
            }
            model.publish(1, STAYING);
            cutOff.reader.read(Integer.MAX_VALUE);
            assertEquals(IndexState.DEGRADED, cutOff.workerOrNull(STAYING).state());
            model.settle();
            model.assertKnown(cutOff);
        }
    }

    /** A router and its ways to what is shared. */
    private static final class Replica implements AutoCloseable {
        private final MemoryLockedStore store;
        private final PlaneSnapshots snapshots;
        private final KvRouter router;
        private MemoryStream.Reader reader;
        private boolean all; // it has read all, and nothing was published since
        private boolean looking;

        Replica(Model model, Duration retry) throws IOException {
            store = new MemoryLockedStore(model.bucket, model::mayFail);
            snapshots =
                    PlaneSnapshots.open(
                            store,
                            model.stream.new View(model::mayFail),
                            PlaneReplica.past(THRESHOLD),
                            step -> model.during(this, step),
                            retry);
            router =
                    KvRouter.builder()
                            .blockSize(PlaneReplica.BLOCK_SIZE)
                            .maxWorkers(4)
                            .maxBlocks(2_048, 4_096)
                            .tickedBy(() -> 0)
                            .planeState(new PlaneReplica.ByHand(snapshots))
                            .eventPlane(plane -> transport(model, plane))
                            .build();
        }

        private AutoCloseable transport(Model model, EventPlane plane) {
            reader = model.stream.new Reader(plane, snapshots.start());
            return reader::close;
        }

        Worker workerOrNull(long id) {
            return router.workers().stream().filter(w -> w.id() == id).findAny().orElse(null);
        }

        void add(long id) {
            router.addWorker(
                    WorkerSpec.of(id, "w" + id, "http://w")
                            .onEventPlane(new EventPlaneWorker(id, 0)));
        }

        @Override
        public void close() {
            router.close();
        }
    }

    /** One run. */
    private static final class Model implements AutoCloseable {
        private final Random random;
        private final List<String> trace = new ArrayList<>();
        private final MemoryStream stream = new MemoryStream();
        private final MemoryLockedStore.Bucket bucket = new MemoryLockedStore.Bucket();
        private final List<Replica> replicas = new ArrayList<>();
        private final Set<Long> removed = new HashSet<>(); // by a router that went on
        private final PlanePublisher publisher;
        private final boolean losing; // messages and snapshots are lost
        private boolean failing; // now and then something cannot be reached
        private boolean quiet; // nothing happens any more by itself

        Model(long seed) {
            random = new Random(seed);
            random.nextInt();
            losing = random.nextInt(3) == 0;
            publisher = new PlanePublisher(stream::publish, random.nextLong());
        }

        void mayFail() throws IOException {
            if (failing && random.nextInt(6) == 0) {
                throw new IOException("as the test wants it");
            }
        }

        void run() throws Exception {
            publish(1, WORKERS);
            for (int step = 0; step < STEPS; step++) {
                any(0);
                check();
            }
            failing = false;
            quiet = true;
            bucket.endLease();
            stream.forgetInactive();
            settleWithNext();
            for (Replica each : List.copyOf(replicas)) {
                look(each);
                settleWithNext();
            }
            replicas.forEach(Replica::close);
            replicas.clear();
            publish(1, WORKERS); // whose number says whether any is missing
            startAlone();
            if (!losing && !bucket.names().isEmpty()) {
                final String newest = snapshots().newestOrNull().toString();
                bucket.damage(newest, new byte[0]);
                trace.add("damaged " + newest);
                startAlone();
            }
        }

        /** One that has been restored may be stale until its next event. */
        private void settleWithNext() throws Exception {
            for (int i = 0; i < 2; i++) {
                publish(1, WORKERS);
                settle();
            }
            for (Replica each : replicas) {
                assertKnown(each);
            }
        }

        private void startAlone() throws Exception {
            try (Replica alone = start()) {
                for (long worker : WORKERS) {
                    alone.add(worker);
                }
                settle();
                assertKnown(alone);
                replicas.remove(alone);
            }
        }

        private SnapshotCatalogue snapshots() throws IOException {
            return SnapshotCatalogue.read(
                    new MemoryLockedStore(bucket, () -> {}),
                    stream.made(),
                    PlaneReplica.BLOCK_SIZE);
        }

        /** Whether the stream has all that came after a snapshot that has all before. */
        private boolean isSavedWhole(Worker worker) throws IOException {
            final SnapshotCatalogue.Found found = snapshots().of(worker.planeOrNull());
            return found != null
                    && found.section().mark().complete()
                    && found.section().mark().position() >= stream.first() - 1;
        }

        private void settle() throws InterruptedException {
            for (Replica each : replicas) {
                for (int i = 0; i < 10; i++) { // what was not restored is tried again
                    look(each);
                    each.all = each.reader.read(Integer.MAX_VALUE);
                }
            }
            check();
        }

        private void any(int depth) throws Exception {
            final Replica one = anyReplica();
            switch (random.nextInt(18)) {
                case 0, 1 -> {
                    if (replicas.size() < MOST_REPLICAS) {
                        start();
                    }
                }
                case 2 -> end(one);
                case 3, 4, 5 ->
                        publish(1 + random.nextInt(6), WORKERS[random.nextInt(WORKERS.length)]);
                case 6, 7 -> changeWorker(one);
                case 8, 9, 10 -> {
                    if (one != null) {
                        final int most = random.nextBoolean() ? 1 + random.nextInt(5) : 1_000;
                        one.all = one.reader.read(most);
                        trace.add(replicas.indexOf(one) + " reads, all " + one.all);
                    }
                }
                case 11 -> {
                    if (one != null) {
                        one.reader.disconnect();
                        one.all = false;
                        trace.add(replicas.indexOf(one) + " is disconnected");
                    }
                }
                case 12 -> {
                    bucket.endLease();
                    stream.forgetInactive();
                    trace.add("leases end");
                }
                case 13 -> {
                    failing = random.nextInt(3) == 0;
                    trace.add("failing " + failing);
                }
                case 14 -> lose();
                default -> look(one);
            }
            assertTrue(depth < 10);
        }

        /** Between two steps of a snapshot. */
        void during(Replica one, PlaneSnapshots.Step step) {
            if (quiet) {
                return;
            }
            trace.add(replicas.indexOf(one) + " is at " + step);
            if (random.nextInt(3) == 0) {
                try {
                    any(1);
                } catch (Exception e) {
                    throw new AssertionError(e);
                }
            }
            if (random.nextInt(12) == 0) {
                trace.add("and is stopped there");
                if (random.nextBoolean()) {
                    one.store.kill();
                }
                throw new IllegalArgumentException("as the test wants it");
            }
        }

        private Replica anyReplica() {
            return replicas.isEmpty() ? null : replicas.get(random.nextInt(replicas.size()));
        }

        private Replica start() throws IOException {
            final boolean before = failing;
            final Replica made = new Replica(this, Duration.ZERO);
            failing = before;
            replicas.add(made);
            trace.add("start of " + (replicas.size() - 1));
            return made;
        }

        private void end(Replica one) {
            if (one == null || one.looking) {
                return;
            }
            trace.add("end of " + replicas.indexOf(one));
            if (random.nextBoolean()) {
                one.reader.kill();
            }
            replicas.remove(one);
            one.close();
        }

        private void publish(int events, long... workers) throws Exception {
            publisher.publish(events, workers);
            if (!quiet && random.nextInt(20) == 0) {
                publisher.clear(workers[0]);
            }
            replicas.forEach(each -> each.all = false);
            trace.add(events + " of " + Arrays.toString(workers) + ", stream " + stream.size());
        }

        private void changeWorker(Replica one) {
            if (one == null) {
                return;
            }
            final long id = WORKERS[random.nextInt(WORKERS.length)];
            final Worker there = one.workerOrNull(id);
            one.all = false; // it may have to begin again
            if (there == null) {
                one.add(id);
                trace.add(id + " joins " + replicas.indexOf(one));
            } else if (id != STAYING) {
                one.router.removeWorker(there);
                removed.add(id);
                trace.add(id + " leaves " + replicas.indexOf(one));
            }
        }

        private void look(Replica one) throws InterruptedException {
            if (one == null || one.looking) {
                return;
            }
            one.looking = true;
            one.all = false; // workers may have joined anew
            final boolean taken = one.snapshots.look(one.router);
            one.looking = false;
            trace.add(replicas.indexOf(one) + " looks, taken " + taken + " " + bucket.names());
        }

        private void lose() {
            if (!losing) {
                return;
            }
            switch (random.nextInt(4)) {
                case 0 -> {
                    stream.makeAnew();
                    trace.add("the stream is made anew");
                }
                case 1 -> {
                    stream.drop(1 + random.nextInt(5));
                    trace.add("messages are dropped");
                }
                default -> {
                    final List<String> names = bucket.names();
                    names.removeIf(name -> bucket.bytes(name).length == 0);
                    if (!names.isEmpty()) {
                        final String name = names.get(random.nextInt(names.size()));
                        final byte[] bytes = bucket.bytes(name).clone();
                        if (random.nextBoolean()) {
                            bytes[random.nextInt(bytes.length)] ^= (byte) (1 + random.nextInt(255));
                            bucket.damage(name, bytes);
                        } else {
                            bucket.damage(name, Arrays.copyOf(bytes, random.nextInt(bytes.length)));
                        }
                        trace.add("damaged " + name);
                    }
                }
            }
            replicas.forEach(each -> each.all = false);
        }

        private void check() {
            for (Replica each : replicas) {
                if (each.all) {
                    for (Worker worker : each.router.workers()) {
                        if (worker.state() == IndexState.EXACT) {
                            assertEquals(
                                    publisher.held(worker.id()).get(worker.id()),
                                    PlaneReplica.held(each.router).get(worker.id()),
                                    () -> "EXACT " + worker + " of " + replicas.indexOf(each));
                        }
                    }
                }
            }
        }

        private void assertKnown(Replica replica) throws IOException {
            assertTrue(replica.all);
            for (Worker worker : replica.router.workers()) {
                if (!losing) {
                    final boolean mayLack = removed.contains(worker.id()) && !isSavedWhole(worker);
                    assertTrue(
                            worker.state() == IndexState.EXACT
                                    || (mayLack && worker.state() == IndexState.DEGRADED),
                            () ->
                                    worker
                                            + " of "
                                            + replicas.indexOf(replica)
                                            + " is "
                                            + worker.source().status());
                }
            }
        }

        @Override
        public void close() {
            replicas.forEach(Replica::close);
        }
    }
}
