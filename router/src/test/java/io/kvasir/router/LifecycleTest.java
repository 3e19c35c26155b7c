package io.kvasir.router;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.counters.CountersFile;
import io.kvasir.core.counters.CountersReader;
import io.kvasir.core.index.IndexMemory;
import io.kvasir.core.index.LowerTiers;
import io.kvasir.core.index.PrefixIndex;
import io.kvasir.core.load.ActiveRequests;
import io.kvasir.core.load.LoadBoard;
import io.kvasir.core.load.PredictedPrefixes;
import io.kvasir.core.load.PredictedPrefixesConfig;
import io.kvasir.core.memory.ClosedException;
import io.kvasir.core.memory.MemoryGate;
import io.kvasir.core.memory.OffHeap;
import io.kvasir.pipeline.booking.BookingPipeline;
import io.kvasir.pipeline.events.IndexPipeline;
import io.kvasir.pipeline.source.EngineStream;
import io.kvasir.pipeline.source.IndexState;
import io.kvasir.pipeline.source.SourceConfig;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.Latches;

import org.agrona.ErrorHandler;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;

/** What remains of workers and routers that fail, are replaced, or are taken out. */
class LifecycleTest {
    private static final int BLOCK = 16;
    private static final int[] PROMPT = new int[8 * BLOCK];

    private static RouterConfig.Builder small() {
        return KvRouter.builder().maxWorkers(8).maxBlocks(4_096, 8_192).maxActiveRequests(64);
    }

    @Test
    void workersThatCannotBeRegisteredKeepNoSlot() {
        try (KvRouter router = small().build()) {
            for (int i = 0; i < 64; i++) {
                final WorkerSpec bad =
                        new WorkerSpec(
                                i,
                                "bad" + i,
                                "http://w",
                                0,
                                SourceConfig.of("bad", 0, BLOCK, "no address"));
                assertThrows(IllegalArgumentException.class, () -> router.addWorker(bad));
            }
            assertEquals(0, router.workers().size());
            for (int i = 0; i < 2; i++) {
                router.addWorker(WorkerSpec.of(i, "good" + i, "http://w"));
            }
            assertEquals(2, router.workers().size());
        }
    }

    @Test
    void aThreadThatIsRefusedNamesTheLimitOfThreads() {
        final OutOfMemoryError refused =
                new OutOfMemoryError("unable to create native thread: possibly out of memory");
        assertEquals(
                refused.getMessage()
                        + "; raise the limit of threads of this user (ulimit -u) or of the"
                        + " container (pids)",
                small().config().whatToDo(refused).getMessage());
    }

    @Test
    void aRouterThatCannotBeBuiltLeavesNoMemoryAndNoThread() {
        FormerRouters.awaitEnd();
        final long bytes = OffHeap.allocatedBytes();
        final Set<Thread> threads = FormerRouters.threads();
        final RouterConfig.Builder builder = small().routedPrefixes(PredictedPrefixesConfig.of(8));
        builder.build().close();
        Eventually.holds("memory of the first", () -> OffHeap.allocatedBytes() == bytes);
        final KvRouter whole = builder.build();
        final long needed = OffHeap.allocatedBytes() - bytes;
        whole.close();
        Eventually.holds("memory of the second", () -> OffHeap.allocatedBytes() == bytes);
        try {
            for (int step = 0; step < 20; step++) { // each is refused at another of its parts
                System.setProperty(
                        "kvasir.memory.limit", Long.toString(bytes + needed * step / 20));
                final String said =
                        assertThrows(OutOfMemoryError.class, builder::build).getMessage();
                assertTrue(
                        said.startsWith(
                                "no memory for the index and the bookings: max-blocks="
                                        + builder.settings().get(RouterSettings.MAX_BLOCKS)
                                        + ", "),
                        said);
                assertTrue(said.contains("; lower them: "), said);
                Eventually.holds("memory is left", () -> OffHeap.allocatedBytes() == bytes);
            }
        } finally {
            System.clearProperty("kvasir.memory.limit");
        }
        Eventually.holds("a thread is left", () -> threads.containsAll(FormerRouters.threads()));
        builder.build().close();
    }

    @Test
    void aRouterOneOfWhosePartsCannotBeClosedClosesTheOthers(@TempDir Path folder)
            throws IOException {
        FormerRouters.awaitEnd();
        final long bytes = OffHeap.allocatedBytes();
        final Set<Thread> threads = FormerRouters.threads();
        final PartMaker maker =
                new PartMaker() {
                    @Override
                    AutoCloseable ticker(
                            KvRouter router, RouterConfig config, ErrorHandler errors) {
                        return () -> {
                            throw new IOException("on purpose");
                        };
                    }
                };
        final RouterConfig config = small().set(RouterSettings.COUNTERS_DIR, folder).config();
        final KvRouter router = KvRouter.start(config, maker);
        assertThrows(IOException.class, router::close);
        Eventually.holds("a thread is left", () -> threads.containsAll(FormerRouters.threads()));
        Eventually.holds("memory is left", () -> bytes == OffHeap.allocatedBytes());
        try (CountersReader counters = CountersReader.open(folder)) {
            assertTrue(counters.isClosed());
        }
        router.close(); // does nothing
        KvRouter.start(config, new PartMaker()).close(); // the folder is free again
    }

    /** A maker that is out of memory at one of its steps. */
    private static final class FailingMaker extends PartMaker {
        private final int failing;
        private int step;

        FailingMaker(int failing) {
            this.failing = failing;
        }

        private <T> T made(Supplier<T> part) {
            if (step++ == failing) {
                throw new OutOfMemoryError("step " + failing);
            }
            return part.get();
        }

        @Override
        PrefixIndex index(RouterConfig config, MemoryGate gate, IndexMemory memoryOrNull) {
            return made(() -> super.index(config, gate, memoryOrNull));
        }

        @Override
        ActiveRequests activeRequests(RouterConfig config, LoadBoard board, MemoryGate gate) {
            return made(() -> super.activeRequests(config, board, gate));
        }

        @Override
        PredictedPrefixes predicted(PredictedPrefixesConfig config, MemoryGate gate) {
            return made(() -> super.predicted(config, gate));
        }

        @Override
        LowerTiers lowerTiers(RouterConfig config, PrefixIndex index, MemoryGate gate) {
            return made(() -> super.lowerTiers(config, index, gate));
        }

        @Override
        IndexPipeline indexPipeline(
                RouterConfig config,
                PrefixIndex index,
                LowerTiers lowerOrNull,
                ErrorHandler errors) {
            return made(() -> super.indexPipeline(config, index, lowerOrNull, errors));
        }

        @Override
        BookingPipeline bookingPipeline(
                RouterConfig config,
                ActiveRequests active,
                PredictedPrefixes predictedOrNull,
                ErrorHandler errors) {
            return made(() -> super.bookingPipeline(config, active, predictedOrNull, errors));
        }

        @Override
        RouterCounters routerCounters(
                CountersFile file, Supplier<RouterStatus> status, Supplier<List<Worker>> workers) {
            return made(() -> super.routerCounters(file, status, workers));
        }

        @Override
        AutoCloseable ticker(KvRouter router, RouterConfig config, ErrorHandler errors) {
            return made(() -> super.ticker(router, config, errors));
        }
    }

    @Test
    void aStepThatFailsGivesBackWhatTheStepsBeforeItTook(@TempDir Path folder) {
        FormerRouters.awaitEnd();
        final long bytes = OffHeap.allocatedBytes();
        final Set<Thread> threads = FormerRouters.threads();
        final RouterConfig config =
                small().routedPrefixes(PredictedPrefixesConfig.of(8))
                        .set(RouterSettings.COUNTERS_DIR, folder)
                        .config();
        final int steps = 8;
        for (int step = 0; step < steps; step++) {
            final FailingMaker maker = new FailingMaker(step);
            final OutOfMemoryError error =
                    assertThrows(OutOfMemoryError.class, () -> KvRouter.start(config, maker));
            assertEquals("step " + step, error.getMessage());
            Eventually.holds(
                    () -> "memory of " + maker.failing, () -> OffHeap.allocatedBytes() == bytes);
        }
        Eventually.holds("a thread is left", () -> threads.containsAll(FormerRouters.threads()));
        KvRouter.start(config, new FailingMaker(steps)).close();
    }

    @Test
    void aWorkerIsTakenOutAndAnotherAddedWhileTheRingIsFull() throws Exception {
        final CountDownLatch blocked = new CountDownLatch(1);
        final CountDownLatch release = new CountDownLatch(1);
        try (KvRouter router = small().build()) {
            final Worker worker = router.addWorker(WorkerSpec.of(1, "w", "http://w"));
            final EngineStream stream =
                    router.openDirect(worker, EngineMessages.source("w", BLOCK));
            router.indexPipeline()
                    .retire(
                            7,
                            () -> {
                                blocked.countDown();
                                Latches.await(release);
                            });
            assertTrue(blocked.await(1, TimeUnit.MINUTES));
            final byte[] message = EngineMessages.stored(PROMPT, 1, BLOCK, 1);
            for (int i = 0; router.indexPipeline().refused() == 0; i++) {
                stream.onMessage(i, message);
            }
            router.removeWorker(worker); // neither waits for the writer
            final Worker next = router.addWorker(WorkerSpec.of(2, "v", "http://v"));
            release.countDown();
            Eventually.holds("backlog", () -> router.indexPipeline().backlog() == 0);
            assertEquals(0, next.indexedBlocks());
            assertEquals(0, router.index().heldBlocks());
        }
    }

    @Test
    void aStreamBelongsToItsWorkerAlone() {
        try (KvRouter router = small().build()) {
            final Worker first = router.addWorker(WorkerSpec.of(1, "w", "http://w"));
            final EngineStream stale = router.openDirect(first, EngineMessages.source("w", BLOCK));
            router.removeWorker(first);
            assertThrows(
                    IllegalArgumentException.class,
                    () -> router.openDirect(first, EngineMessages.source("w", BLOCK)));
            Worker next = router.addWorker(WorkerSpec.of(2, "v0", "http://v"));
            for (int i = 1; next.slot() != first.slot(); i++) {
                router.removeWorker(next);
                next = router.addWorker(WorkerSpec.of(2, "v" + i, "http://v"));
            }
            stale.onMessage(0, EngineMessages.stored(PROMPT, 4, BLOCK, 1));
            Eventually.holds("backlog", () -> router.indexPipeline().backlog() == 0);
            assertEquals(0, next.indexedBlocks());
        }
    }

    @Test
    void aNewWorkerWaitsForTheSlotOfARemovedOne() throws Exception {
        final CountDownLatch blocked = new CountDownLatch(1);
        final CountDownLatch release = new CountDownLatch(1);
        try (KvRouter router = small().build()) {
            final List<Worker> workers = new ArrayList<>();
            for (int i = 0; i < 8; i++) {
                workers.add(router.addWorker(WorkerSpec.of(i, "w" + i, "http://w")));
            }
            final WorkerSpec spec = WorkerSpec.of(8, "v", "http://v");
            assertThrows(IllegalStateException.class, () -> router.addWorker(spec));
            router.bookingPipeline()
                    .workerGone(
                            0,
                            () -> {
                                blocked.countDown();
                                Latches.await(release);
                            });
            assertTrue(blocked.await(1, TimeUnit.MINUTES));
            router.removeWorker(workers.get(3));
            final FutureTask<Worker> added = new FutureTask<>(() -> router.addWorker(spec));
            final Thread caller = Thread.ofPlatform().daemon().start(added);
            Eventually.holds(
                    "it does not wait", () -> caller.getState() == Thread.State.TIMED_WAITING);
            router.workers(); // the lock is free
            release.countDown();
            assertEquals(workers.get(3).slot(), added.get(1, TimeUnit.MINUTES).slot());
        }
    }

    @Test
    void closingEndsTheWaitForASlot() throws Exception {
        final WorkerSlots slots = new WorkerSlots(1);
        slots.sweep(slots.take(0), 2);
        final FutureTask<Integer> taken =
                new FutureTask<>(() -> slots.take(TimeUnit.HOURS.toNanos(1)));
        final Thread caller = Thread.ofPlatform().daemon().start(taken);
        Eventually.holds("it does not wait", () -> caller.getState() == Thread.State.TIMED_WAITING);
        slots.close();
        final ExecutionException ended =
                assertThrows(ExecutionException.class, () -> taken.get(1, TimeUnit.MINUTES));
        assertInstanceOf(ClosedException.class, ended.getCause());
    }

    @Test
    void aSecondStreamOfAWorkerEndsTheFirst() {
        try (KvRouter router = small().build()) {
            final Worker worker = router.addWorker(WorkerSpec.of(1, "w", "http://w"));
            final EngineStream first = router.openDirect(worker, EngineMessages.source("w", BLOCK));
            final EngineStream second =
                    router.openDirect(worker, EngineMessages.source("w", BLOCK));
            assertEquals(IndexState.GONE, first.state());
            first.onMessage(0, EngineMessages.stored(PROMPT, 4, BLOCK, 1));
            second.onMessage(0, EngineMessages.stored(PROMPT, 2, BLOCK, 1));
            Eventually.holds("nothing indexed", () -> worker.indexedBlocks() > 0);
            Eventually.holds("backlog", () -> router.indexPipeline().backlog() == 0);
            assertEquals(2, worker.indexedBlocks());
        }
    }
}
