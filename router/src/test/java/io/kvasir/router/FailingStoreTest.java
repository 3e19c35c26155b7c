package io.kvasir.router;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.kvasir.router.settings.RouterSettings;
import io.kvasir.router.spi.StateStore;
import io.kvasir.router.state.MemoryStateStore;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;

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

    @ParameterizedTest
    @ValueSource(classes = {NoSuchMethodError.class, AssertionError.class, OutOfMemoryError.class})
    void anErrorCostsOneSnapshotAndNoneAfterIt(Class<? extends Error> how) throws Exception {
        final Error error = how.getConstructor().newInstance();
        final StateStore store =
                new MemoryStateStore(new MemoryStateStore.Memory()) {
                    @Override
                    public void put(String name, Content content) throws IOException {
                        if (puts.incrementAndGet() == 1) {
                            throw error;
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
