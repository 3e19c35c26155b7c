package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.testing.FakeEngine;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.gateway.testing.RawClient;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

import java.io.IOException;
import java.util.List;

/** Calls of web pages, and what OPTIONS says. */
class CrossOriginTest {
    private static final String ANSWER = "{\"choices\":[],\"usage\":{\"prompt_tokens\":1}}";
    private static final String PAGE = "https://chat.example";

    private final FakeEngine engine =
            new FakeEngine(
                    call ->
                            call.raw(
                                    "HTTP/1.1 200 OK\r\n"
                                        + "Connection: close\r\n"
                                        + "Access-Control-Allow-Origin: https://engine.example\r\n"
                                        + "Content-Length: "
                                            + ANSWER.length()
                                            + "\r\n\r\n"
                                            + ANSWER));
    private GatewayServer gateway;

    private void start(String... origins) {
        gateway =
                GatewayServer.start(
                        Gateways.config(engine.worker("w"))
                                .set(GatewaySettings.CORS_ORIGINS, List.of(origins))
                                .set(GatewaySettings.CORS_HEADERS, List.of("X-Mine"))
                                .build());
    }

    @AfterEach
    void stop() {
        if (gateway != null) {
            gateway.close();
        }
        engine.close();
    }

    /** The whole answer in small letters. */
    private String ask(String method, String path, String... headers) throws IOException {
        return ask(gateway.port(), method, path, headers);
    }

    private static String ask(int port, String method, String path, String... headers)
            throws IOException {
        try (RawClient client = new RawClient(port)) {
            final String body = method.equals("POST") ? "{\"prompt\":[1]}" : "";
            return client.send(
                            method
                                    + " "
                                    + path
                                    + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                                    + String.join("", headers)
                                    + "Content-Length: "
                                    + body.length()
                                    + "\r\n\r\n"
                                    + body)
                    .readAll()
                    .toLowerCase(java.util.Locale.ROOT);
        }
    }

    private String preflight(String origin) throws IOException {
        return ask(
                "OPTIONS",
                "/v1/chat/completions",
                "Origin: " + origin + "\r\n",
                "Access-Control-Request-Method: POST\r\n",
                "Access-Control-Request-Headers: authorization,content-type\r\n");
    }

    private static void assertAllows(String origin, String answer) {
        assertEquals(2, (answer + " ").split("access-control-allow-origin: ", -1).length, answer);
        assertTrue(answer.contains("access-control-allow-origin: " + origin + "\r\n"), answer);
        assertTrue(answer.contains("vary: origin"), answer);
    }

    private static void assertAllowsNothing(String answer) {
        assertTrue(!answer.contains("access-control-"), answer);
    }

    @Test
    void aPreflightOfAnAllowedPageIsAnsweredWithoutTheWorker() throws Exception {
        start("https://other.example", PAGE);
        final String answer = preflight(PAGE);
        assertTrue(answer.startsWith("http/1.1 204 "), answer);
        assertAllows(PAGE, answer);
        for (String part :
                new String[] {"authorization", "content-type", "x-mine", "post", "max-age: 600"}) {
            assertTrue(answer.contains(part), part + " is missing in " + answer);
        }
        assertTrue(!answer.contains("allow-credentials"), answer);
        assertEquals(0, engine.calls.size());
    }

    @Test
    void otherPagesAreAllowedNothing() throws Exception {
        start(PAGE);
        for (String origin :
                new String[] {
                    "https://evil.example", "https://chatxexample", PAGE + ".evil", "null"
                }) {
            final String answer = preflight(origin);
            assertTrue(answer.startsWith("http/1.1 204 "), answer);
            assertAllowsNothing(answer);
            assertAllowsNothing(ask("POST", "/v1/completions", "Origin: " + origin + "\r\n"));
        }
        assertEquals(4, engine.calls.size());
    }

    @Test
    void answersAndErrorsCanBeReadByAllowedPages() throws Exception {
        start(PAGE);
        final String origin = "Origin: " + PAGE + "\r\n";
        final String answer = ask("POST", "/v1/completions", origin);
        assertTrue(answer.startsWith("http/1.1 200 ") && answer.endsWith(ANSWER), answer);
        assertAllows(PAGE, answer);
        assertTrue(answer.contains("x-request-id"), answer);
        assertAllows(PAGE, ask("GET", "/v1/nothing", origin));
        assertAllows(PAGE, ask("DELETE", "/v1/completions", origin));
        assertAllows(PAGE, ask("GET", "/health", origin));
        engine.script = FakeEngine.Call::cut;
        final String failed = ask("POST", "/v1/completions", origin);
        assertTrue(failed.startsWith("http/1.1 502 "), failed);
        assertAllows(PAGE, failed);
    }

    @Test
    void anyPageMayBeAllowed() throws Exception {
        start("*");
        assertAllows("https://any.example", preflight("https://any.example"));
    }

    @Test
    void withoutTheSettingNoPageIsAllowedWhateverTheWorkerSays() throws Exception {
        start();
        assertAllowsNothing(preflight(PAGE));
        assertAllowsNothing(ask("POST", "/v1/completions", "Origin: " + PAGE + "\r\n"));
    }

    @Test
    void cookiesAreNotForEveryPage() {
        assertThrows(
                IllegalArgumentException.class,
                () ->
                        Gateways.config(engine.worker("w"))
                                .set(GatewaySettings.CORS_ORIGINS, List.of("*"))
                                .set(GatewaySettings.CORS_CREDENTIALS, true)
                                .build());
    }

    @ParameterizedTest
    @ValueSource(
            strings = {"chat.example", "https://chat.example/", "https://*.example", "https://"})
    void whatIsNoOriginIsRefused(String text) {
        assertThrows(
                IllegalArgumentException.class,
                () -> GatewaySettings.CORS_ORIGINS.parse(List.of(text)));
    }

    @ParameterizedTest
    @CsvSource({
        "false, /v1/chat/completions, 'post, options'",
        "false, /v1/models, 'get, head, options'",
        "false, /health, 'get, head, options'",
        "false, *, 'get, head, post, options'",
        "true, /metrics, 'get, head, options'",
        "true, /admin/workers, 'get, head, post, options'",
        "true, /admin/workers/w, 'get, head, delete, options'",
        "true, /admin/workers/w/drain, 'post, options'"
    })
    void optionsAndWrongMethodsNameTheMethods(boolean admin, String path, String methods)
            throws Exception {
        start();
        final int port = admin ? gateway.adminPort() : gateway.port();
        final String answer = ask(port, "OPTIONS", path);
        assertTrue(answer.startsWith("http/1.1 204 "), answer);
        assertTrue(answer.contains("allow: " + methods + "\r\n"), answer);
        if (!path.equals("*")) {
            final String wrong = ask(port, "PATCH", path);
            assertTrue(wrong.startsWith("http/1.1 405 "), wrong);
            assertTrue(wrong.contains("allow: " + methods + "\r\n"), wrong);
        }
        assertEquals(0, engine.calls.size());
    }
}
