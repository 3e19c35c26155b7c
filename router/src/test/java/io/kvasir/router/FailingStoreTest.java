package io.kvasir.router;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.memory.ClosedException;
import io.kvasir.pipeline.source.SourceConfig;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.router.spi.StateStore;
import io.kvasir.router.state.MemoryStateStore;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.Latches;

import org.agrona.LangUtil;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

import java.io.IOException;
import java.io.InterruptedIOException;
import java.io.UncheckedIOException;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;

/** Stores of an embedder's own that do what they should not. */
class FailingStoreTest {
    private final AtomicInteger puts = new AtomicInteger();

    private static RouterConfig.Builder builder(StateStore store) {
        return KvRouter.builder()
                .blockSize(16)
                .maxWorkers(2)
                .maxBlocks(1_024, 1_024)
                .set(RouterSettings.SNAPSHOT_INTERVAL, Duration.ofMillis(1))
                .stateStore(store);
    }

    static List<Throwable> whateverIsThrown() {
        return List.of(
                new NoSuchMethodError(),
                new AssertionError(),
                new OutOfMemoryError(),
                new SQLException("which only Java would have declared"),
                new InterruptedException());
    }

    @ParameterizedTest
    @MethodSource("whateverIsThrown")
    void whatIsThrownCostsOneSnapshotAndNoneAfterIt(Throwable thrown) {
        final StateStore store =
                new MemoryStateStore(new MemoryStateStore.Memory()) {
                    @Override
                    public void put(String name, Content content) throws IOException {
                        if (puts.incrementAndGet() == 1) {
                            LangUtil.rethrowUnchecked(thrown);
                        }
                        super.put(name, content);
                    }
                };
        try (KvRouter router = builder(store).build()) {
            Eventually.holds("it goes on", () -> puts.get() > 2);
            assertEquals(1, router.status().snapshots().ofRouterOrNull().failed());
        }
    }

    @Test
    void aStoreThatInterruptsItsThreadEndsNoSnapshots() {
        final AtomicBoolean closed = new AtomicBoolean();
        final StateStore store =
                new MemoryStateStore(new MemoryStateStore.Memory()) {
                    @Override
                    public void put(String name, Content content) throws IOException {
                        puts.incrementAndGet();
                        Thread.currentThread().interrupt();
                        throw new InterruptedIOException("its own");
                    }

                    @Override
                    public void close() {
                        closed.set(true);
                        super.close();
                    }
                };
        try (KvRouter router = builder(store).build()) {
            Eventually.holds("it goes on", () -> puts.get() > 2);
            assertTrue(router.status().snapshots().ofRouterOrNull().failed() > 1);
        }
        assertTrue(closed.get());
    }

    @Test
    void whatAStoreThrowsAtItsCloseIsLoggedWhateverItIs() {
        final AtomicInteger closed = new AtomicInteger();
        final StateStore store =
                new MemoryStateStore(new MemoryStateStore.Memory()) {
                    @Override
                    public void close() {
                        super.close();
                        closed.incrementAndGet();
                        LangUtil.rethrowUnchecked(new SQLException("not closed"));
                    }
                };
        final AtomicReference<Throwable> uncaught = new AtomicReference<>();
        final Thread.UncaughtExceptionHandler before = Thread.getDefaultUncaughtExceptionHandler();
        Thread.setDefaultUncaughtExceptionHandler(
                (_, thrown) -> {
                    if (thrown instanceof SQLException) { // not that of another test
                        uncaught.set(thrown);
                    }
                });
        try {
            builder(store).build().close();
        } finally {
            Thread.setDefaultUncaughtExceptionHandler(before);
        }
        assertEquals(1, closed.get());
        assertNull(uncaught.get());
    }

    @Test
    void aStoreThatClosesItsRouterSavesWhatItWasGiven() {
        final MemoryStateStore.Memory memory = new MemoryStateStore.Memory();
        final AtomicReference<KvRouter> toClose = new AtomicReference<>();
        final CountDownLatch closed = new CountDownLatch(1);
        final StateStore store =
                new MemoryStateStore(memory) {
                    @Override
                    public void put(String name, Content content) throws IOException {
                        final KvRouter router = toClose.getAndSet(null);
                        if (router != null) {
                            router.close();
                        }
                        super.put(name, content);
                    }

                    @Override
                    public void close() {
                        super.close();
                        closed.countDown();
                    }
                };
        final RouterConfig.Builder builder =
                builder(store)
                        .set(RouterSettings.HASH_SEED, 7L)
                        .set(RouterSettings.SNAPSHOT_CLOSE_TIMEOUT, Duration.ofDays(1));
        final KvRouter router = builder.build();
        final WorkerSpec spec =
                new WorkerSpec(
                        0, "a", "http://a", 0, SourceConfig.of("a", 0, 16, "tcp://127.0.0.1:1"));
        final Worker worker = router.addWorker(spec);
        router.openDirect(worker, EngineMessages.source("a", 16))
                .onMessage(0, EngineMessages.stored(new int[64], 4, 16, 0));
        Eventually.holds("the event", worker::ready);
        toClose.set(router);
        Latches.await(closed); // not in a day, when it waits for itself
        router.close(); // has the other one end
        assertThrows(ClosedException.class, () -> router.addWorker(spec));
        try (KvRouter next = builder.stateStore(new MemoryStateStore(memory)).build()) {
            assertEquals(4, next.addWorker(spec).indexedBlocks());
        }
    }

    @Test
    void aListThatIsNoneIsSaidWithTheStoreAndTheMethod() {
        final StateStore store =
                new MemoryStateStore(new MemoryStateStore.Memory()) {
                    @Override
                    public List<String> list() {
                        return null;
                    }

                    @Override
                    public String toString() {
                        return "bucket b";
                    }
                };
        final RouterConfig.Builder builder = builder(store);
        assertEquals(
                "bucket b cannot be used: StateStore.list() has returned no list",
                assertThrows(UncheckedIOException.class, builder::build).getMessage());
    }
}
