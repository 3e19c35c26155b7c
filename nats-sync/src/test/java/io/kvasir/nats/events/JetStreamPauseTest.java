package io.kvasir.nats.events;

import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.nats.ConnectPause;
import io.kvasir.nats.NatsAccess;
import io.kvasir.pipeline.source.EventPlane;

import org.junit.jupiter.api.Test;

import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.TimeUnit;

/** Pauses are taken and not spent. */
class JetStreamPauseTest {
    private static final EventSubjects NAMES = EventSubjects.kvEvents("ns", "backend", "generate");

    @Test
    void aStreamIsTriedLessOftenWhereThereIsNoServer() throws Exception {
        final SynchronousQueue<Long> pauses = new SynchronousQueue<>();
        try (JetStreamEventSource _ =
                new JetStreamEventSource(
                        NatsAccess.of("nats://127.0.0.1:1"),
                        NAMES,
                        1,
                        null,
                        new EventPlane(EventPlane.KNOWN_ONLY),
                        null,
                        new ConnectPause(pauses::put))) {
            for (long expectedMs : new long[] {200, 400, 800, 1600, 2000, 2000}) {
                final long ms = TimeUnit.NANOSECONDS.toMillis(pauses.take());
                assertTrue(ms >= expectedMs * 3 / 4 && ms <= expectedMs * 5 / 4, ms + " ms");
            }
        }
    }
}
