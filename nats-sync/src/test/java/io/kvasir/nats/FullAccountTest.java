package io.kvasir.nats;

import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assumptions.abort;

import io.kvasir.nats.replica.NatsReplicaConfig;
import io.kvasir.nats.replica.NatsReplicaLink;
import io.kvasir.nats.replica.WireForm;
import io.kvasir.registry.RegistryException;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.NatsServer;
import io.nats.client.Connection;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicReference;

/** A server that lets in no further connection of an account. */
@Tag("integration") // starts a server
class FullAccountTest {
    private static final String REFUSAL =
            "NATS refuses: maximum account active connections exceeded";

    @TempDir Path folder;

    private NatsServer started() throws InterruptedException {
        try {
            final Path config =
                    Files.writeString(
                            folder.resolve("full.conf"),
                            "accounts { A: { jetstream: enabled, limits: {max_conn: 1},"
                                    + " users: [{user: u, password: p}] } }");
            final NatsServer server =
                    NatsServer.in(
                            NatsServer.program(),
                            Files.createDirectory(folder.resolve("s")),
                            config);
            server.start();
            return server;
        } catch (IOException e) {
            return abort("skipped: no NATS: " + e.getMessage());
        }
    }

    @Test
    void allThatConnectSayWhy() throws Exception {
        final NatsServer server = started();
        final String url = "nats://u:p@" + server.address();
        final NatsAccess hasty = new NatsAccess(url, null, null, Duration.ofSeconds(1));
        final Connection only = Patient.connect(url);
        try (NatsStore store = new NatsStore(hasty, "workers", Duration.ofMinutes(1));
                NatsReplicaLink link =
                        new NatsReplicaLink(
                                new NatsReplicaConfig(
                                        hasty, "ns", "backend", "", WireForm.MSGPACK, 16))) {
            link.start(_ -> {});
            final AtomicReference<String> refused = new AtomicReference<>("");
            Eventually.holds( // a slow server says nothing within a second
                    refused::get,
                    () -> {
                        refused.set(
                                assertThrows(RegistryException.class, () -> store.get("ns/a"))
                                        .getMessage());
                        return refused.get().contains(REFUSAL);
                    });
            Eventually.holds(link::problem, () -> link.problem().contains(REFUSAL));
        } finally {
            only.close();
            server.stop();
        }
    }
}
