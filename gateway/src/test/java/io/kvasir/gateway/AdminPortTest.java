package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewayException;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.Secret;
import io.kvasir.gateway.openai.Json;
import io.kvasir.gateway.testing.FakeEngine;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.gateway.testing.RawClient;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.URLEncoder;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

class AdminPortTest {
    private final FakeEngine engine = new FakeEngine(call -> call.json(200, "{}"));
    private GatewayServer gateway;

    private void start(GatewayConfig.Builder config) {
        gateway = GatewayServer.start(config.build());
    }

    @AfterEach
    void stop() {
        if (gateway != null) {
            gateway.close();
        }
        engine.close();
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "/metrics",
                "/debug/workers",
                "/debug/decisions",
                "/admin/workers",
                "/v1/../metrics",
                "/%6detrics"
            })
    void theServingPortDoesNotSayWhatIsBehindIt(String path) throws Exception {
        start(Gateways.config(engine.worker("w1")));
        assertEquals(
                404,
                Gateways.send(HttpRequest.newBuilder(Gateways.uri(gateway, path))).statusCode());
    }

    @Test
    void itsHealthIsOneWord() throws Exception {
        start(Gateways.config(engine.worker("w1")));
        Gateways.awaitContact(gateway);
        assertEquals("{\"status\":\"ok\"}", Gateways.get(gateway, "/health").body());
        assertEquals("{\"status\":\"live\"}", Gateways.get(gateway, "/live").body());
        assertEquals("{\"status\":\"ready\"}", Gateways.get(gateway, "/ready").body());
    }

    @Test
    void aGatewayWithoutAWorkerThatAnswersLivesButIsNotReady() throws Exception {
        final FakeEngine silent = new FakeEngine(call -> call.json(200, "{}"));
        silent.health = call -> call.awaitClientGone(60);
        try (silent) {
            start(Gateways.config(silent.worker("w1")));
            for (HttpResponse<String> page :
                    List.of(Gateways.get(gateway, "/ready"), Gateways.admin(gateway, "/ready"))) {
                assertEquals(503, page.statusCode());
                assertTrue(page.body().contains("no worker can be used"), page.body());
            }
            assertEquals(200, Gateways.get(gateway, "/live").statusCode());
            assertEquals(200, Gateways.admin(gateway, "/live").statusCode());
        }
    }

    @ParameterizedTest
    @CsvSource({"400, down", "404, up", "401, up"})
    void aPortThatCannotReadItsProbeIsNoWorker(int status, String health) throws Exception {
        engine.health = call -> call.json(status, "Client sent an HTTP request to an HTTPS server");
        start(Gateways.config(engine.worker("w1")));
        Gateways.awaitContact(gateway);
        final String page = Gateways.admin(gateway, "/health").body();
        assertTrue(page.contains("\"health\":\"" + health + "\""), page);
        assertEquals(status == 400, page.contains("answered 400; the port may want https"), page);
    }

    @Test
    void headIsGetWithoutABody() throws Exception {
        start(Gateways.config(engine.worker("w1")));
        Gateways.awaitContact(gateway);
        for (String path : List.of("/health", "/live", "/ready", "/metrics", "/debug/workers")) {
            final HttpResponse<String> head =
                    Gateways.send(
                            Gateways.adminRequest(gateway, path)
                                    .method("HEAD", HttpRequest.BodyPublishers.noBody()));
            assertEquals(200, head.statusCode(), path);
            assertEquals("", head.body(), path);
        }
        for (String path : List.of("/health", "/live", "/ready", "/v1/models")) {
            assertEquals(
                    200,
                    Gateways.send(
                                    HttpRequest.newBuilder(Gateways.uri(gateway, path))
                                            .method("HEAD", HttpRequest.BodyPublishers.noBody()))
                            .statusCode(),
                    path);
        }
        assertEquals(
                405,
                Gateways.send(HttpRequest.newBuilder(Gateways.uri(gateway, "/health")).DELETE())
                        .statusCode());
    }

    @ParameterizedTest
    @ValueSource(strings = {"0.0.0.0", "::", "192.0.2.1"})
    void anAdminPortForOthersNeedsAToken(String host) {
        final IllegalArgumentException refused =
                assertThrows(
                        IllegalArgumentException.class,
                        () -> Gateways.config().set(GatewaySettings.ADMIN_HOST, host).build());
        assertTrue(refused.getMessage().contains("admin-token"), refused.getMessage());
    }

    @Test
    void aTokenIsAskedForEverywhereButByProbes(@TempDir Path dir) throws Exception {
        final Path file =
                Files.writeString(dir.resolve("tokens"), "first-token\n\n second-token \n");
        start(
                Gateways.config(engine.worker("w1"))
                        .set(GatewaySettings.ADMIN_HOST, "0.0.0.0")
                        .set(GatewaySettings.ADMIN_TOKEN, new Secret("given"))
                        .set(GatewaySettings.ADMIN_TOKEN_FILE, file));
        Gateways.awaitContactWith(gateway, "Authorization", "Bearer given");
        for (String path : List.of("/metrics", "/debug/workers", "/health", "/nothing")) {
            for (String[] wrong :
                    new String[][] {
                        {},
                        {"Authorization", "Bearer "},
                        {"Authorization", "Bearer given2"},
                        {"Authorization", "Basic given"},
                        {"Authorization", "given"}
                    }) {
                final HttpResponse<String> refused = Gateways.admin(gateway, path, wrong);
                assertEquals(401, refused.statusCode(), path);
                assertFalse(refused.body().contains("given"), refused.body());
            }
        }
        for (String token : List.of("given", "first-token", "second-token")) {
            assertEquals(
                    200,
                    Gateways.admin(gateway, "/metrics", "Authorization", "bearer " + token)
                            .statusCode());
        }
        assertEquals(200, Gateways.admin(gateway, "/live").statusCode());
        assertEquals(200, Gateways.admin(gateway, "/ready").statusCode());
    }

    @Test
    void aFileWithoutATokenIsNoToken(@TempDir Path dir) throws Exception {
        final Path empty = Files.writeString(dir.resolve("tokens"), "\n\n");
        final GatewayException refused =
                assertThrows(
                        GatewayException.class,
                        () ->
                                GatewayServer.start(
                                        Gateways.config()
                                                .set(GatewaySettings.ADMIN_TOKEN_FILE, empty)
                                                .build()));
        assertTrue(refused.getMessage().contains("has no token"), refused.getMessage());
    }

    @Test
    void withoutATokenBrowsersAreRefused() throws Exception {
        start(Gateways.config(engine.worker("w1")));
        assertEquals(
                403,
                Gateways.admin(gateway, "/debug/workers", "Origin", "http://evil.example")
                        .statusCode());
        try (RawClient client = new RawClient(gateway.adminPort())) {
            client.send("GET /metrics HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n");
            assertTrue(client.readAll().startsWith("HTTP/1.1 403 "));
        }
        try (RawClient client = new RawClient(gateway.adminPort())) {
            client.send("GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
            assertTrue(client.readAll().startsWith("HTTP/1.1 200 "));
        }
    }

    private HttpResponse<String> post(String name) throws Exception {
        final ObjectNode worker = Json.MAPPER.createObjectNode();
        return Gateways.workers(
                gateway, "POST", "", worker.put("url", engine.url()).put("name", name).toString());
    }

    @ParameterizedTest
    @ValueSource(
            strings = {"a", "a;b", "\"q\"", "a?b#c", "a+b&c=d", "é🙂", "[::1]:80", "drain", "..."})
    void aWorkerThatIsAddedCanBeAddressed(String name) throws Exception {
        start(Gateways.config(engine.worker("w1")));
        assertEquals(201, post(name).statusCode());
        final String path = "/" + URLEncoder.encode(name, StandardCharsets.UTF_8);
        assertEquals(200, Gateways.workers(gateway, "GET", path, "").statusCode());
        assertEquals(200, Gateways.workers(gateway, "POST", path + "/drain", "").statusCode());
        assertEquals(200, Gateways.workers(gateway, "DELETE", path, "").statusCode());
        assertEquals(1, gateway.router().workers().size());
    }

    @ParameterizedTest
    @ValueSource(strings = {".", "..", "%", "a%20b", "%2e", "a\\b"})
    void aWorkerThatCouldNotBeAddressedIsNotAdded(String name) throws Exception {
        start(Gateways.config(engine.worker("w1")));
        final HttpResponse<String> refused = post(name);
        assertEquals(400, refused.statusCode(), refused.body());
        assertTrue(refused.body().contains("\"param\":\"name\""), refused.body());
        assertTrue(refused.body().contains("cannot be in a path"), refused.body());
        assertEquals(1, gateway.router().workers().size());
    }

    @Test
    void anAdminPortInUseIsNamedWithItsKnob() throws Exception {
        try (ServerSocket taken = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            final GatewayException refused =
                    assertThrows(
                            GatewayException.class,
                            () ->
                                    start(
                                            Gateways.config(engine.worker("w1"))
                                                    .set(
                                                            GatewaySettings.ADMIN_PORT,
                                                            (long) taken.getLocalPort())));
            assertTrue(
                    refused.getMessage().contains("127.0.0.1:" + taken.getLocalPort()),
                    refused.getMessage());
            assertTrue(refused.getMessage().contains("--admin-port"), refused.getMessage());
        }
    }

    @ParameterizedTest
    @CsvSource({"0, 0", "8000, 9000", "64535, 65535", "64536, 63536", "65535, 64535"})
    void theAdminPortIsAThousandFromTheServingPort(int port, int admin) {
        assertEquals(
                admin,
                GatewayConfig.builder()
                        .set(GatewaySettings.MODEL, "m")
                        .set(GatewaySettings.PORT, port)
                        .build()
                        .adminPort());
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "/debug/decisions?limit=%zz",
                "/debug/decisions?id=%ff",
                "/debug/workers?%",
                "/metrics?a=%2",
                "/admin/workers?a=%zz",
                "/settings?a=%zz"
            })
    void aQueryThatCannotBeDecodedIsTheCallersMistake(String path) throws Exception {
        start(Gateways.config(engine.worker("w1")));
        try (RawClient client = new RawClient(gateway.adminPort())) {
            client.send(
                    "GET " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
            final String answer = client.readAll();
            assertTrue(answer.startsWith("HTTP/1.1 400 "), answer);
            assertTrue(answer.contains("the query cannot be decoded"), answer);
        }
    }
}
