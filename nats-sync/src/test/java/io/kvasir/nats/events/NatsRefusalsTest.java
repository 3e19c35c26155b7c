package io.kvasir.nats.events;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.abort;

import io.kvasir.core.index.CopyRule;
import io.kvasir.nats.NatsAccess;
import io.kvasir.nats.NatsStore;
import io.kvasir.nats.Patient;
import io.kvasir.nats.replica.NatsReplicaConfig;
import io.kvasir.nats.replica.NatsReplicaLink;
import io.kvasir.nats.replica.WireForm;
import io.kvasir.nats.state.NatsStateStore;
import io.kvasir.pipeline.publish.KvEventPublisher;
import io.kvasir.pipeline.publish.UnpublishableException;
import io.kvasir.pipeline.source.IndexState;
import io.kvasir.pipeline.wire.ApplyListener;
import io.kvasir.pipeline.wire.KvBatch;
import io.kvasir.registry.LeaseLock;
import io.kvasir.registry.RegistryException;
import io.kvasir.router.replica.ReplicaMessage;
import io.kvasir.router.replica.ReplicaOrigin;
import io.kvasir.testsupport.NatsServer;
import io.nats.client.Connection;
import io.nats.client.JetStream;
import io.nats.client.JetStreamManagement;
import io.nats.client.api.StreamConfiguration;

import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.ZoneOffset;
import java.time.ZonedDateTime;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.stream.LongStream;

/** A server that refuses some of what its users do, which it says without an answer to the call. */
@Tag("integration") // starts a server
class NatsRefusalsTest {
    private static final int MAX_PAYLOAD = 8 << 10;
    private static final Duration SHORT = Duration.ofSeconds(1); // of calls that nothing answers
    private static final EventSubjects NAMES = EventSubjects.kvEvents("ns", "backend", "generate");

    @TempDir static Path folder;

    private static NatsServer server;

    private final ObservedPlane observed = new ObservedPlane();

    private static String user(String name, String permissions) {
        return "{user: " + name + ", password: p, permissions: {" + permissions + "}}\n";
    }

    @BeforeAll
    static void start() throws Exception {
        final Path config =
                Files.writeString(
                        folder.resolve("refusing.conf"),
                        "max_payload: "
                                + MAX_PAYLOAD
                                + "\nauthorization { users: [{user: all, password: p}\n"
                                + user("deaf", "subscribe: {allow: [\"_INBOX.>\"]}")
                                + user("mute", "publish: {deny: [\">\"]}")
                                + user("noack", "publish: {deny: [\"$JS.ACK.>\"]}")
                                + "] }");
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
    }

    @AfterAll
    static void stop() throws InterruptedException {
        if (server != null) {
            server.stop();
        }
    }

    @AfterEach
    void closePlane() {
        observed.close();
    }

    private static NatsAccess access(String user) {
        return Patient.access("nats://" + user + ":p@" + server.address());
    }

    private static NatsAccess hasty(String user) {
        final NatsAccess access = access(user);
        return new NatsAccess(access.servers(), null, null, SHORT);
    }

    private static EventSubjects names() {
        return EventSubjects.kvEvents("ns" + System.nanoTime(), "backend", "generate");
    }

    private static NatsReplicaLink link(String user) {
        final NatsReplicaLink link =
                new NatsReplicaLink(
                        new NatsReplicaConfig(
                                access(user), "ns", "backend", "", WireForm.MSGPACK, 16));
        link.start(_ -> {});
        return link;
    }

    private String unconnected() {
        return observed.plane.status().unconnected();
    }

    private static void assertNamesRefusal(String message) {
        assertTrue(message.contains("Permissions Violation"), message);
        assertTrue(message.contains(server.address()) || message.contains("NATS"), message);
    }

    @Test
    void eventsThatMayNotBeReadAreNoConnection() throws Exception {
        final NatsEventSource source = new NatsEventSource(access("deaf"), NAMES, observed.plane);
        observed.await(() -> unconnected().contains("Permissions Violation"), "the refusal");
        source.close();
        assertNamesRefusal(unconnected());
    }

    @Test
    void bookingsThatMayNotBeReadOrSentAreAProblem() {
        try (NatsReplicaLink deaf = link("deaf");
                NatsReplicaLink mute = link("mute");
                NatsReplicaLink all = link("all")) {
            observed.await(() -> deaf.problem().contains("Permissions Violation"), "the first");
            observed.await(
                    () -> {
                        mute.send(new ReplicaMessage.Leaving(new ReplicaOrigin(1, 1)));
                        return mute.problem().contains("Permissions Violation for Publish");
                    },
                    "the second");
            observed.await(() -> all.problem().isEmpty(), "a connection");
            assertNamesRefusal(deaf.problem());
            assertNamesRefusal(mute.problem());
        }
    }

    @Test
    void eventsThatMayNotBePublishedAreNotTakenForPublished() throws Exception {
        try (NatsEventTransport transport = new NatsEventTransport(access("mute"), NAMES);
                KvEventPublisher publisher = new KvEventPublisher(1, 0, 4, transport)) {
            observed.await(
                    () -> {
                        try {
                            publisher.publishRemoved(1);
                            return false; // the server says it afterwards
                        } catch (IOException e) {
                            assertNamesRefusal(e.getMessage());
                            return true;
                        }
                    },
                    "the first refusal");
            for (int i = 0; i < 3; i++) { // each of them is waited for now
                assertNamesRefusal(
                        assertThrows(IOException.class, () -> publisher.publishRemoved(1))
                                .getMessage());
            }
        }
    }

    @Test
    void callsThatEndInATimeoutSayWhatWasRefused() throws Exception {
        try (JetStreamEventTransport transport =
                        new JetStreamEventTransport(hasty("mute"), NAMES, StreamForm.EVENTS);
                NatsStore store = new NatsStore(hasty("mute"), "workers", Duration.ofMinutes(1))) {
            assertNamesRefusal(
                    assertThrows(IOException.class, () -> transport.publish(1, 0, 1, stores(1)))
                            .getMessage());
            assertNamesRefusal(
                    assertThrows(RegistryException.class, () -> store.get("ns/a")).getMessage());
        }
        final JetStreamEventSource source =
                new JetStreamEventSource(hasty("mute"), NAMES, null, observed.plane);
        observed.await(() -> unconnected().contains("Permissions Violation"), "the refusal");
        source.close();
    }

    @Test
    void anObjectIsWrittenInChunksThatTheServerTakes() throws Exception {
        final byte[] bytes = new byte[10 * MAX_PAYLOAD];
        new Random(1).nextBytes(bytes);
        final int from = 7 * MAX_PAYLOAD + 3;
        final NatsStore locks = new NatsStore(access("all"), "locks", Duration.ofMinutes(1));
        try (locks;
                NatsStateStore store =
                        new NatsStateStore(
                                access("all"), "objects", new LeaseLock(locks, "locks/o"))) {
            assertTrue(store.lock());
            store.put("a", out -> out.write(bytes));
            try (InputStream all = store.get("a", 0);
                    InputStream rest = store.get("a", from)) {
                assertArrayEquals(bytes, all.readAllBytes());
                assertArrayEquals(
                        Arrays.copyOfRange(bytes, from, bytes.length), rest.readAllBytes());
            }
        }
    }

    @Test
    void whatIsTooLongForReplicaSyncIsAProblem() {
        try (NatsReplicaLink link = link("all")) {
            observed.await(() -> link.problem().isEmpty(), "a connection");
            final ReplicaMessage long_ =
                    new ReplicaMessage.Ask(
                            new ReplicaOrigin(1, 1), 1, List.of(), new long[MAX_PAYLOAD]);
            assertFalse(link.send(long_));
            assertTrue(link.problem().contains("max_payload of 8192 bytes"), link.problem());
        }
    }

    private static KvBatch stores(int blocks) {
        final long[] names = LongStream.rangeClosed(1, blocks).toArray();
        final KvBatch batch = new KvBatch();
        batch.reset(0, 0, CopyRule.LAST_COPY, false, ApplyListener.NONE);
        batch.addStored(true, 0, names, names, blocks);
        return batch;
    }

    @Test
    void longStoresAreCutToWhatTheServerTakes() throws Exception {
        final int blocks = 5_000;
        final long[] names = LongStream.rangeClosed(1, blocks).map(i -> -i).toArray();
        final EventSubjects own = names();
        final NatsEventSource source = new NatsEventSource(access("all"), own, observed.plane);
        observed.await(() -> unconnected().isEmpty(), "connection");
        try (KvEventPublisher publisher =
                new KvEventPublisher(
                        ObservedPlane.WORKER, 0, 4, new NatsEventTransport(access("all"), own))) {
            publisher.publishStored(new int[4 * blocks], names, null);
            observed.await(() -> observed.held().size() == blocks, "all blocks");
            publisher.publishRemoved(names);
            observed.await(() -> observed.held().isEmpty(), "their end");
            observed.await(IndexState.EXACT);
        }
        source.close();
        for (StreamForm form : StreamForm.values()) {
            assertArrive(names, names(), form);
        }
    }

    /** One store of all blocks, which is more than a message can have. */
    private void assertArrive(long[] names, EventSubjects kept, StreamForm form) throws Exception {
        try (ObservedPlane reader = new ObservedPlane();
                KvEventPublisher publisher =
                        new KvEventPublisher(
                                ObservedPlane.WORKER,
                                0,
                                4,
                                new JetStreamEventTransport(access("all"), kept, form))) {
            publisher.publishStored(new int[4 * names.length], names, null);
            final JetStreamEventSource stream =
                    new JetStreamEventSource(access("all"), kept, null, reader.plane);
            reader.await(() -> reader.held().size() == names.length, "all blocks");
            stream.close();
        }
    }

    @Test
    void whatNoMessageCanCarryIsRefusedForGoodWithTheLimit() throws Exception {
        try (NatsEventTransport core = new NatsEventTransport(access("all"), NAMES);
                JetStreamEventTransport kept =
                        new JetStreamEventTransport(access("all"), NAMES, StreamForm.EVENTS)) {
            final KvBatch long_ = stores(MAX_PAYLOAD);
            for (String message :
                    List.of(
                            assertThrows(
                                            UnpublishableException.class,
                                            () -> core.publish(1, 0, 1, long_))
                                    .getMessage(),
                            assertThrows(
                                            UnpublishableException.class,
                                            () -> kept.publish(1, 0, 1, long_))
                                    .getMessage())) {
                assertTrue(message.contains(Integer.toString(MAX_PAYLOAD)), message);
                assertTrue(message.contains("max_payload"), message);
            }
            assertEquals(MAX_PAYLOAD, core.maxMessageBytes());
        }
    }

    private static EventSubjects streamOfShortMessages() throws Exception {
        final EventSubjects own = names();
        final Connection connection = Patient.connect(access("all").servers());
        connection
                .jetStreamManagement()
                .addStream(
                        StreamConfiguration.builder()
                                .name(own.stream())
                                .subjects(own.streamSubjects())
                                .maximumMessageSize(MAX_PAYLOAD / 4)
                                .build());
        connection.close();
        return own;
    }

    @Test
    void longStoresAreCutToWhatAStreamThatOthersMadeTakes() throws Exception {
        final long[] names = LongStream.rangeClosed(1, 1_000).map(i -> -i).toArray();
        for (StreamForm form : StreamForm.values()) {
            assertArrive(names, streamOfShortMessages(), form);
        }
    }

    @Test
    void whatTheStreamDoesNotTakeIsRefusedForGoodAndTheNextEventIsPublished() throws Exception {
        try (JetStreamEventTransport kept =
                new JetStreamEventTransport(
                        access("all"), streamOfShortMessages(), StreamForm.EVENTS)) {
            final String message =
                    assertThrows(
                                    UnpublishableException.class,
                                    () -> kept.publish(1, 0, 1, stores(64)))
                            .getMessage();
            assertTrue(message.contains("max_msg_size"), message);
            kept.publish(1, 0, 2, stores(1));
            assertEquals(MAX_PAYLOAD / 4, kept.maxMessageBytes());
        }
    }

    @Test
    void aStreamWhoseAcknowledgementsAreRefusedIsReadOn() throws Exception {
        final EventSubjects own = names();
        final Connection connection = Patient.connect(access("all").servers());
        final JetStreamEventSource source =
                new JetStreamEventSource(access("noack"), own, null, observed.plane);
        observed.await(() -> unconnected().isEmpty(), "connection");
        final JetStream stream = connection.jetStream();
        final int events = 1_500; // a consumer has 1,000 at most that are not acknowledged
        for (int i = 1; i <= events; i++) {
            stream.publish(own.streamSubject(), Events.json(i, Events.store(i)));
        }
        observed.await(() -> observed.held().size() == events, "all of them");
        observed.await(IndexState.EXACT);
        source.close();
        connection.close();
    }

    @Test
    void aConsumerThatIsPausedIsMadeAgain() throws Exception {
        final EventSubjects own = names();
        final Connection connection = Patient.connect(access("all").servers());
        final JetStreamManagement management = connection.jetStreamManagement();
        final JetStreamEventSource source =
                new JetStreamEventSource(access("all"), own, "mine", observed.plane);
        observed.await(() -> unconnected().isEmpty(), "connection");
        management.pauseConsumer(
                own.stream(), "mine", ZonedDateTime.now(ZoneOffset.UTC).plusDays(1));
        connection.jetStream().publish(own.streamSubject(), Events.json(1, Events.store(1)));
        observed.await(() -> observed.held().equals(List.of(1L)), "the event");
        observed.await(() -> unconnected().isEmpty(), "connection again");
        source.close();
        connection.close();
    }
}
