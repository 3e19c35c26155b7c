package io.kvasir.router;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.kvasir.core.hash.BlockHasher;
import io.kvasir.core.index.CopyRule;
import io.kvasir.pipeline.source.EventPlane;
import io.kvasir.pipeline.source.IndexState;
import io.kvasir.pipeline.wire.ApplyListener;
import io.kvasir.pipeline.wire.KvBatch;
import io.kvasir.pipeline.wire.RouterEventWriter;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.Seeds;
import io.kvasir.testsupport.Trials;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.stream.Stream;

/**
 * Routers one after the other over a plane whose stream keeps all messages, closed or killed at any
 * moment, whose workers come and go in any order. In the end each worker has all that it said.
 */
class KeptPlaneModelTest {
    private static final int TRIALS = Trials.of(5, 60);
    private static final int STEPS = 60;
    private static final int WORKERS = 3;
    private static final int BLOCK = 4;
    private static final long STORE = 5;

    @TempDir Path folder;

    @Tag("trials")
    @Test
    void inTheEndEachWorkerHasAllThatItSaid() throws Exception {
        final long seed = Seeds.next("KeptPlaneModelTest");
        for (int trial = 0; trial < TRIALS; trial++) {
            try (Model model =
                    new Model(new Random(seed + trial), folder.resolve("trial-" + trial))) {
                model.run();
            }
        }
    }

    private static final class Model implements AutoCloseable {
        private final Random random;
        private final Path base;
        private boolean mapped;
        private boolean saved;
        private final List<byte[]> stored = new ArrayList<>();
        private final long[] lastEvents = new long[WORKERS]; // each is a block
        private final Map<Integer, Worker> workers = new TreeMap<>();
        private int life;
        private int slots;
        private long nowNs;
        private int passed;
        private EventPlane plane;
        private KvRouter router;

        Model(Random random, Path base) {
            this.random = random;
            this.base = base;
        }

        @Override
        public void close() {
            router.close();
        }

        private Path life() {
            return base.resolve("life-" + life);
        }

        private void start() {
            if (router == null || random.nextInt(8) == 0) {
                final int kind = random.nextInt(3);
                mapped = kind != 0;
                saved = kind != 1;
                slots = 2 + random.nextInt(2);
            }
            final RouterConfig.Builder builder =
                    KvRouter.builder()
                            .blockSize(BLOCK)
                            .maxWorkers(slots)
                            .maxBlocks(1_024, 1_024)
                            .tickedBy(() -> nowNs);
            if (mapped) {
                builder.set(RouterSettings.STATE_MAPPED_DIR, life().resolve("mapped"));
            }
            if (saved) {
                builder.set(RouterSettings.STATE_DIR, life().resolve("saved"));
            }
            router = builder.eventPlane(this::transport).build();
            passed =
                    plane.keptBeforeOrNull() == null || plane.keptBeforeOrNull().store() != STORE
                            ? 0
                            : (int) plane.keptBeforeOrNull().upTo();
        }

        private AutoCloseable transport(EventPlane made) {
            plane = made;
            return KeptTransport.begin(made, STORE);
        }

        void run() throws Exception {
            start();
            for (int step = 0; step < STEPS; step++) {
                switch (random.nextInt(12)) {
                    case 0, 1 -> publish();
                    case 2, 3 -> change(random.nextInt(WORKERS));
                    case 4 -> beginAgain();
                    case 5 -> settle();
                    case 6 -> {
                        end(random.nextInt(3) == 0);
                        start();
                    }
                    case 7 -> {
                        nowNs += KeptPrefixes.WAIT_NS / 2;
                        router.tick(nowNs);
                    }
                    default -> pass();
                }
            }
            if (workers.isEmpty()) {
                change(0);
            }
            do {
                beginAgain();
                while (passed < stored.size()) {
                    pass();
                }
                settle();
            } while (plane.isAgainWanted());
            workers.forEach(
                    (id, worker) -> {
                        assertEquals(lastEvents[id], worker.indexedBlocks(), "blocks of " + id);
                        assertEquals(
                                lastEvents[id] == 0 ? IndexState.LOADING : IndexState.EXACT,
                                worker.state(),
                                () -> id + ": " + worker.sourceStatus());
                    });
        }

        private void publish() {
            final int worker = random.nextInt(WORKERS);
            final long event = ++lastEvents[worker];
            final int[] prompt = {worker, (int) event, 3, 4};
            final long[] local = new long[1];
            BlockHasher.localHashes(prompt, 0, BLOCK, BLOCK, BlockHasher.BASE_SEED, local);
            final KvBatch batch = new KvBatch();
            batch.reset(0, 0, CopyRule.LAST_COPY, false, ApplyListener.NONE);
            batch.addStored(true, 0, new long[] {event}, local, 1);
            stored.add(RouterEventWriter.json(worker, 0, event, batch, batch.first()));
        }

        private void change(int id) {
            final Worker there = workers.remove(id);
            if (there != null) {
                router.removeWorker(there);
                return;
            }
            if (workers.size() >= slots) {
                return;
            }
            final Worker worker =
                    router.addWorker(
                            WorkerSpec.of(id, "w" + id, "http://w")
                                    .onEventPlane(new EventPlaneWorker(id, 0)));
            workers.put(id, worker);
        }

        private void beginAgain() {
            final long after = plane.beginsAgainAfter();
            if (after != EventPlane.NOT_AGAIN) {
                passed = (int) after;
            }
        }

        private void pass() {
            if (passed < stored.size()) {
                final byte[] message = stored.get(passed);
                passed++;
                plane.onKept(message, 0, message.length, passed, EventPlane.NO_PUBLISHER);
            }
            if (random.nextBoolean()) {
                plane.settle();
                plane.keep();
            }
        }

        private void settle() {
            Eventually.holds(
                    "what was passed on",
                    () -> {
                        plane.tick();
                        return plane.isApplied();
                    });
            plane.settle();
            plane.keep();
            if (passed == stored.size() && !plane.isAgainWanted()) {
                plane.onCaughtUp();
            }
        }

        /** Ends a router, once its writer has done what it was given. */
        private void end(boolean killed) throws Exception {
            router.indexPipeline().visitRuns(0, 0, 1, (depth, parent, engine, local, n) -> {});
            workers.clear();
            if (killed) {
                copy(life(), base.resolve("life-" + (life + 1)));
                router.close();
                life++;
            } else {
                router.close();
            }
        }

        /** As it was at one moment: what is read again after all was copied is the same. */
        private static void copy(Path from, Path to) throws IOException {
            final List<Path> all;
            try (Stream<Path> files = Files.walk(from)) {
                all = files.toList();
            }
            boolean isSame = false;
            while (!isSame) {
                for (Path each : all) {
                    final Path copy = to.resolve(from.relativize(each));
                    if (Files.isDirectory(each)) {
                        Files.createDirectories(copy);
                    } else {
                        Files.copy(each, copy, StandardCopyOption.REPLACE_EXISTING);
                    }
                }
                isSame = true;
                for (Path each : all) {
                    isSame &=
                            Files.isDirectory(each)
                                    || Files.mismatch(each, to.resolve(from.relativize(each))) < 0;
                }
            }
        }
    }
}
