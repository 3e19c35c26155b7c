package io.kvasir.registry.etcd;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.abort;

import io.kvasir.registry.LeasedStore;
import io.kvasir.registry.LockingStoreContract;
import io.kvasir.registry.RegistryException;
import io.kvasir.registry.RegistryException.Kind;
import io.kvasir.testsupport.EtcdServer;
import io.kvasir.testsupport.ServerProcess;

import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;

@Tag("integration")
class EtcdStoreTest extends LockingStoreContract {
    private static final AtomicInteger TESTS = new AtomicInteger();

    /** A slow machine must not look like a lost server. */
    private static final Duration TIMEOUT = Duration.ofSeconds(20);

    private static final EtcdClient.Events UNHEARD =
            new EtcdClient.Events() {
                @Override
                public void onPut(EtcdClient.Entry entry) {}

                @Override
                public void onDelete(String key) {}
            };

    @TempDir static Path folder;

    private static EtcdServer server;

    private final String prefix = "/test/" + TESTS.incrementAndGet() + "/";

    @BeforeAll
    static void startOne() throws InterruptedException {
        try {
            server = EtcdServer.in(EtcdServer.program(), folder);
            server.start();
        } catch (IOException e) {
            abort("skipped: no etcd: " + e.getMessage());
        }
    }

    @AfterAll
    static void stopIt() throws InterruptedException {
        if (server != null) {
            server.stop();
        }
    }

    @Override
    protected LeasedStore open(Duration ttl) {
        return store(List.of(server.uri()), ttl, null);
    }

    private LeasedStore store(List<URI> endpoints, Duration ttl, EtcdOptions.Login login) {
        return closing(
                new EtcdStore(new EtcdOptions(endpoints, ttl, TIMEOUT, login, null), prefix));
    }

    @Override
    protected ServerProcess server() {
        return server;
    }

    private static String post(String path, String body, String token)
            throws IOException, InterruptedException {
        final HttpRequest.Builder request =
                HttpRequest.newBuilder(server.uri().resolve(path))
                        .POST(HttpRequest.BodyPublishers.ofString(body));
        if (token != null) {
            request.header("Authorization", token);
        }
        try (HttpClient http = HttpClient.newHttpClient()) {
            final HttpResponse<String> answer =
                    http.send(request.build(), HttpResponse.BodyHandlers.ofString());
            assertEquals(200, answer.statusCode(), path + ": " + answer.body());
            return answer.body();
        }
    }

    @Test
    void theNextEndpointIsTakenWhereOneFails() throws InterruptedException {
        final LeasedStore store =
                store(List.of(URI.create("http://127.0.0.1:1"), server.uri()), TTL, null);
        assertThrows(RegistryException.class, () -> store.get("ns/a"));
        assertNull(store.get("ns/a"));
    }

    @Test
    void aWatchOfWhatHasBeenCompactedEnds() throws Exception {
        try (EtcdClient client =
                new EtcdClient(EtcdOptions.of(List.of(server.uri()), TTL, TIMEOUT))) {
            final long lease = client.grant();
            final long first = client.putIf(prefix + "a", 0, new byte[] {1}, lease);
            final long second = client.putIf(prefix + "a", first, new byte[] {2}, lease);
            post("/v3/kv/compaction", "{\"revision\":\"" + second + "\"}", null);
            final EtcdClient.Range now = client.range(prefix, 10);
            final EtcdClient.Position before =
                    new EtcdClient.Position(now.at().cluster(), now.at().term(), first - 1);
            client.watch(prefix, before, UNHEARD); // it ends
            assertEquals(second, now.entries().getFirst().revision());
        }
    }

    @Test
    void aWatchOfAnotherStoreEnds() {
        try (EtcdClient client =
                new EtcdClient(EtcdOptions.of(List.of(server.uri()), TTL, TIMEOUT))) {
            final EtcdClient.Position now = client.range(prefix, 10).at();
            assertTrue(now.term() > 0 && !now.cluster().isEmpty(), now::toString);
            for (EtcdClient.Position others :
                    List.of(
                            new EtcdClient.Position(now.cluster(), now.term(), 1L << 40),
                            new EtcdClient.Position(now.cluster(), now.term() + 1, now.revision()),
                            new EtcdClient.Position("1", now.term(), now.revision()))) {
                client.watch(prefix, others, UNHEARD); // it ends
            }
        }
    }

    @Test
    void keysOfManyPagesAreReadAtOneRevision() {
        try (EtcdClient client =
                new EtcdClient(
                        EtcdOptions.of(List.of(server.uri()), Duration.ofMinutes(10), TIMEOUT))) {
            final long lease = client.grant();
            for (int i = 0; i < 2001; i++) {
                client.putIf(prefix + i, 0, "x".getBytes(StandardCharsets.UTF_8), lease);
            }
            assertEquals(2001, client.range(prefix, 1 << 17).entries().size());
            assertEquals(1500, client.range(prefix, 1500).entries().size());
            client.revoke(lease);
            assertEquals(0, client.range(prefix, 1 << 17).entries().size());
        }
    }

    @Test
    void aUserLogsInAndOthersAreDenied() throws Exception {
        post("/v3/auth/user/add", "{\"name\":\"root\",\"password\":\"r\"}", null);
        post("/v3/auth/role/add", "{\"name\":\"root\"}", null);
        post("/v3/auth/user/grant", "{\"user\":\"root\",\"role\":\"root\"}", null);
        post("/v3/auth/enable", "{}", null);
        try {
            final LeasedStore known =
                    store(List.of(server.uri()), TTL, new EtcdOptions.Login("root", "r"));
            assertTrue(known.put("ns/a", new byte[] {1}, LeasedStore.ABSENT) > 0);
            for (EtcdOptions.Login login :
                    new EtcdOptions.Login[] {null, new EtcdOptions.Login("root", "wrong")}) {
                final LeasedStore unknown = store(List.of(server.uri()), TTL, login);
                final RegistryException denied =
                        assertThrows(RegistryException.class, () -> unknown.get("ns/a"));
                assertEquals(Kind.DENIED, denied.kind(), denied.getMessage());
                assertTrue(!denied.getMessage().contains("wrong"), denied.getMessage());
            }
        } finally {
            final String answer =
                    post("/v3/auth/authenticate", "{\"name\":\"root\",\"password\":\"r\"}", null);
            post("/v3/auth/disable", "{}", answer.replaceAll(".*\"token\":\"([^\"]+)\".*", "$1"));
        }
    }

    @Test
    void limitsAreChecked() {
        assertThrows(IllegalArgumentException.class, () -> store(List.of(), TTL, null));
        assertThrows(
                IllegalArgumentException.class,
                () -> store(List.of(URI.create("etcd:2379")), TTL, null));
        assertThrows(
                IllegalArgumentException.class,
                () -> store(List.of(server.uri()), Duration.ZERO, null));
        assertEquals("u:***", new EtcdOptions.Login("u", "p").toString());
    }
}
