package io.kvasir.pipeline.source;

import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.index.CopyRule;
import io.kvasir.core.index.PrefixIndex;
import io.kvasir.core.index.PrefixIndexConfig;
import io.kvasir.pipeline.events.IndexApplier;
import io.kvasir.pipeline.wire.ApplyListener;
import io.kvasir.pipeline.wire.KvBatch;
import io.kvasir.pipeline.wire.RecoveryQuery;
import io.kvasir.testsupport.Seeds;
import io.kvasir.testsupport.Trials;

import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.PriorityQueue;
import java.util.Queue;
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;

/**
 * A router beside a network that loses, repeats and reorders, workers of several ranks that
 * restart, late registrations, and an index whose ring is full or which has no room: when all is
 * good again the router knows of each worker what is true.
 */
@Order(1) // takes long: begins first, beside the others
class RecoveryModelTest {
    private static final int WORKERS = 3;
    private static final int STORIES = Trials.of(15, 200);
    private static final int STEPS = 400;
    private static final int RING_EVENTS = 12;
    private static final int PART_BYTES = 1_500;
    private static final long TICK_NS = TimeUnit.MILLISECONDS.toNanos(50);
    private static final long MOST_DELAY_NS = TimeUnit.MILLISECONDS.toNanos(180);
    private static final long SETTLE_NS = TimeUnit.MINUTES.toNanos(30);

    /** Something that arrives later. */
    private record Arrival(long atNs, long order, Runnable what) {}

    /** One router, its workers, and the network between them. */
    private static final class Story implements AutoCloseable {
        private final Random random;
        private final Queue<Arrival> arrivals =
                new PriorityQueue<>(
                        Comparator.comparingLong(Arrival::atNs).thenComparingLong(Arrival::order));
        private final PrefixIndex index =
                new PrefixIndex(new PrefixIndexConfig(WORKERS + 1, 1 << 10, 1 << 10));
        private final IndexApplier applier = new IndexApplier(index);
        private final List<SimulatedWorker> workers = new ArrayList<>();
        private final List<EngineStream> streams = new ArrayList<>();
        private final List<Map<Long, Set<Set<String>>>> truths = new ArrayList<>(); // by event
        private final EventPlane plane = new EventPlane(EventPlane.KNOWN_ONLY, this::nowNs);
        private long nowNs = 1;
        private long order;
        private boolean lossy = true;
        private boolean connected = true;
        private final boolean tight; // another worker takes room of the index

        private Story(long seed, boolean recovers) {
            this.random = new Random(seed);
            tight = random.nextInt(3) == 0;
            if (recovers) {
                plane.recoverOver(this::ask, RecoveryLimits.DEFAULT);
            }
            for (int i = 0; i < WORKERS; i++) {
                truths.add(new HashMap<>());
                workers.add(
                        new SimulatedWorker(
                                100 + i / 2,
                                i % 2,
                                i,
                                RING_EVENTS,
                                bytes -> send(() -> plane.onMessage(bytes, 0, bytes.length))));
            }
        }

        private long nowNs() {
            return nowNs;
        }

        /** Sends something to the router. */
        private void send(Runnable what) {
            if (!connected || (lossy && random.nextInt(10) == 0)) {
                return;
            }
            final int times = lossy && random.nextInt(20) == 0 ? 2 : 1;
            for (int i = 0; i < times; i++) {
                final long delay = lossy ? (long) (random.nextDouble() * MOST_DELAY_NS) : 0;
                arrivals.add(new Arrival(nowNs + delay, order++, what));
            }
        }

        private boolean ask(long queryId, RecoveryQuery query) {
            if (!connected) {
                return false;
            }
            final SimulatedWorker worker =
                    workers.get(2 * ((int) query.workerId() - 100) + query.dpRank());
            if (lossy && random.nextInt(20) == 0) {
                send(() -> plane.onNoAnswerer(queryId)); // its relay restarts
                return true;
            }
            send(
                    () -> {
                        // the worker is there now as it is then
                        for (byte[] part : worker.indexer().answer(query.toBytes(), PART_BYTES)) {
                            send(() -> plane.onAnswer(queryId, part));
                        }
                    });
            return true;
        }

        /** The index's ring may be full. */
        private boolean offer(KvBatch batch) {
            return (!lossy || random.nextInt(20) > 0) && applier.offer(batch);
        }

        /** Another worker takes the room of these, or gives it back. */
        private void other(boolean all) {
            final KvBatch batch = new KvBatch();
            batch.reset(
                    WORKERS, KvBatch.NO_SEQUENCE, CopyRule.LAST_COPY, false, ApplyListener.NONE);
            if (all || random.nextInt(8) == 0) {
                batch.addCleared();
            } else {
                final long[] names = random.longs(100, 1_000, 1L << 40).toArray();
                batch.addStored(true, 0, names, names, names.length);
            }
            applier.offer(batch);
        }

        private void register(SimulatedWorker worker) {
            final EngineStream stream =
                    new EngineStream(
                            SourceConfig.ofRouterEvents("w" + worker.slot, worker.slot, 1)
                                    .withDpRank(worker.rank),
                            this::offer,
                            this::nowNs);
            if (streams.size() == worker.slot) {
                streams.add(stream);
            } else {
                streams.set(worker.slot, stream);
            }
            plane.register(worker.id, worker.rank, stream);
        }

        /** A worker goes, and comes again. */
        private void registerAnew(SimulatedWorker worker) {
            plane.remove(worker.id, worker.rank);
            streams.get(worker.slot).close();
            final KvBatch clear = new KvBatch();
            clear.reset(
                    worker.slot,
                    KvBatch.NO_SEQUENCE,
                    CopyRule.LAST_COPY,
                    false,
                    ApplyListener.NONE);
            clear.addCleared();
            applier.offer(clear);
            register(worker);
        }

        /** What is called exact is what the worker held after its last event that is here. */
        private void check() {
            for (int i = 0; i < streams.size(); i++) {
                final EngineStream stream = streams.get(i);
                if (stream.state() == IndexState.EXACT) {
                    final Set<String> held = held(workers.get(i));
                    final long event = Math.max(0, stream.lastNumber());
                    assertTrue(
                            truths.get(i).getOrDefault(event, Set.of()).contains(held),
                            () ->
                                    "event "
                                            + event
                                            + " of worker "
                                            + stream.status()
                                            + held
                                            + truths.get(stream.config().slot()).get(event));
                }
            }
        }

        private void remember(SimulatedWorker worker) {
            truths.get(worker.slot)
                    .computeIfAbsent(worker.lastEventId(), _ -> new HashSet<>())
                    .add(worker.held());
        }

        private void tick() {
            nowNs += TICK_NS;
            while (!arrivals.isEmpty() && arrivals.peek().atNs <= nowNs) {
                arrivals.remove().what.run();
            }
            plane.tick();
        }

        private void play() throws IOException {
            int registered = 0;
            workers.forEach(this::remember);
            for (int step = 0; step < STEPS; step++) {
                if (registered < WORKERS && (step == STEPS / 2 || random.nextInt(60) == 0)) {
                    register(workers.get(registered++));
                }
                final SimulatedWorker worker = workers.get(random.nextInt(WORKERS));
                final int what = random.nextInt(200);
                if (what == 0) {
                    worker.restart(random.nextBoolean());
                } else if (what == 1) {
                    connected = !connected;
                    if (connected) {
                        plane.onConnected();
                    } else {
                        plane.onDisconnected("cut");
                    }
                } else if (what < 6 && tight) {
                    other(false);
                } else if (what == 7 && worker.slot < registered) {
                    registerAnew(worker);
                } else {
                    worker.change(random);
                }
                remember(worker);
                if (random.nextInt(3) == 0) {
                    tick();
                    check();
                }
            }
            while (registered < WORKERS) {
                register(workers.get(registered++));
            }
            if (!connected) {
                connected = true;
                plane.onConnected();
            }
            lossy = false;
            other(true);
            for (SimulatedWorker worker : workers) {
                if (random.nextBoolean()) {
                    worker.store(null, 1); // else only a check of the tail finds what is missing
                }
            }
        }

        private boolean isRight() {
            return streams.stream().allMatch(stream -> stream.state() == IndexState.EXACT)
                    && workers.stream().allMatch(worker -> held(worker).equals(worker.held()));
        }

        private Set<String> held(SimulatedWorker worker) {
            final Set<String> all = new TreeSet<>();
            index.forEach(
                    (slot, name, sequence, copies) -> {
                        if (slot == worker.slot) {
                            all.add(name + " " + sequence);
                        }
                    });
            return all;
        }

        /** Waits until all is right, or for a long time. */
        private boolean settles() {
            for (long waited = 0; waited < SETTLE_NS && !isRight(); waited += TICK_NS) {
                tick();
            }
            return isRight();
        }

        @Override
        public String toString() {
            final StringBuilder text = new StringBuilder(plane.status().toString());
            for (int i = 0; i < streams.size(); i++) {
                final SimulatedWorker worker = workers.get(i);
                text.append("\n  last event ").append(worker.lastEventId()).append(", ");
                text.append(streams.get(i).status()).append("\n  held ").append(held(worker));
                text.append("\n  true ").append(worker.held());
            }
            return text.toString();
        }

        @Override
        public void close() {
            streams.forEach(EngineStream::close);
            index.close();
        }
    }

    @Tag("trials")
    @Test
    void afterAnyStoryTheRouterKnowsWhatIsTrue() throws IOException {
        final long seed = Seeds.next("RecoveryModelTest");
        long ranges = 0;
        long dumps = 0;
        long failed = 0;
        for (int i = 0; i < STORIES; i++) {
            try (Story story = new Story(seed + i, true)) {
                story.play();
                assertTrue(story.settles(), "story " + i + " of -Dseed=" + seed + ": " + story);
                ranges += story.plane.status().recoveredRanges();
                dumps += story.plane.status().recoveredDumps();
                failed += story.plane.status().failedRecoveries();
            }
        }
        System.out.println(
                STORIES
                        + " stories: "
                        + ranges
                        + " ranges, "
                        + dumps
                        + " dumps, "
                        + failed
                        + " failed queries");
        assertNotEquals(0, ranges);
        assertNotEquals(0, dumps);
        assertNotEquals(0, failed);
    }

    /** The check is checked: without queries the same stories do not end well. */
    @Test
    void withoutQueriesTheSameStoriesEndBadly() throws IOException {
        final long seed = Seeds.next("RecoveryModelTest without queries");
        int bad = 0;
        for (int i = 0; i < 10; i++) {
            try (Story story = new Story(seed + i, false)) {
                story.play();
                bad += story.settles() ? 0 : 1;
            }
        }
        assertNotEquals(0, bad);
    }
}
