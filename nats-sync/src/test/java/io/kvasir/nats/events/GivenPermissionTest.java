package io.kvasir.nats.events;

import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.abort;

import io.kvasir.nats.NatsAccess;
import io.kvasir.nats.NatsStore;
import io.kvasir.nats.Patient;
import io.kvasir.nats.replica.NatsReplicaConfig;
import io.kvasir.nats.replica.NatsReplicaLink;
import io.kvasir.nats.replica.WireForm;
import io.kvasir.pipeline.source.IndexState;
import io.kvasir.registry.RegistryException;
import io.kvasir.router.replica.ReplicaMessage;
import io.kvasir.router.replica.ReplicaOrigin;
import io.kvasir.testsupport.NatsServer;
import io.nats.client.Connection;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicInteger;

/** A user that may not subscribe, and may later: its connections stay open meanwhile. */
@Tag("integration") // starts a server
class GivenPermissionTest {
    private static final Duration SHORT = Duration.ofSeconds(1); // of calls that nothing answers
    private static final EventSubjects NAMES = EventSubjects.kvEvents("ns", "backend", "generate");

    @TempDir Path folder;

    private final ObservedPlane observed = new ObservedPlane();
    private NatsServer server;

    @BeforeEach
    void start() throws Exception {
        try {
            server =
                    NatsServer.in(
                            NatsServer.program(),
                            Files.createDirectory(folder.resolve("s")),
                            withPermissions("subscribe: {deny: [\">\"]}"));
        } catch (IOException e) {
            abort("skipped: no NATS: " + e.getMessage());
        }
        server.start();
    }

    private Path withPermissions(String permissions) throws IOException {
        return Files.writeString(
                folder.resolve("server.conf"),
                "authorization { users: [{user: all, password: p}\n"
                        + "{user: u, password: p, permissions: {"
                        + permissions
                        + "}}] }");
    }

    private void permit() throws Exception {
        withPermissions("subscribe: {allow: [\">\"]}");
        server.reload();
    }

    @AfterEach
    void stop() throws InterruptedException {
        observed.close();
        if (server != null) {
            server.stop();
        }
    }

    private NatsAccess access(String user) {
        return Patient.access("nats://" + user + ":p@" + server.address());
    }

    private NatsAccess hasty() {
        return new NatsAccess(access("u").servers(), null, null, SHORT);
    }

    private void awaitRefusal() throws Exception {
        observed.await(
                () -> observed.plane.status().unconnected().contains("Permissions Violation"),
                "the refusal");
    }

    @Test
    void eventsOfCoreNatsCome() throws Exception {
        try (NatsEventSource _ = new NatsEventSource(access("u"), NAMES, observed.plane)) {
            awaitRefusal();
            permit();
            observed.await(() -> observed.plane.status().isConnected(), "a connection");
            final Connection publisher = Patient.connect(access("all").servers());
            publisher.publish(NAMES.subject(), Events.envelope(1, 0, Events.store(1)));
            observed.await(IndexState.EXACT);
            publisher.close();
        }
    }

    @Test
    void eventsOfAStreamCome() throws Exception {
        try (JetStreamEventSource _ =
                new JetStreamEventSource(hasty(), NAMES, null, observed.plane)) {
            awaitRefusal();
            permit();
            observed.await(() -> observed.plane.status().isConnected(), "a connection");
        }
    }

    private NatsReplicaLink link(String user) {
        return new NatsReplicaLink(
                new NatsReplicaConfig(access(user), "ns", "backend", "", WireForm.MSGPACK, 16));
    }

    @Test
    void bookingsOfOtherRoutersCome() throws Exception {
        final AtomicInteger received = new AtomicInteger();
        try (NatsReplicaLink deaf = link("u");
                NatsReplicaLink other = link("all")) {
            deaf.start(_ -> received.getAndIncrement());
            other.start(_ -> {});
            observed.await(() -> deaf.problem().contains("Permissions Violation"), "the refusal");
            permit();
            observed.await(
                    () ->
                            other.send(new ReplicaMessage.Leaving(new ReplicaOrigin(1, 1)))
                                    && received.get() > 0,
                    "a message");
            observed.await(() -> deaf.problem().isEmpty(), "no problem");
        }
    }

    @Test
    void keysAreReadAndTheRefusalIsNamedUntilThen() throws Exception {
        try (NatsStore store = new NatsStore(hasty(), "workers", Duration.ofMinutes(1))) {
            for (int i = 0; i < 4; i++) { // longer than a refusal of a single call is kept
                final String message =
                        assertThrows(RegistryException.class, () -> store.get("ns/a")).getMessage();
                assertTrue(message.contains("Permissions Violation for Subscription"), message);
            }
            permit();
            observed.await(
                    () -> {
                        try {
                            store.get("ns/a");
                            return true;
                        } catch (RegistryException e) {
                            return false; // not yet
                        }
                    },
                    "an answer");
        }
    }
}
