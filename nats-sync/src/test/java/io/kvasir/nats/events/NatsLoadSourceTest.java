package io.kvasir.nats.events;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.nats.Patient;
import io.kvasir.pipeline.source.LoadPlane;
import io.kvasir.pipeline.wire.PlaneLoad;
import io.kvasir.testsupport.RunningNats;
import io.nats.client.Connection;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;

@Tag("integration") // starts a server
class NatsLoadSourceTest {
    private static final long PATIENCE_NS = TimeUnit.SECONDS.toNanos(60);

    @RegisterExtension static final RunningNats NATS = new RunningNats();

    private final EventSubjects names =
            EventSubjects.kvEvents("ns" + System.nanoTime(), "backend", "generate");
    private final List<Long> used = new CopyOnWriteArrayList<>();
    private final AtomicInteger unreadable = new AtomicInteger();
    private final LoadPlane plane =
            new LoadPlane(
                    new LoadPlane.Listener() {
                        @Override
                        public void reported(long order, PlaneLoad load) {
                            used.add(load.usedBlocks());
                        }

                        @Override
                        public void unreadable() {
                            unreadable.incrementAndGet();
                        }
                    });
    private NatsLoadSource source;

    @AfterEach
    void close() {
        source.close();
        source.close();
    }

    private static void await(BooleanSupplier condition) {
        final long since = System.nanoTime();
        while (!condition.getAsBoolean()) {
            assertTrue(System.nanoTime() - since < PATIENCE_NS);
            LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(5));
        }
    }

    private void publish(String subject, String body) {
        try {
            final Connection connection = Patient.connect(NATS.url());
            try {
                connection.publish(subject, body.getBytes(StandardCharsets.UTF_8));
                connection.flush(Duration.ofSeconds(60));
            } finally {
                connection.close();
            }
        } catch (Exception e) {
            throw new AssertionError(e);
        }
    }

    @Test
    void reportsOfAnEndpointAndOfItsComponentAreReadAfterALostServerToo() throws Exception {
        final EventSubjects loads = names.about(EventSubjects.KV_METRICS);
        source = new NatsLoadSource(Patient.access(NATS.url()), names, plane);
        await(
                () -> { // until it has subscribed
                    publish(loads.subject(), "{\"worker_id\":1,\"kv_used_blocks\":1}");
                    return used.contains(1L);
                });
        publish(loads.componentSubject(), "{\"worker_id\":1,\"kv_used_blocks\":2}");
        await(() -> used.contains(2L));
        publish(names.subject(), "{\"worker_id\":1,\"kv_used_blocks\":3}"); // events, not loads
        publish(loads.subject(), "no report");
        await(() -> unreadable.get() == 1);
        assertEquals(false, used.contains(3L));

        NATS.server().stop();
        NATS.server().start();
        await(
                () -> {
                    publish(loads.subject(), "{\"worker_id\":1,\"kv_used_blocks\":4}");
                    return used.contains(4L);
                });
    }
}
