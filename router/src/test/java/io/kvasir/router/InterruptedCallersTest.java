package io.kvasir.router;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.pipeline.source.SourceConfig;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.router.state.MemoryStateStore;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.Latches;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;

/** Threads that are interrupted when they call a router, as by {@code shutdownNow}. */
class InterruptedCallersTest {
    private static final int BLOCK = 16;
    private static final int BLOCKS = 5;
    private static final int[] PROMPT = new int[BLOCKS * BLOCK];

    static {
        Arrays.setAll(PROMPT, i -> 1_000 + i);
    }

    @TempDir Path folder;

    @AfterEach
    void noInterruptIsLeft() {
        var _ = Thread.interrupted();
    }

    private static RouterConfig.Builder builder() {
        return KvRouter.builder()
                .blockSize(BLOCK)
                .maxWorkers(2)
                .maxBlocks(1_024, 1_024)
                .set(RouterSettings.HASH_SEED, 7L);
    }

    private RouterConfig.Builder saving() {
        return builder().set(RouterSettings.STATE_DIR, folder);
    }

    /** A worker whose engine cannot be reached; its messages are delivered by hand. */
    private static WorkerSpec spec(String name) {
        return new WorkerSpec(
                0, name, "http://w", 0, SourceConfig.of(name, 0, BLOCK, "tcp://127.0.0.1:1"));
    }

    private static void fill(KvRouter router) {
        final Worker worker = router.addWorker(spec("a"));
        router.openDirect(worker, EngineMessages.source("a", BLOCK))
                .onMessage(0, EngineMessages.stored(PROMPT, BLOCKS, BLOCK, 0));
        Eventually.holds("the event", worker::ready);
    }

    private void assertIsSaved() {
        try (KvRouter router = saving().build()) {
            assertEquals(BLOCKS, router.addWorker(spec("a")).indexedBlocks());
        }
    }

    @Test
    void theLastSnapshotIsSavedAndTheFolderFree() {
        final KvRouter router = saving().build();
        fill(router);
        Thread.currentThread().interrupt();
        router.close();
        assertTrue(Thread.interrupted(), "as before");
        assertIsSaved();
    }

    @Test
    void anInterruptWhileTheLastSnapshotIsSavedDoesNotEndTheWait() throws Exception {
        final CountDownLatch saving = new CountDownLatch(1);
        final CountDownLatch goOn = new CountDownLatch(1);
        final MemoryStateStore.Memory memory = new MemoryStateStore.Memory();
        final KvRouter router =
                builder()
                        .set(RouterSettings.SNAPSHOT_CLOSE_TIMEOUT, Duration.ofMinutes(5))
                        .stateStore(
                                new MemoryStateStore(memory) {
                                    @Override
                                    public void put(String name, Content content)
                                            throws IOException {
                                        saving.countDown();
                                        Latches.await(goOn);
                                        super.put(name, content);
                                    }
                                })
                        .build();
        fill(router);
        final Thread closing = Thread.ofPlatform().daemon().start(router::close);
        Latches.await(saving);
        Eventually.holds("it waits", () -> closing.getState() == Thread.State.TIMED_WAITING);
        closing.interrupt();
        Eventually.holds(
                "it waits on",
                () -> !closing.isInterrupted() && closing.getState() == Thread.State.TIMED_WAITING);
        goOn.countDown();
        closing.join();
        try (KvRouter next = builder().stateStore(new MemoryStateStore(memory)).build()) {
            assertEquals(BLOCKS, next.addWorker(spec("a")).indexedBlocks());
        }
    }

    @Test
    void aWorkerIsRestored() {
        try (KvRouter router = saving().build()) {
            fill(router);
        }
        for (int restart = 0; restart < 2; restart++) {
            try (KvRouter router = saving().build()) {
                Thread.currentThread().interrupt();
                final Worker worker = router.addWorker(spec("a"));
                assertTrue(Thread.interrupted(), "as before");
                assertEquals(BLOCKS, worker.indexedBlocks(), "restart " + restart);
                assertEquals(0, router.status().snapshots().ofRouterOrNull().restoreFailures());
            }
        }
    }

    @Test
    void aWorkerIsRestoredWhenTheInterruptComesMeanwhile() {
        final MemoryStateStore.Memory memory = new MemoryStateStore.Memory();
        try (KvRouter router = builder().stateStore(new MemoryStateStore(memory)).build()) {
            fill(router);
        }
        final AtomicInteger reads = new AtomicInteger();
        final MemoryStateStore store =
                new MemoryStateStore(memory) {
                    @Override
                    public InputStream get(String name, long offset) {
                        if (offset > 0 && reads.incrementAndGet() < 3) {
                            Thread.currentThread().interrupt(); // ends the wait for the index
                        }
                        return super.get(name, offset);
                    }
                };
        try (KvRouter router = builder().stateStore(store).build()) {
            final Worker worker = router.addWorker(spec("a"));
            assertTrue(Thread.interrupted());
            assertEquals(BLOCKS, worker.indexedBlocks()); // after 1 to 3 reads
        }
    }

    @Test
    void aRouterIsBuiltWithWhatWasSaved() {
        try (KvRouter router = saving().build()) {
            fill(router);
        }
        Thread.currentThread().interrupt();
        try (KvRouter router = saving().set(RouterSettings.COUNTERS_DIR, folder).build()) {
            assertTrue(Thread.interrupted(), "as before");
            assertEquals(BLOCKS, router.addWorker(spec("a")).indexedBlocks());
        }
    }

    @Test
    void aSlotThatIsBeingSweptIsWaitedFor() throws Exception {
        final CountDownLatch blocked = new CountDownLatch(1);
        final CountDownLatch goOn = new CountDownLatch(1);
        try (KvRouter router = builder().maxWorkers(1).build()) {
            final Worker worker = router.addWorker(WorkerSpec.of(1, "a", "http://a"));
            router.bookingPipeline()
                    .workerGone(
                            0,
                            () -> {
                                blocked.countDown();
                                Latches.await(goOn);
                            });
            Latches.await(blocked);
            router.removeWorker(worker);
            final AtomicBoolean kept = new AtomicBoolean();
            final FutureTask<Worker> added =
                    new FutureTask<>(
                            () -> {
                                Thread.currentThread().interrupt();
                                try {
                                    return router.addWorker(WorkerSpec.of(2, "b", "http://b"));
                                } finally {
                                    kept.set(Thread.interrupted());
                                }
                            });
            final Thread caller = Thread.ofPlatform().daemon().start(added);
            Eventually.holds(
                    "it waits",
                    () -> added.isDone() || caller.getState() == Thread.State.TIMED_WAITING);
            caller.interrupt();
            goOn.countDown();
            assertEquals("b", added.get().name());
            assertTrue(kept.get());
        }
    }
}
