package io.kvasir.gateway.upstream;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import ch.qos.logback.classic.Level;

import com.fasterxml.jackson.databind.JsonNode;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpsConfigurator;
import com.sun.net.httpserver.HttpsServer;

import io.kvasir.gateway.GatewayServer;
import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.openai.Json;
import io.kvasir.gateway.testing.CapturedLog;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.gateway.testing.ReplacedFile;
import io.kvasir.nats.NatsAccess;
import io.kvasir.registry.LeasedStore;
import io.kvasir.registry.RegistryException;
import io.kvasir.testsupport.Keytool;
import io.nats.client.Connection;
import io.nats.client.Nats;
import io.nats.client.Options;

import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;

import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLSocket;

/** Files by which etcd and NATS are trusted, and by which etcd lets one in, change. */
@Order(1) // takes long: begins first, beside the others
class FollowedTrustTest {
    private static final Duration TTL = Duration.ofSeconds(9);

    /** Keys and certificates are made once: each takes a process. */
    @TempDir private static Path keys;

    private static SSLContext own; // of the servers
    private static String authority;
    private static String other;

    @TempDir private Path dir;

    private Path trusted;

    @BeforeAll
    static void makeKeys() throws Exception {
        authority = certificate("server");
        other = certificate("other");
        own = Keytool.server(keys.resolve("server"));
    }

    private static String certificate(String name) throws Exception {
        return Keytool.certificate(keys.resolve(name), name, "ip:127.0.0.1");
    }

    @BeforeEach
    void trustTheOther() throws IOException {
        trusted = Files.writeString(dir.resolve("ca.pem"), other);
    }

    // -- etcd

    /** Answers each request on a connection of its own, as a user that has logged in. */
    private static HttpsServer etcd(List<String> passwords) throws IOException {
        final HttpsServer etcd =
                HttpsServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        etcd.setHttpsConfigurator(new HttpsConfigurator(own));
        etcd.createContext(
                "/v3/auth/authenticate",
                exchange -> {
                    final JsonNode login =
                            Json.MAPPER.readTree(exchange.getRequestBody().readAllBytes());
                    passwords.add(login.path("password").asText());
                    answer(exchange, 200, "{\"token\":\"t\"}");
                });
        etcd.createContext(
                "/v3/kv/range",
                exchange -> {
                    final boolean isIn =
                            exchange.getRequestHeaders().containsKey("Authorization")
                                    && passwords.getLast().equals("second");
                    answer(
                            exchange,
                            isIn || passwords.isEmpty() ? 200 : 401,
                            "{\"header\":{\"revision\":\"1\"}}");
                });
        etcd.start();
        return etcd;
    }

    private static void answer(HttpExchange exchange, int status, String text) throws IOException {
        final byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        exchange.getRequestBody().readAllBytes();
        exchange.getResponseHeaders().add("Connection", "close");
        exchange.sendResponseHeaders(status, bytes.length);
        try (OutputStream out = exchange.getResponseBody()) {
            out.write(bytes);
        }
    }

    private GatewayConfig.Builder of(HttpsServer etcd) {
        return Gateways.config()
                .set(
                        GatewaySettings.DISCOVERY_ETCD_ENDPOINTS,
                        List.of(URI.create("https://127.0.0.1:" + etcd.getAddress().getPort())))
                .set(GatewaySettings.DISCOVERY_ETCD_TRUST_STORE, trusted);
    }

    @Test
    void theNextConnectionToEtcdGoesByTheAuthoritiesThatTheFileHasThen() throws Exception {
        final HttpsServer etcd = etcd(List.of());
        try (LeasedStore store = EtcdStores.open(of(etcd).build(), TTL, "/k/")) {
            assertThrows(RegistryException.class, () -> store.get("a"));
            ReplacedFile.write(trusted, authority);
            store.get("a");
            ReplacedFile.write(trusted, "x");
            store.get("a");
            Files.delete(trusted);
            store.get("a");
            ReplacedFile.write(trusted, other);
            assertThrows(RegistryException.class, () -> store.get("a"));
        } finally {
            etcd.stop(0);
        }
    }

    @Test
    void theNextLoginAtEtcdIsWithThePasswordThatTheFileHasThen() throws Exception {
        ReplacedFile.write(trusted, authority);
        final Path file = Files.writeString(dir.resolve("password"), "first\n");
        final List<String> passwords = new CopyOnWriteArrayList<>();
        final HttpsServer etcd = etcd(passwords);
        final GatewayConfig config =
                of(etcd).set(GatewaySettings.DISCOVERY_ETCD_USER, "u")
                        .set(GatewaySettings.DISCOVERY_ETCD_PASSWORD_FILE, file)
                        .build();
        try (LeasedStore store = EtcdStores.open(config, TTL, "/k/")) {
            assertThrows(RegistryException.class, () -> store.get("a"));
            Files.delete(file);
            assertThrows(RegistryException.class, () -> store.get("a"));
            assertEquals(List.of("first"), passwords.stream().distinct().toList());
            ReplacedFile.write(file, "second\n");
            store.get("a");
            assertEquals("second", passwords.getLast());
        } finally {
            etcd.stop(0);
        }
    }

    // -- NATS

    /** Lets one client after another in, and answers its pings. */
    private static void serveNats(ServerSocket nats) {
        while (!nats.isClosed()) {
            try (Socket under = nats.accept()) {
                final String info =
                        "INFO {\"server_id\":\"i\",\"version\":\"2.10.0\",\"headers\":true,"
                                + "\"tls_required\":true,\"max_payload\":1048576}\r\n";
                under.getOutputStream().write(info.getBytes(StandardCharsets.US_ASCII));
                pong(tls(under));
            } catch (IOException e) {
                Thread.onSpinWait(); // its client has refused or left
            }
        }
    }

    private static SSLSocket tls(Socket under) throws IOException {
        final SSLSocket tls =
                (SSLSocket) own.getSocketFactory().createSocket(under, null, under.getPort(), true);
        tls.setUseClientMode(false);
        tls.startHandshake();
        return tls;
    }

    private static void pong(SSLSocket client) throws IOException {
        final BufferedReader in =
                new BufferedReader(
                        new InputStreamReader(client.getInputStream(), StandardCharsets.US_ASCII));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            if (line.equals("PING")) {
                client.getOutputStream().write("PONG\r\n".getBytes(StandardCharsets.US_ASCII));
            }
        }
    }

    private static void connect(Options options) throws Exception {
        final Connection made = Nats.connect(options);
        made.close();
    }

    @Test
    void theNextConnectionToNatsGoesByTheAuthoritiesThatTheFileHasThen() throws Exception {
        try (ServerSocket nats = new ServerSocket(0, 9, InetAddress.getLoopbackAddress())) {
            Thread.ofPlatform().daemon().start(() -> serveNats(nats));
            final NatsAccess access =
                    NatsAccesses.of(
                            Gateways.config()
                                    .set(
                                            GatewaySettings.NATS_URL,
                                            "tls://127.0.0.1:" + nats.getLocalPort())
                                    .set(GatewaySettings.NATS_TRUST_STORE, trusted)
                                    .build());
            final Options options = access.options("x").build(); // as of a lasting connection
            final String refusal =
                    assertThrows(IOException.class, () -> connect(options)).getMessage();
            assertFalse(refusal.contains("imed out"), refusal);
            ReplacedFile.write(trusted, authority);
            connect(options);
            ReplacedFile.write(trusted, "x");
            connect(options);
            ReplacedFile.write(trusted, other);
            assertThrows(IOException.class, () -> connect(options));
        }
    }

    // -- SIGHUP

    @Test
    void aReloadNamesFilesThatCannotBeUsedAnyMore() throws Exception {
        final HttpsServer etcd = etcd(List.of());
        final Path nats = Files.writeString(dir.resolve("nats.pem"), other);
        try (GatewayServer gateway =
                        GatewayServer.start(
                                of(etcd).set(GatewaySettings.NATS_TRUST_STORE, nats)
                                        .set(GatewaySettings.NATS_URL, "nats://127.0.0.1:1")
                                        .set(GatewaySettings.REPLICA_SYNC, true)
                                        .build());
                CapturedLog log = new CapturedLog(Level.WARN)) {
            gateway.reload();
            assertEquals(List.of(), naming(dir, log));
            ReplacedFile.write(trusted, "x");
            Files.delete(nats);
            gateway.reload();
            final List<String> named = naming(dir, log);
            for (String file :
                    List.of(
                            "discovery-etcd-trust-store " + trusted + ": ",
                            "nats-trust-store " + nats + ": ")) {
                assertTrue(named.stream().anyMatch(text -> text.startsWith(file)), named::toString);
            }
        } finally {
            etcd.stop(0);
        }
    }

    private static List<String> naming(Path folder, CapturedLog log) {
        return log.textsFrom(Level.WARN).stream()
                .filter(text -> text.contains(folder.toString()))
                .toList();
    }
}
