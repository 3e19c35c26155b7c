package io.kvasir.nats;

import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.registry.SeenKeys;

import org.junit.jupiter.api.Test;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/** Pauses are taken and not spent. */
class ConnectPauseTest {
    private static void assertAround(long expectedMs, long ns) {
        final long ms = TimeUnit.NANOSECONDS.toMillis(ns);
        assertTrue(ms >= expectedMs * 3 / 4 && ms <= expectedMs * 5 / 4, ms + " ms");
    }

    @Test
    void theyDoubleToALimitAndBeginAnewWithAConnection() throws Exception {
        final List<Long> taken = new ArrayList<>();
        final ConnectPause pause = new ConnectPause(taken::add);
        for (long expectedMs : new long[] {200, 400, 800, 1600, 2000, 2000}) {
            pause.await();
            assertAround(expectedMs, taken.getLast());
        }
        pause.connected();
        pause.await();
        assertAround(200, taken.getLast());
    }

    @Test
    void aStoreTriesLessOftenWhereNatsRefuses() throws Exception {
        final BlockingQueue<Long> taken = new LinkedBlockingQueue<>();
        try (NatsStore store =
                new NatsStore(
                        NatsAccess.of("tls://127.0.0.1:1"),
                        NatsStore.BUCKET,
                        Duration.ofSeconds(5),
                        new ConnectPause(taken::add),
                        _ -> {})) {
            store.watch("x", new SeenKeys());
            for (long expectedMs : new long[] {200, 400, 800, 1600, 2000}) {
                assertAround(expectedMs, taken.take());
            }
        }
    }

    @Test
    void aWatcherThatFailsAtALossDoesNotEndTheTries() throws Exception {
        final BlockingQueue<Long> taken = new LinkedBlockingQueue<>();
        try (NatsStore store =
                new NatsStore(
                        NatsAccess.of("tls://127.0.0.1:1"),
                        NatsStore.BUCKET,
                        Duration.ofSeconds(5),
                        new ConnectPause(taken::add),
                        _ -> {})) {
            store.watch("x", new FailingWatcher());
            for (int i = 0; i < 3; i++) {
                assertNotNull(taken.poll(30, TimeUnit.SECONDS), "it has ended");
            }
        }
    }

    /** As where there is no memory for what is to be said. */
    private static final class FailingWatcher extends SeenKeys {
        @Override
        public void lost(String cause) {
            throw new OutOfMemoryError("of the test");
        }
    }
}
