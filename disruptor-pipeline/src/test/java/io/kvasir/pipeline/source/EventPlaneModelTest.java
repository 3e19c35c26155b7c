package io.kvasir.pipeline.source;

import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.index.CopyRule;
import io.kvasir.core.index.PrefixIndex;
import io.kvasir.core.index.PrefixIndexConfig;
import io.kvasir.pipeline.events.IndexApplier;
import io.kvasir.pipeline.wire.ApplyListener;
import io.kvasir.pipeline.wire.DecoderMemory;
import io.kvasir.pipeline.wire.KvBatch;
import io.kvasir.pipeline.wire.RouterEventWriter;
import io.kvasir.testsupport.Seeds;
import io.kvasir.testsupport.Trials;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;

/**
 * A plane over a transport that keeps its messages, whose workers come, go, and are restored from
 * snapshots of other routers, behind this one or ahead of it, or from an index that has outlived
 * the process. What is vouched for is there, and in the end all is.
 */
class EventPlaneModelTest {
    private static final int TRIALS = Trials.of(120, 2_500);
    private static final int STEPS = 120;
    private static final int WORKERS = 4;
    private static final int BLOCK = 4;
    private static final long STORE = 99;

    @Tag("trials")
    @Test
    void whatIsVouchedForIsThereAndInTheEndAllIs() {
        final long seed = Seeds.next("EventPlaneModelTest");
        for (int trial = 0; trial < TRIALS; trial++) {
            try (Model model = new Model(new Random(seed + trial))) {
                model.run();
            }
        }
    }

    /** A message: which worker has spoken, and the number of its event. */
    private record Said(int worker, long event) {}

    /** What the index has of a worker. */
    private static final class Held {
        private final Set<Long> events = new TreeSet<>();
        private long position; // of the last message
    }

    /** One run. */
    private static final class Model implements AutoCloseable {
        private final Random random;
        private final List<Said> log = new ArrayList<>(); // number 1 first
        private final long[] lastEvents = new long[WORKERS];
        private final Map<Integer, Held> held = new HashMap<>(); // of those with a stream
        private final Map<Integer, Held> left = new HashMap<>(); // by the process before
        private final PrefixIndex index =
                new PrefixIndex(new PrefixIndexConfig(WORKERS, 4_096, 4_096));
        private final IndexApplier applier = new IndexApplier(index);
        private PlanePosition kept; // with the index
        private EventPlane plane = plane();
        private int passed; // messages that the transport has passed on
        private int purged; // messages that it has no more

        Model(Random random) {
            this.random = random;
        }

        @Override
        public void close() {
            index.close();
        }

        private EventPlane plane() {
            final EventPlane made =
                    new EventPlane(EventPlane.KNOWN_ONLY, position -> kept = position, kept);
            made.keepsMessages();
            return made;
        }

        void run() {
            publish(random.nextInt(20));
            passed = random.nextInt(log.size() + 1); // where a snapshot is
            plane.onResumed(new PlanePosition(STORE, passed));
            for (int step = 0; step < STEPS; step++) {
                switch (random.nextInt(10)) {
                    case 0, 1 -> publish(1 + random.nextInt(4));
                    case 2 -> change(random.nextInt(WORKERS));
                    case 4 -> purge();
                    case 5 -> restart();
                    case 3 -> {
                        beginAgain();
                        check();
                    }
                    default -> pass();
                }
                check();
            }
            beginAgain();
            while (passed < log.size()) {
                pass();
            }
            held.keySet().forEach(worker -> assertHasAll(worker, log.size()));
        }

        private void publish(int count) {
            for (int i = 0; i < count; i++) {
                final int worker = random.nextInt(WORKERS);
                log.add(new Said(worker, ++lastEvents[worker]));
            }
        }

        /** A worker comes, with what a snapshot has of it or without, or it goes. */
        private void change(int worker) {
            if (held.remove(worker) != null) {
                plane.remove(worker, 0);
                return;
            }
            final Held restored = left.containsKey(worker) ? left.remove(worker) : saved(worker);
            held.put(worker, restored);
            final EngineStream stream =
                    new EngineStream(
                            SourceConfig.ofRouterEvents("w" + worker, worker, BLOCK),
                            batch -> {
                                assertTrue(restored.events.add(batch.sequence()), "twice");
                                restored.position = batch.position();
                                return applier.offer(batch);
                            },
                            () -> 0);
            if (restored.events.isEmpty()) {
                plane.register(worker, 0, stream);
            } else {
                stream.startAfter(
                        new StreamStart(
                                Collections.max(restored.events),
                                1,
                                true,
                                0,
                                new StreamMemory(RemovalRule.LAST_COPY, DecoderMemory.NONE)));
                plane.register(worker, 0, stream, new PlanePosition(STORE, restored.position));
            }
        }

        /** What a snapshot of another router has, or nothing. */
        private Held saved(int worker) {
            final Held saved = new Held();
            if (random.nextBoolean()) {
                saved.position = between(purged, log.size());
                saved.events.addAll(saidUpTo(worker, saved.position));
            }
            return saved;
        }

        /** The process ends, and another goes on with its index. */
        private void restart() {
            if (kept == null || random.nextInt(4) > 0) {
                return;
            }
            left.putAll(held);
            held.clear();
            left.values().removeIf(worker -> worker.events.isEmpty());
            left.values().forEach(one -> one.position = Math.max(one.position, kept.upTo()));
            plane = plane();
            left.keySet().forEach(worker -> plane.expect(worker, 0));
            passed = Math.max((int) kept.upTo(), purged);
            plane.onResumed(kept);
        }

        /** Where another router's snapshot has all that may be missing. */
        private void purge() {
            if (!plane.isAgainWanted() && left.isEmpty()) {
                final int most = kept == null ? passed : (int) Math.min(passed, kept.upTo());
                purged = between(purged, Math.max(purged, most));
            }
        }

        private int between(int least, int most) {
            return least >= most ? most : least + random.nextInt(most - least + 1);
        }

        private Set<Long> saidUpTo(int worker, long number) {
            return said(worker, 0, number);
        }

        private Set<Long> said(int worker, int after, long upTo) {
            final Set<Long> events = new TreeSet<>();
            for (Said said : log.subList(Math.min(after, (int) upTo), (int) upTo)) {
                if (said.worker == worker) {
                    events.add(said.event);
                }
            }
            return events;
        }

        private void beginAgain() {
            final long after = plane.beginsAgainAfter();
            if (after != EventPlane.NOT_AGAIN) {
                passed = Math.max((int) after, purged);
            }
        }

        private void pass() {
            if (passed < log.size()) {
                final Said said = log.get(passed);
                passed++;
                final KvBatch batch = new KvBatch();
                batch.reset(0, 0, CopyRule.LAST_COPY, false, ApplyListener.NONE);
                final long name = 1 + said.event * WORKERS + said.worker;
                batch.addStored(true, 0, new long[] {name}, new long[] {name}, 1);
                final byte[] bytes =
                        RouterEventWriter.json(said.worker, 0, said.event, batch, batch.first());
                plane.onKept(bytes, 0, bytes.length, passed, EventPlane.NO_PUBLISHER);
            }
            if (random.nextBoolean()) {
                plane.settle();
            }
        }

        private void check() {
            final long upTo = plane.vouchesUpTo(STORE, purged + 1);
            held.keySet().forEach(worker -> assertHasAll(worker, upTo));
            for (int worker = 0; worker < WORKERS; worker++) {
                final long number = random.nextInt(log.size() + 1);
                assertTrue(
                        number >= upTo
                                || !plane.isSilentAfter(worker, 0, number)
                                || saidUpTo(worker, number).equals(saidUpTo(worker, upTo)),
                        "what worker " + worker + " said after " + number);
            }
            if (random.nextBoolean()) {
                plane.keep();
                final long followed = plane.positionOrNull().upTo();
                held.keySet().forEach(worker -> assertHasAll(worker, followed));
            }
        }

        private void assertHasAll(int worker, long upTo) {
            final Set<Long> events = held.get(worker).events;
            assertTrue(
                    events.containsAll(said(worker, purged, upTo)),
                    () -> "worker " + worker + " has " + events + ", not up to " + upTo);
        }
    }
}
