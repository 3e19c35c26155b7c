package io.kvasir.nats;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assertions.fail;
import static org.junit.jupiter.api.Assumptions.abort;

import io.kvasir.core.index.CopyRule;
import io.kvasir.nats.events.EventSubjects;
import io.kvasir.nats.events.JetStreamEventSource;
import io.kvasir.nats.events.JetStreamEventTransport;
import io.kvasir.nats.events.NatsEventSource;
import io.kvasir.nats.events.NatsEventTransport;
import io.kvasir.nats.events.StreamForm;
import io.kvasir.nats.replica.NatsReplicaConfig;
import io.kvasir.nats.replica.NatsReplicaLink;
import io.kvasir.nats.replica.WireForm;
import io.kvasir.nats.state.NatsStateStore;
import io.kvasir.nixl.exchange.ExchangeException;
import io.kvasir.nixl.exchange.Records;
import io.kvasir.pipeline.publish.RouterEventTransport;
import io.kvasir.pipeline.source.EventPlane;
import io.kvasir.pipeline.wire.ApplyListener;
import io.kvasir.pipeline.wire.KvBatch;
import io.kvasir.registry.LeaseLock;
import io.kvasir.registry.RegistryException;
import io.kvasir.registry.RegistryException.Kind;
import io.kvasir.testsupport.NatsServer;
import io.nats.client.AuthenticationException;
import io.nats.client.Connection;

import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.api.io.TempDir;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;

import javax.net.ssl.SSLContext;

/** Real servers that want TLS and credentials of their clients. */
@Tag("integration")
class NatsAuthorityTest {
    private static final Duration TIMEOUT = Duration.ofSeconds(20);

    /** The client waits for all of it where it is refused, five times in each test. */
    private static final Duration REFUSED_TIMEOUT = Duration.ofSeconds(6);

    private static final Duration TTL = Duration.ofSeconds(60);
    private static final long PATIENCE_NS = 60_000_000_000L;
    private static final EventSubjects NAMES = EventSubjects.kvEvents("ns", "backend", "generate");

    @TempDir static Path folder;

    private static NatsServer withUser; // by password
    private static NatsServer withBoth; // by JWT, and by the client's certificate
    private static TestKeys keys;
    private static TestKeys clientKeys;
    private static Path credentials;

    @BeforeAll
    static void startServers() throws Exception {
        keys = TestKeys.make(folder, "server");
        clientKeys = TestKeys.make(folder, "client");
        final TestUser user = new TestUser();
        credentials = user.credentials(folder.resolve("user.creds"));
        final String tls =
                "cert_file: '" + keys.certificate() + "', key_file: '" + keys.key() + "'";
        withUser =
                started(
                        "user",
                        "tls { "
                                + tls
                                + " }\nauthorization { users: [{user: u, password: secret}] }");
        withBoth =
                started(
                        "both",
                        "tls { "
                                + tls
                                + ", verify: true, ca_file: '"
                                + clientKeys.certificate()
                                + "' }\n"
                                + user.settings());
    }

    private static Path program() {
        try {
            return NatsServer.program();
        } catch (IOException e) {
            return abort("skipped: no NATS: " + e.getMessage());
        }
    }

    private static NatsServer started(String name, String settings)
            throws IOException, InterruptedException {
        final Path own = Files.createDirectory(folder.resolve(name));
        final Path config = Files.writeString(folder.resolve(name + ".conf"), settings);
        final NatsServer server = NatsServer.in(program(), own, config);
        server.start();
        return server;
    }

    @AfterAll
    static void stopServers() throws InterruptedException {
        for (NatsServer each : new NatsServer[] {withUser, withBoth}) {
            if (each != null) {
                each.stop();
            }
        }
    }

    private static SSLContext authority() {
        return KeyStores.tlsOrNull(keys.trustStore(), null, TestKeys.PASSWORD);
    }

    private static NatsAccess user() {
        return new NatsAccess("tls://u:secret@" + withUser.address(), null, authority(), TIMEOUT);
    }

    private static NatsAccess both() {
        return new NatsAccess(
                "tls://" + withBoth.address(),
                credentials,
                KeyStores.tlsOrNull(keys.trustStore(), clientKeys.keyStore(), TestKeys.PASSWORD),
                TIMEOUT);
    }

    private static void await(BooleanSupplier condition, String what) {
        final long since = System.nanoTime();
        while (!condition.getAsBoolean()) {
            if (System.nanoTime() - since > PATIENCE_NS) {
                fail(what + " did not come");
            }
            LockSupport.parkNanos(1_000_000);
        }
    }

    private static boolean isConnected(EventPlane plane) {
        return plane.status().unconnected().isEmpty();
    }

    private static void assertLetsAllIn(NatsAccess access) throws IOException {
        final EventPlane plane = new EventPlane(EventPlane.KNOWN_ONLY);
        try (NatsEventSource _ = new NatsEventSource(access, NAMES, plane)) {
            await(() -> isConnected(plane), "connection for events: " + plane.status());
        }
        final EventPlane kept = new EventPlane(EventPlane.KNOWN_ONLY);
        try (JetStreamEventSource _ = new JetStreamEventSource(access, NAMES, null, kept)) {
            await(() -> isConnected(kept), "connection for a stream of events");
        }
        new NatsEventTransport(access, NAMES).close();
        new JetStreamEventTransport(access, NAMES, StreamForm.EVENTS).close();
        try (NatsReplicaLink link = link(access)) {
            link.start(_ -> {});
            await(link::isConnected, "connection for replica sync");
        }
        try (NatsStore store = store(access)) {
            store.put("ns/a", new byte[] {1}, 0);
            assertNotNull(store.get("ns/a"));
        }
        new NatsExchange(new NatsConfig(access, "cards", TTL)).close();
    }

    private static NatsReplicaLink link(NatsAccess access) {
        return new NatsReplicaLink(
                new NatsReplicaConfig(access, "ns", "backend", "", WireForm.MSGPACK, 16));
    }

    private static NatsStore store(NatsAccess access) {
        return new NatsStore(access, "workers", TTL);
    }

    /** Each says where it was refused, and none says the password. They wait at one time. */
    private static void assertRefusesAll(NatsServer server, NatsAccess given, Kind kind)
            throws Exception {
        final NatsAccess access =
                new NatsAccess(given.servers(), given.credentials(), given.tls(), REFUSED_TIMEOUT);
        final List<Callable<String>> refusals =
                List.of(
                        () -> refusalOfEvents(access),
                        () ->
                                refusal(
                                        IOException.class,
                                        () -> new NatsEventTransport(access, NAMES)),
                        () -> refusalOfStore(access, kind),
                        () ->
                                refusal(
                                        ExchangeException.class,
                                        () ->
                                                new NatsExchange(
                                                        new NatsConfig(access, "cards", TTL))),
                        () -> refusalOfReplicaSync(access));
        try (ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor()) {
            for (Future<String> refusal : threads.invokeAll(refusals)) {
                assertNames(server, refusal.get());
            }
        }
    }

    private static String refusal(Class<? extends Exception> kind, Executable call) {
        return assertThrows(kind, call).getMessage();
    }

    private static String refusalOfEvents(NatsAccess access) {
        final EventPlane plane = new EventPlane(EventPlane.KNOWN_ONLY);
        try (NatsEventSource _ = new NatsEventSource(access, NAMES, plane)) {
            await(
                    () -> !plane.status().unconnected().startsWith("connecting to"),
                    "refusal of events");
            return plane.status().unconnected();
        }
    }

    private static String refusalOfStore(NatsAccess access, Kind kind) {
        try (NatsStore store = store(access)) {
            final RegistryException refusal =
                    assertThrows(RegistryException.class, () -> store.get("ns/a"));
            assertEquals(kind, refusal.kind());
            return refusal.getMessage();
        }
    }

    private static String refusalOfReplicaSync(NatsAccess access) {
        try (NatsReplicaLink link = link(access)) {
            link.start(_ -> {});
            await(() -> link.problem().contains("cannot be reached"), "refusal of replica sync");
            assertFalse(link.isConnected());
            return link.problem();
        }
    }

    private static void assertNames(NatsServer server, String message) {
        assertTrue(message.contains(server.address()), message);
        assertFalse(message.contains("secret"), message);
    }

    @Test
    void aUserWithThePasswordAndTheAuthorityIsLetInForAll() throws IOException {
        assertLetsAllIn(user());
    }

    @Test
    void withoutTheAuthorityNothingConnects() throws Exception {
        assertRefusesAll(withUser, user().withTls(null), Kind.UNAVAILABLE);
    }

    @Test
    void withoutTheUserNothingConnects() throws Exception {
        final NatsAccess nobody =
                new NatsAccess("tls://" + withUser.address(), null, authority(), TIMEOUT);
        assertRefusesAll(withUser, nobody, Kind.DENIED);
    }

    @Test
    void credentialsAndTheOwnCertificateAreLetInForAll() throws IOException {
        assertLetsAllIn(both());
    }

    @Test
    void withoutTheCredentialsNothingConnects() throws Exception {
        assertRefusesAll(withBoth, both().withCredentials(null), Kind.DENIED);
    }

    @Test
    void withoutTheOwnCertificateNothingConnects() throws Exception {
        assertRefusesAll(withBoth, both().withTls(authority()), Kind.UNAVAILABLE);
    }

    /** Its authority is trusted, and it is another one's. */
    @Test
    void aCertificateForAnotherHostIsRefusedBeforeThePasswordIsSent() throws Exception {
        final TestKeys other = TestKeys.make(folder, "elsewhere", "dns:elsewhere.example");
        final NatsServer elsewhere =
                started(
                        "elsewhere",
                        "tls { cert_file: '"
                                + other.certificate()
                                + "', key_file: '"
                                + other.key()
                                + "' }\nauthorization { users: [{user: u, password: secret}] }");
        try {
            final NatsAccess access =
                    new NatsAccess(
                            "tls://u:secret@" + elsewhere.address(),
                            null,
                            KeyStores.tlsOrNull(other.trustStore(), null, TestKeys.PASSWORD),
                            REFUSED_TIMEOUT);
            assertRefusesAll(elsewhere, access, Kind.UNAVAILABLE);
            final IOException refusal =
                    assertThrows(
                            IOException.class, () -> new NatsEventTransport(access, NAMES).close());
            assertTrue(refusal.getMessage().contains("127.0.0.1 found"), refusal.getMessage());
        } finally {
            elsewhere.stop();
        }
    }

    @Test
    void theSecondServerIsUsedWhereTheFirstIsNotThere() throws IOException {
        assertLetsAllIn(
                new NatsAccess(
                        "tls://127.0.0.1:1,tls://u:secret@" + withUser.address(),
                        null,
                        authority(),
                        TIMEOUT));
    }

    private static Path userWithPassword(String password) throws IOException {
        return Files.writeString(
                folder.resolve("changed.conf"),
                "authorization { users: [{user: u, password: " + password + "}] }");
    }

    /** Returns when the client has given its connections up. */
    private static void refuseForAWhile(NatsServer server, NatsAccess access) throws Exception {
        final Connection witness = NatsAccess.connect(access.options("witness"));
        server.stop();
        userWithPassword("other");
        server.start();
        await(() -> witness.getStatus() == Connection.Status.CLOSED, "end of a connection");
        assertThrows( // as long as a try takes: those of others are over
                AuthenticationException.class, () -> NatsAccess.connect(access.options("refused")));
        server.stop();
        userWithPassword("secret");
        server.start();
    }

    private interface Use {
        void run() throws IOException;
    }

    private static void awaitWorks(Use use, String what) {
        await(
                () -> {
                    try {
                        use.run();
                        return true;
                    } catch (IOException | RegistryException | ExchangeException e) {
                        return false; // not yet
                    }
                },
                what);
    }

    private static void publish(RouterEventTransport transport) throws IOException {
        final KvBatch batch = new KvBatch();
        batch.reset(0, 0, CopyRule.LAST_COPY, false, ApplyListener.NONE);
        batch.addStored(true, 0, new long[] {1}, new long[] {1}, 1);
        transport.publish(1, 0, 1, batch);
    }

    @Test
    void whoWasRefusedForAWhileConnectsAgain() throws Exception {
        final NatsServer server =
                NatsServer.in(
                        program(),
                        Files.createDirectory(folder.resolve("changed")),
                        userWithPassword("secret"));
        server.start();
        final NatsAccess access = NatsAccess.of("nats://u:secret@" + server.address());
        final EventPlane core = new EventPlane(EventPlane.KNOWN_ONLY);
        final EventPlane kept = new EventPlane(EventPlane.KNOWN_ONLY);
        try (NatsEventSource _ = new NatsEventSource(access, NAMES, core);
                JetStreamEventSource _ = new JetStreamEventSource(access, NAMES, null, kept);
                NatsEventTransport lossy = new NatsEventTransport(access, NAMES);
                JetStreamEventTransport keeping =
                        new JetStreamEventTransport(access, NAMES, StreamForm.EVENTS);
                NatsReplicaLink link = link(access);
                NatsStore store = store(access);
                NatsStateStore states =
                        new NatsStateStore(access, "state", new LeaseLock(store, "lock"));
                NatsExchange exchange = new NatsExchange(new NatsConfig(access, "cards", TTL))) {
            link.start(_ -> {});
            await(() -> isConnected(core) && isConnected(kept), "connections for events");
            await(link::isConnected, "connection for replica sync");
            awaitWorks(() -> publish(keeping), "stream");
            awaitWorks(() -> store.get("ns/a"), "keys");
            awaitWorks(states::list, "objects");
            awaitWorks(() -> exchange.publish(Records.record("a", 1, 1)), "cards");
            refuseForAWhile(server, access);
            await(() -> isConnected(core), "second connection for events");
            await(() -> isConnected(kept), "second connection for a stream of events");
            await(link::isConnected, "second connection for replica sync");
            awaitWorks(() -> publish(lossy), "events without a stream");
            awaitWorks(() -> publish(keeping), "events in the stream");
            awaitWorks(() -> store.get("ns/a"), "second connection for keys");
            awaitWorks(states::list, "second connection for objects");
            awaitWorks(() -> exchange.publish(Records.record("a", 2, 1)), "renewal of a card");
        } finally {
            server.stop();
        }
    }
}
