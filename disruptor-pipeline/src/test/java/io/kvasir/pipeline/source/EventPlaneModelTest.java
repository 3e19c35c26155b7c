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

import org.junit.jupiter.api.Test;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;

/**
 * A plane over a transport that keeps its messages, whose workers come, go, and are restored from
 * snapshots of other routers, behind this one or ahead of it. What is vouched for is there, and in
 * the end all is.
 */
class EventPlaneModelTest {
    private static final int TRIALS = 500;
    private static final int STEPS = 120;
    private static final int WORKERS = 4;
    private static final int BLOCK = 4;
    private static final long STORE = 99;

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

    /** One run. */
    private static final class Model implements AutoCloseable {
        private final Random random;
        private final List<Said> log = new ArrayList<>(); // number 1 first
        private final long[] lastEvents = new long[WORKERS];
        private final Map<Integer, Set<Long>> had =
                new HashMap<>(); // events, of those with a stream
        private final PrefixIndex index =
                new PrefixIndex(new PrefixIndexConfig(WORKERS, 4_096, 4_096));
        private final IndexApplier applier = new IndexApplier(index);
        private final EventPlane plane = new EventPlane(EventPlane.KNOWN_ONLY);
        private int passed; // messages that the transport has passed on
        private int purged; // messages that it has no more

        Model(Random random) {
            this.random = random;
        }

        @Override
        public void close() {
            index.close();
        }

        void run() {
            plane.keepsMessages();
            publish(random.nextInt(20));
            passed = random.nextInt(log.size() + 1); // where a snapshot is
            plane.onResumed(new PlanePosition(STORE, passed));
            for (int step = 0; step < STEPS; step++) {
                switch (random.nextInt(9)) {
                    case 0, 1 -> publish(1 + random.nextInt(4));
                    case 2 -> change(random.nextInt(WORKERS));
                    case 4 -> purge();
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
            had.keySet().forEach(worker -> assertHasAll(worker, log.size()));
        }

        private void publish(int count) {
            for (int i = 0; i < count; i++) {
                final int worker = random.nextInt(WORKERS);
                log.add(new Said(worker, ++lastEvents[worker]));
            }
        }

        /** A worker comes, with what a snapshot has of it or without, or it goes. */
        private void change(int worker) {
            if (had.remove(worker) != null) {
                plane.remove(worker, 0);
                return;
            }
            final int upTo = random.nextBoolean() ? 0 : between(purged, log.size());
            final Set<Long> restored = saidUpTo(worker, upTo);
            final Set<Long> events = new TreeSet<>(restored);
            had.put(worker, events);
            final EngineStream stream =
                    new EngineStream(
                            SourceConfig.ofRouterEvents("w" + worker, worker, BLOCK),
                            batch -> {
                                assertTrue(events.add(batch.sequence()), "passed twice");
                                return applier.offer(batch);
                            },
                            () -> 0);
            if (restored.isEmpty()) {
                plane.register(worker, 0, stream);
            } else {
                stream.startAfter(
                        new StreamStart(
                                restored.size(),
                                1,
                                true,
                                0,
                                new StreamMemory(RemovalRule.LAST_COPY, DecoderMemory.NONE)));
                plane.register(worker, 0, stream, new PlanePosition(STORE, upTo));
            }
        }

        /** Where another router's snapshot has all that may be missing. */
        private void purge() {
            if (!plane.isAgainWanted()) {
                purged = between(purged, passed);
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
            final long upTo = plane.vouchesUpTo(purged + 1);
            had.keySet().forEach(worker -> assertHasAll(worker, upTo));
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
                final long kept = plane.positionOrNull().upTo();
                had.keySet().forEach(worker -> assertHasAll(worker, kept));
            }
        }

        private void assertHasAll(int worker, long upTo) {
            final Set<Long> events = had.get(worker);
            assertTrue(
                    events.containsAll(said(worker, purged, upTo)),
                    () -> "worker " + worker + " has " + events + ", not up to " + upTo);
        }
    }
}
