package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewayException;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.Secret;
import io.kvasir.gateway.config.WorkerConfig;
import io.kvasir.gateway.openai.Json;
import io.kvasir.gateway.openai.TenantSalt;
import io.kvasir.gateway.testing.FakeEngine;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.gateway.testing.RawClient;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

import java.io.IOException;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Base64;
import java.util.List;
import java.util.Locale;

/** What callers get to know and may steer, and what workers get of them. */
class TrustTest {
    private static final String ANSWER = "{\"choices\":[],\"usage\":{\"prompt_tokens\":1}}";
    private static final String WHOLE = "{\"prompt\":[1]}";

    private final FakeEngine engine = new FakeEngine(call -> call.json(200, ANSWER));
    private GatewayServer gateway;

    private void start(GatewayConfig.Builder config) throws Exception {
        gateway = Gateways.started(config);
    }

    private GatewayConfig.Builder untrusting() {
        return Gateways.config(WorkerConfig.parse(engine.url() + ",name=secret-name"))
                .set(GatewaySettings.TRUSTED_NETWORKS, List.of());
    }

    @AfterEach
    void stop() {
        if (gateway != null) {
            gateway.close();
        }
        engine.close();
    }

    private HttpResponse<String> complete(String... headers) throws Exception {
        return Gateways.post(gateway, "/v1/completions", WHOLE, headers);
    }

    private static boolean saysOfRouting(HttpResponse<String> answer) {
        return answer.headers().map().keySet().stream().anyMatch(h -> h.startsWith("x-kvasir-"));
    }

    @Test
    void aCallerIsNotTrustedByDefaultAndSeesNothingOfRouting() throws Exception {
        start(untrusting());
        final HttpResponse<String> answer = complete();
        assertEquals(200, answer.statusCode());
        assertFalse(saysOfRouting(answer), answer.headers().map()::toString);
        assertTrue(GatewayHttpTest.header(answer, "x-request-id").startsWith("kv-"));
        engine.script = call -> call.cut();
        final HttpResponse<String> failed = complete();
        assertEquals(502, failed.statusCode());
        assertFalse(saysOfRouting(failed), failed.headers().map()::toString);
    }

    @Test
    void itsRoutingHeadersMeanNothing() throws Exception {
        start(untrusting());
        for (String[] header :
                new String[][] {
                    {"x-kvasir-worker", "nobody"},
                    {"x-kvasir-mode", "fastest"},
                    {"x-kvasir-temperature", "-1"}
                }) {
            final HttpResponse<String> answer = complete(header);
            assertEquals(200, answer.statusCode(), header[0]);
        }
    }

    @ParameterizedTest
    @CsvSource({
        "127.0.0.1, true",
        "127.0.0.0/8, true",
        "::1, false",
        "::ffff:127.0.0.1, true",
        "::FFFF:127.0.0.0/104, true",
        "[::ffff:127.0.0.1], true",
        "::ffff:10.0.0.0/104, false",
        "127.0.0.2-127.0.0.9, false",
        "10.0.0.0/8, false"
    })
    void anAddressRangeIsTrusted(String range, boolean trusted) throws Exception {
        start(untrusting().set(GatewaySettings.TRUSTED_NETWORKS, List.of(range)));
        assertEquals(trusted, saysOfRouting(complete("X-Forwarded-For", "127.0.0.1")));
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "localhost",
                "10.0.0.0/33",
                "::ffff:10.0.0.0/129",
                "::ffff:10.0.0.0/8",
                "",
                "all"
            })
    void whatIsNoRangeIsRefused(String range) {
        assertThrows(
                IllegalArgumentException.class,
                () -> GatewaySettings.TRUSTED_NETWORKS.parse(List.of(range)));
    }

    @Test
    void aTokenIsTrustedReadAgainAndNeverPassedOn(@TempDir Path dir) throws Exception {
        final Path file = Files.writeString(dir.resolve("t"), "from-file");
        start(
                untrusting()
                        .set(GatewaySettings.TRUSTED_TOKENS, List.of(new Secret("given")))
                        .set(GatewaySettings.TRUSTED_TOKEN_FILE, file));
        assertTrue(saysOfRouting(complete("Authorization", "Bearer given")));
        assertTrue(saysOfRouting(complete("Authorization", "Bearer from-file")));
        assertFalse(saysOfRouting(complete("Authorization", "Bearer other")));
        assertNull(engine.calls.get(0).headers.get("authorization"));
        assertNull(engine.calls.get(1).headers.get("authorization"));
        assertEquals("Bearer other", engine.calls.get(2).headers.get("authorization"));
        Files.writeString(file, "newer");
        gateway.reload();
        assertFalse(saysOfRouting(complete("Authorization", "Bearer from-file")));
        assertTrue(saysOfRouting(complete("Authorization", "Bearer newer")));
        Files.writeString(file, "");
        gateway.reload();
        assertTrue(saysOfRouting(complete("Authorization", "Bearer newer")));
    }

    @Test
    void aMarkOfTheByteOrderAndCommentsAreNoPartOfTokens(@TempDir Path dir) throws Exception {
        final Path file =
                Files.writeString(dir.resolve("t"), "\ufefffirst\n# of a team\n#\n\n second \r\n");
        final Path key = Files.writeString(dir.resolve("k"), "\ufeff# the engines'\r\nkey\r\n");
        start(
                untrusting()
                        .set(GatewaySettings.TRUSTED_TOKEN_FILE, file)
                        .set(GatewaySettings.WORKER_KEY_FILE, key));
        assertTrue(saysOfRouting(complete("Authorization", "Bearer first")));
        assertTrue(saysOfRouting(complete("Authorization", "Bearer second")));
        assertFalse(saysOfRouting(complete("Authorization", "Bearer # of a team")));
        assertFalse(saysOfRouting(complete("Authorization", "Bearer #")));
        assertEquals("Bearer key", engine.calls.getLast().headers.get("authorization"));
    }

    private String answerTo(int port, String path, String... authorizations) throws IOException {
        final StringBuilder head = new StringBuilder(path + " HTTP/1.1\r\nHost: localhost\r\n");
        for (String authorization : authorizations) {
            head.append("Authorization: ").append(authorization).append("\r\n");
        }
        final String body = "{\"prompt\":[1]}";
        try (RawClient client = new RawClient(port)) {
            client.send(
                    head
                            + "Content-Type: application/json\r\nConnection: close\r\n"
                            + "Content-Length: "
                            + body.length()
                            + "\r\n\r\n"
                            + body);
            return client.readAll();
        }
    }

    @Test
    void aTokenBesideOtherCredentialsIsNeitherTrustedNorPassedOn() throws Exception {
        start(
                untrusting()
                        .set(GatewaySettings.TRUSTED_TOKENS, List.of(new Secret("given")))
                        .set(GatewaySettings.ADMIN_TOKEN, new Secret("admin")));
        for (String[] two :
                new String[][] {
                    {"Bearer mine", "Bearer given"},
                    {"Bearer given", "Bearer mine"},
                    {"Bearer given", "Bearer given"},
                }) {
            final String answer = answerTo(gateway.port(), "POST /v1/completions", two);
            assertTrue(answer.startsWith("HTTP/1.1 400 "), answer);
            assertTrue(answer.contains("more than one Authorization"), answer);
        }
        assertEquals(List.of(), engine.calls);
        for (String list : List.of("Bearer mine, Bearer given", "Bearer given,Bearer mine")) {
            final String answer = answerTo(gateway.port(), "POST /v1/completions", list);
            assertTrue(answer.startsWith("HTTP/1.1 200 "), answer);
            assertFalse(answer.toLowerCase(Locale.ROOT).contains("x-kvasir-worker:"), answer);
            assertNull(engine.calls.getLast().headers.get("authorization"));
        }
        final int admin = gateway.adminPort();
        for (String[] two :
                new String[][] {{"Bearer admin", "Bearer x"}, {"Bearer x", "Bearer admin"}}) {
            final String answer = answerTo(admin, "GET /metrics", two);
            assertTrue(answer.startsWith("HTTP/1.1 400 "), answer);
        }
        final String answer = answerTo(admin, "GET /metrics", "Bearer x, Bearer admin");
        assertTrue(answer.startsWith("HTTP/1.1 401 "), answer);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "Bearer mine Bearer given",
                "Bearer given bearer mine",
                "Bearer mine\tgiven",
                "Bearer given mine",
                "Basic bWluZQ== BEARER  given",
                "Bearer x,Bearer mine Bearer given",
                "Bearer Bearer given"
            })
    void credentialsWithoutACommaBetweenThemAreRefused(String several) throws Exception {
        start(
                untrusting()
                        .set(GatewaySettings.TRUSTED_TOKENS, List.of(new Secret("given")))
                        .set(GatewaySettings.ADMIN_TOKEN, new Secret("given")));
        for (String answer :
                List.of(
                        answerTo(gateway.port(), "POST /v1/completions", several),
                        answerTo(gateway.adminPort(), "GET /metrics", several))) {
            assertTrue(answer.startsWith("HTTP/1.1 400 "), answer);
            assertTrue(answer.contains("more than one credential"), answer);
            assertFalse(answer.contains("mine"), answer);
        }
        assertEquals(List.of(), engine.calls);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "Bearer   mine  ",
                "Basic bWluZTptaW5l",
                "Digest username=\"a b\", realm=\"the bearer\", uri=\"/\"",
                "bearer",
                "Bearers a b"
            })
    void oneCredentialIsPassedOn(String one) throws Exception {
        start(untrusting().set(GatewaySettings.TRUSTED_TOKENS, List.of(new Secret("given"))));
        final String answer = answerTo(gateway.port(), "POST /v1/completions", one);
        assertTrue(answer.startsWith("HTTP/1.1 200 "), answer);
        assertEquals(one.strip(), engine.calls.getLast().headers.get("authorization"));
    }

    @Test
    void aTokenWithABlankIsRefusedAtTheStartAndNotSaid(@TempDir Path dir) throws Exception {
        final Path file = Files.writeString(dir.resolve("t"), "good\nsec ret\n");
        for (GatewayConfig.Builder config :
                List.of(
                        untrusting().set(GatewaySettings.TRUSTED_TOKEN_FILE, file),
                        untrusting().set(GatewaySettings.ADMIN_TOKEN_FILE, file),
                        untrusting().set(GatewaySettings.ADMIN_TOKEN, new Secret("sec\tret")))) {
            final String refusal =
                    assertThrows(GatewayException.class, () -> start(config)).getMessage();
            assertTrue(refusal.contains("a blank in it"), refusal);
            assertFalse(refusal.contains("ret"), refusal);
        }
    }

    @Test
    void aKeyOfTheGatewaysOwnReplacesTheClients(@TempDir Path dir) throws Exception {
        final Path file = Files.writeString(dir.resolve("k"), "first\n");
        start(untrusting().set(GatewaySettings.WORKER_KEY_FILE, file));
        complete("Authorization", "Bearer client");
        complete();
        Files.writeString(file, "second\n");
        gateway.reload();
        complete();
        assertEquals(
                List.of("Bearer first", "Bearer first", "Bearer second"),
                engine.calls.stream().map(c -> c.headers.get("authorization")).toList());
    }

    @ParameterizedTest
    @ValueSource(strings = {"sec\u0001ret", "sec\u007fret", "sec\tret", "sec ret", "sec\u00e9ret"})
    void aKeyThatNoHeaderCanCarryIsRefusedAndNotSaid(String key, @TempDir Path dir)
            throws Exception {
        final Path file = Files.writeString(dir.resolve("k"), key);
        for (GatewayConfig.Builder config :
                List.of(
                        untrusting().set(GatewaySettings.WORKER_KEY_FILE, file),
                        untrusting().set(GatewaySettings.WORKER_KEY, new Secret(key)))) {
            final GatewayException refused =
                    assertThrows(GatewayException.class, () -> start(config));
            assertTrue(refused.getMessage().contains("worker-key"), refused.getMessage());
            assertFalse(refused.getMessage().contains("ret"), refused.getMessage());
        }
        Files.writeString(file, "first");
        start(untrusting().set(GatewaySettings.WORKER_KEY_FILE, file));
        Files.writeString(file, key);
        gateway.reload();
        complete();
        assertEquals("Bearer first", engine.calls.getLast().headers.get("authorization"));
    }

    @Test
    void userAndPasswordOfAWorkerAreShownNowhere() throws Exception {
        final String url = engine.url().replace("http://", "http://joe:p%40ss%2Bw+d@");
        gateway =
                GatewayServer.start(
                        untrusting()
                                .set(GatewaySettings.WORKERS, List.of(WorkerConfig.parse(url)))
                                .build());
        Gateways.awaitContact(gateway);
        complete("Authorization", "Bearer client");
        final String sent = engine.calls.getFirst().headers.get("authorization");
        assertEquals(
                "joe:p@ss+w+d",
                new String(
                        Base64.getDecoder().decode(sent.substring("Basic ".length())),
                        StandardCharsets.UTF_8));
        for (String path :
                List.of("/metrics", "/debug/workers", "/debug/decisions", "/admin/workers")) {
            final String page = Gateways.admin(gateway, path).body();
            assertFalse(page.contains("joe") || page.contains("p%40"), page);
        }
        assertFalse(WorkerConfig.parse(url).toString().contains("joe"));
        for (String wrong : List.of(url + ",nome=x", url + "/v1", "ftp" + url.substring(4))) {
            final IllegalArgumentException refused =
                    assertThrows(
                            IllegalArgumentException.class,
                            () -> GatewaySettings.WORKERS.parse(List.of(wrong)));
            assertFalse(refused.getMessage().contains("joe"), refused.getMessage());
            assertFalse(refused.getMessage().contains("p%40"), refused.getMessage());
        }
    }

    @Test
    void clientsReadNothingOfWhatIsBehindTheGateway() throws Exception {
        start(untrusting());
        final List<FakeEngine.Script> broken =
                List.of(
                        call -> call.cut(),
                        call -> call.raw("HTTP/1.1 garbage\u0001\r\n\r\n"),
                        call -> call.raw("SSH-2.0-OpenSSH_9.2\r\n"),
                        call -> call.raw("HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"),
                        call -> {
                            call.beginEvents();
                            call.chunk("data: {}\n\n");
                            call.raw("ZZ\r\n");
                            call.cut();
                        });
        for (FakeEngine.Script script : broken) {
            engine.script = script;
            final String body = complete().body();
            for (String secret :
                    List.of(
                            "secret-name",
                            "127.0.0.1",
                            "Http",
                            "jetty",
                            "@",
                            "xception",
                            Integer.toString(engine.port()))) {
                assertFalse(body.contains(secret), secret + " in " + body);
            }
            assertTrue(body.contains("\"error\""), body);
        }
        engine.close();
        Eventually.holds("down", () -> !gateway.router().workers().getFirst().available());
        final String none = complete().body();
        assertTrue(none.contains("no worker can serve"), none);
        assertFalse(none.matches("(?s).*\\bof \\d.*"), none);
    }

    @Test
    void tenantsShareNoCachedBlock() throws Exception {
        start(
                untrusting()
                        .set(GatewaySettings.TRUSTED_NETWORKS, List.of("127.0.0.1"))
                        .set(GatewaySettings.TENANT_HEADER, "X-Tenant")
                        .set(RouterSettings.APPROXIMATE, true));
        final String prompt = "{\"prompt\":[" + "7,".repeat(63) + "7]}";
        assertEquals("0", predicted("a", prompt));
        Eventually.holds("a's own prompt is found", () -> "48".equals(predictedNow("a", prompt)));
        assertEquals("0", predicted("b", prompt));
        final String salt = salt(engine.calls.getFirst());
        assertEquals(
                "0",
                predicted("b", prompt.replace("{", "{\"cache_salt\":\"" + salt + "\",")),
                "another tenant's salt is not to be had by writing it");
        assertEquals(salt, salt(engine.calls.get(1)));
        assertNotEquals(salt, salt(engine.calls.getLast()));
        final JsonNode sent = Json.MAPPER.readTree(engine.calls.getFirst().text());
        assertEquals(64, sent.path("prompt").size());
    }

    @Test
    void aRequestThatNamesTwoTenantsIsRefused() throws Exception {
        start(untrusting().set(GatewaySettings.TENANT_HEADER, "X-Tenant"));
        for (String second : List.of("b", "a", "")) {
            final HttpResponse<String> answer =
                    Gateways.post(
                            gateway,
                            "/v1/completions",
                            "{\"prompt\":[1]}",
                            "X-Tenant",
                            "a",
                            "x-tenant",
                            second);
            assertEquals(400, answer.statusCode(), answer.body());
            assertTrue(answer.body().contains("more than one X-Tenant header"), answer.body());
        }
        assertTrue(engine.calls.isEmpty());
    }

    @Test
    void aBatchWithASaltForEachPromptIsServedWhereNoTenantsAreNamed() throws Exception {
        final String batch = "{\"prompt\":[[1],[2]],\"cache_salt\":[\"a\",\"b\"]}";
        start(untrusting());
        assertEquals(200, Gateways.post(gateway, "/v1/completions", batch).statusCode());
        assertEquals(batch, engine.calls.getFirst().text());
        gateway.close();
        start(untrusting().set(GatewaySettings.TENANT_HEADER, "X-Tenant"));
        for (String[] headers : new String[][] {{}, {"X-Tenant", "a"}}) {
            final HttpResponse<String> answer =
                    Gateways.post(gateway, "/v1/completions", batch, headers);
            assertEquals(400, answer.statusCode(), answer.body());
            assertTrue(answer.body().contains("must be a string beside X-Tenant"), answer.body());
        }
    }

    private String predicted(String tenant, String prompt) throws Exception {
        return GatewayHttpTest.header(
                Gateways.post(gateway, "/v1/completions", prompt, "X-Tenant", tenant),
                "x-kvasir-predicted-cached-tokens");
    }

    private String predictedNow(String tenant, String prompt) {
        try {
            return predicted(tenant, prompt);
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }

    private static String salt(FakeEngine.Call call) throws Exception {
        return Json.MAPPER.readTree(call.body).path("cache_salt").asText();
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "{\"prompt\":[1]}",
                "  {\"prompt\":[1] }\r\n",
                "{\"prompt\":[1],\"x\":{\"y\":1.50}}",
                "\ufeff{\"prompt\":[1]}"
            })
    void aBodyGetsItsSaltAndKeepsTheRest(String body) throws Exception {
        final byte[] salted = TenantSalt.put(body.getBytes(StandardCharsets.UTF_8), false, "abc");
        final JsonNode tree = Json.MAPPER.readTree(salted);
        assertEquals("abc", tree.path("cache_salt").asText());
        assertEquals(1, tree.path("prompt").get(0).asInt());
    }

    @Test
    void aSaltOfTheClientsIsReplacedWhereverItStands() throws Exception {
        final byte[] salted =
                TenantSalt.put(
                        "{\"cache_salt\":\"x\",\"prompt\":[1],\"cache_salt\":\"y\"}"
                                .getBytes(StandardCharsets.UTF_8),
                        true,
                        "abc");
        assertEquals(
                "{\"cache_salt\":\"abc\",\"prompt\":[1]}",
                new String(salted, StandardCharsets.UTF_8));
        assertNotEquals(TenantSalt.of("a", "1b"), TenantSalt.of("a1", "b"));
        assertNotEquals(TenantSalt.of("a", null), TenantSalt.of(null, "a"));
        assertNotEquals(TenantSalt.of("a", null), TenantSalt.of("a", ""));
        assertNull(TenantSalt.of(null, null));
    }
}
