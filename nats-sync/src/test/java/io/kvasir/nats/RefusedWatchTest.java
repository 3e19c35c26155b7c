package io.kvasir.nats;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.abort;

import io.kvasir.registry.LeasedStore;
import io.kvasir.registry.Stored;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.NatsServer;
import io.nats.client.Connection;
import io.nats.client.JetStreamManagement;
import io.nats.client.api.ConsumerConfiguration;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;

/** A server that gives an account one consumer of a stream, which another client has. */
@Tag("integration") // starts a server
class RefusedWatchTest {
    private static final String BUCKET = "few";
    private static final String STREAM = "KV_" + BUCKET;
    private static final String OTHER = "other";
    private static final int TRIES = 40;
    private static final int THREADS_OF_A_CONNECTION = 12; // at most, whatever it does

    @TempDir Path folder;

    private NatsServer server; // null where there is none
    private JetStreamManagement management;
    private Connection connection;

    @BeforeEach
    void start() throws Exception {
        final Path config =
                Files.writeString(
                        folder.resolve("few.conf"),
                        "accounts { A: { jetstream: {max_mem: 1M, max_file: 8M, max_streams: 5,"
                                + " max_consumers: 1}, users: [{user: u, password: p}] } }");
        try {
            server =
                    NatsServer.in(
                            NatsServer.program(),
                            Files.createDirectory(folder.resolve("s")),
                            config);
        } catch (IOException e) {
            abort("skipped: no NATS: " + e.getMessage());
        }
        server.start();
        connection = Patient.connect(url());
        management = connection.jetStreamManagement();
    }

    @AfterEach
    void stop() throws Exception {
        if (server != null) {
            connection.close();
            server.stop();
        }
    }

    private String url() {
        return "nats://u:p@" + server.address();
    }

    private static long threads() {
        return Thread.getAllStackTraces().keySet().stream()
                .filter(thread -> thread.getName().startsWith("kvasir-workers"))
                .count();
    }

    @Test
    void triesLeaveNoThreadBecomeRarerAndEndWithTheRefusal() throws Exception {
        final Watched watched = new Watched();
        final List<Long> pauses = new CopyOnWriteArrayList<>();
        final ConnectPause pause =
                new ConnectPause(
                        ns -> {
                            pauses.add(ns);
                            Thread.sleep(1);
                        });
        try (NatsStore store =
                new NatsStore(
                        Patient.access(url()), BUCKET, Duration.ofMinutes(1), pause, _ -> {})) {
            store.put("ns/a", "1".getBytes(StandardCharsets.UTF_8), LeasedStore.ABSENT);
            management.addOrUpdateConsumer(
                    STREAM, ConsumerConfiguration.builder().durable(OTHER).build());
            store.watch("ns/", watched);
            Eventually.holds("tries", () -> watched.losses.size() >= TRIES);
            assertTrue(
                    watched.losses.getFirst().contains("maximum consumers"),
                    watched.losses.getFirst());
            Eventually.holds(
                    () -> threads() + " threads", () -> threads() <= THREADS_OF_A_CONNECTION);
            assertTrue(pauses.getLast() > TimeUnit.SECONDS.toNanos(1), pauses::toString);
            management.deleteConsumer(STREAM, OTHER);
            Eventually.holds("a view", () -> !watched.views.isEmpty());
            assertEquals(List.of("ns/a"), watched.views.getFirst());
        }
    }

    /** What a watch says. */
    private static final class Watched implements LeasedStore.Watcher {
        private final List<String> losses = new CopyOnWriteArrayList<>();
        private final List<List<String>> views = new CopyOnWriteArrayList<>();

        @Override
        public void view(List<Stored> all) {
            views.add(all.stream().map(Stored::key).toList());
        }

        @Override
        public void put(Stored stored) {}

        @Override
        public void deleted(String key) {}

        @Override
        public void lost(String cause) {
            losses.add(cause);
        }
    }
}
