package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.spi.ILoggingEvent;

import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.log.LogText;
import io.kvasir.gateway.openai.Json;
import io.kvasir.gateway.testing.CapturedLog;
import io.kvasir.gateway.testing.FakeEngine;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.gateway.testing.MetricsPage;
import io.kvasir.gateway.testing.RawClient;
import io.kvasir.prompt.chat.SimModel;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Isolated;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.io.IOException;
import java.net.http.HttpResponse;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;

/** What clients and workers write does not get into the log as they wrote it. */
@Isolated // captures the log of the process
class LoggedTextTest {
    private static final String SECRET = "SECRETWORDS";
    private static final String FORGED =
            "\n2026-01-01 ERROR Upstream: forged\r\u001b[31m\u009b2J\u2028";
    private static final String ANSWER = "{\"choices\":[],\"usage\":{\"prompt_tokens\":1}}";

    private final FakeEngine engine = new FakeEngine(call -> call.json(200, ANSWER));
    private final CapturedLog log = new CapturedLog(Level.DEBUG);
    private final GatewayServer gateway =
            GatewayServer.start(
                    Gateways.config(engine.worker("w1"))
                            .set(GatewaySettings.TOKENIZER, Path.of(SimModel.KEYWORD))
                            .set(GatewaySettings.TRUST_REQUEST_CHAT_TEMPLATE, true)
                            .set(GatewaySettings.RETRY_BACKOFF, Duration.ZERO)
                            .build());

    @AfterEach
    void stop() {
        log.close();
        gateway.close();
        engine.close();
    }

    private void assertClean() {
        for (String text : log.textsFrom(Level.TRACE)) {
            assertTrue(text.length() < 1500, text.length() + " characters: " + text);
            assertTrue(
                    text.codePoints().noneMatch(c -> Character.isISOControl(c) || c == 0x2028),
                    LogText.of(text));
        }
        for (String text : log.textsFrom(Level.INFO)) {
            assertFalse(text.contains(SECRET), text);
        }
    }

    private static String json(String text) throws Exception {
        return Json.MAPPER.writeValueAsString(text);
    }

    private HttpResponse<String> chat(String messages, String more) throws Exception {
        return Gateways.post(
                gateway, "/v1/chat/completions", "{\"messages\":" + messages + more + "}");
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "long"})
    void aPromptThatCannotBeTokenizedIsNotInTheLog(String length) throws Exception {
        final String text = SECRET + FORGED + (length.isEmpty() ? "" : "x".repeat(1 << 20));
        final String id =
                GatewayHttpTest.header(
                        chat(
                                "[{\"role\":\"user\",\"content\":[{\"type\":" + json(text) + "}]}]",
                                ""),
                        "x-request-id");
        chat("[{\"role\":" + json(text) + ",\"content\":" + json(text) + "}]", "");
        chat(
                "[{\"role\":\"user\",\"content\":" + json(text) + "}]",
                ",\"chat_template\":\"{{ raise_exception(messages[0].content) }}\"");
        chat(
                "[{\"role\":\"user\",\"content\":" + json(text) + "}]",
                ",\"chat_template\":" + json("{{ " + text));
        final List<String> warned = log.textsFrom(Level.WARN);
        assertEquals(1, warned.size(), warned.toString());
        assertTrue(warned.getFirst().contains(id), warned.getFirst());
        assertTrue(
                log.textsFrom(Level.DEBUG).stream().anyMatch(line -> line.contains(SECRET)),
                "the reason can be seen at DEBUG");
        assertClean();
    }

    @Test
    void requestsThatAreNoHttpAreNotInTheLog() throws Exception {
        final String bad = SECRET + "\u001b[31m\u009b" + "x".repeat(1 << 20);
        for (String request :
                List.of(
                        bad + "\r\n\r\n",
                        "GET / HTTP/1.1\r\nHost: a" + SECRET + "\r\nHost: b\u009b2J\r\n\r\n",
                        "GET /" + bad + " HTTP/1.1\r\n\r\n",
                        "GET / HTTP/1.1\r\nHost: [" + SECRET + "x".repeat(30_000) + "\r\n\r\n",
                        "GET / HTTP/1.1\r\nHost: a:" + SECRET + "\r\n\r\n",
                        "CONNECT /" + SECRET + "x".repeat(30_000) + " HTTP/1.1\r\nHost: a\r\n\r\n",
                        "POST /v1/completions?api_key=" + SECRET + " HTTP/1.1\r\n" + bad + "\r\n",
                        "POST /v1/completions HTTP/1.1\r\nHost: " + SECRET + "\u0007\r\n\r\n",
                        "POST /v1/completions?k="
                                + SECRET
                                + " HTTP/1.1\r\nHost: a\r\n"
                                + "Content-Length: 5\r\n\r\n"
                                + SECRET.substring(0, 5),
                        "POST /v1/completions?k="
                                + SECRET
                                + " HTTP/1.1\r\nHost: a\r\n"
                                + "Transfer-Encoding: chunked\r\n\r\nzz\u001b"
                                + SECRET
                                + "\r\n",
                        "POST /v1/completions?k="
                                + SECRET
                                + " HTTP/1.1\r\nHost: a\r\n"
                                + "Content-Encoding: "
                                + SECRET
                                + "\r\nContent-Length: 1\r\n\r\n{",
                        SECRET + " /" + SECRET + "%0a%1b[31m HTTP/1.1\r\nHost: a\r\n\r\n",
                        "GET /v1/models HTTP/1.1\r\nHost: a\r\nX-Request-Id: "
                                + SECRET
                                + "\u001b[31m\r\n\r\n")) {
            try (RawClient client = new RawClient(gateway.port())) {
                try {
                    client.send(request).halfClose().readAll();
                } catch (IOException refused) {
                    assertFalse(refused.getMessage().contains(SECRET)); // reset in the middle
                }
            }
        }
        assertClean();
        assertEquals(List.of(), log.textsFrom(Level.WARN));
    }

    @Test
    void answersOfWorkersAreNotInTheLogAsTheyAre() throws Exception {
        final String bad = "\u001b[31mred\u009b" + "x".repeat(100_000);
        for (String answer :
                List.of(
                        "HTTP/1.1 200 \u001b[31mred\r\nbad header " + bad + "\r\n\r\n",
                        bad,
                        "HTTP/1.1 999 " + bad + "\r\n\r\n",
                        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz" + bad,
                        "HTTP/1.1 200 OK\r\nContent-Length: 9\r\nContent-Length: 8\r\n\r\n" + bad,
                        "HTTP/1.1 500 " + bad.substring(0, 50) + "\r\nConnection: close\r\n\r\n")) {
            engine.script = call -> call.raw(answer);
            Gateways.post(gateway, "/v1/completions", "{\"prompt\":[1]}");
        }
        assertClean();
    }

    @Test
    void whatProbesReadIsNotInTheLogAsItIs() throws Exception {
        final String bad = "\u001b[31mred\r\n forged" + "x".repeat(100_000);
        final String answer = "{\"tokens\":" + json(bad) + ",\"count\":" + json(bad) + "}";
        engine.tokenize = call -> call.json(200, answer);
        engine.metricsPage = "vllm:cache_config_info{block_size=\"" + bad;
        try (GatewayServer other =
                GatewayServer.start(
                        Gateways.config(engine.worker("w2"))
                                .set(GatewaySettings.TOKENIZER, Path.of(SimModel.KEYWORD))
                                .build())) {
            Gateways.awaitContact(other);
            engine.health = call -> call.raw("HTTP/1.1 200 " + bad + "\r\n\r\n");
            Eventually.holds(
                    "the worker is out of use", () -> !other.router().workers().get(0).available());
            engine.health = call -> call.json(200, "{}");
            Eventually.holds(
                    "the worker is back", () -> other.router().workers().get(0).available());
        }
        assertClean();
    }

    @Test
    void aClientThatLeavesIsNoWarning() throws Exception {
        engine.script = call -> call.awaitClientGone(60);
        for (String body :
                List.of(
                        "{\"prompt\":[1],\"stream\":true}",
                        "{\"prompt\":[1]}",
                        "{\"prompt\":\"a\"}")) {
            for (boolean reset : new boolean[] {false, true}) {
                final RawClient client = new RawClient(gateway.port());
                client.post("/v1/completions?api_key=" + SECRET, body);
                Eventually.holds("sent", () -> engine.inFlight.get() == 1);
                if (reset) {
                    client.reset();
                } else {
                    client.close();
                }
                Eventually.holds("the engine is released", () -> engine.inFlight.get() == 0);
            }
        }
        for (String part :
                List.of(
                        "POST /v1/completions?k=" + SECRET + " HTTP/1.1\r\nHost: a\r\nContent-Le",
                        "POST /v1/completions?k="
                                + SECRET
                                + " HTTP/1.1\r\nHost: a\r\nContent-Length: 50\r\n\r\n{\"prompt")) {
            try (RawClient client = new RawClient(gateway.port())) {
                client.send(part);
            }
            final RawClient client = new RawClient(gateway.port());
            client.send(part).reset();
        }
        Eventually.holds(
                "closed", () -> MetricsPage.of(gateway).sum("kvasir_open_connections") == 0);
        assertEquals(List.of(), log.textsFrom(Level.WARN));
        for (ILoggingEvent event : log.from(Level.DEBUG)) {
            assertEquals(null, event.getThrowableProxy(), event.getFormattedMessage());
        }
        assertClean();
    }

    @Test
    void aWorkerThatIsBackIsLoggedAsLoudlyAsItsEnd() throws Exception {
        Gateways.awaitContact(gateway);
        engine.health = FakeEngine.Call::cut;
        Eventually.holds("out of use", () -> !gateway.router().workers().get(0).available());
        engine.health = call -> call.json(200, "{}");
        Eventually.holds("back", () -> gateway.router().workers().get(0).available());
        Eventually.holds("both logged", () -> log.from(Level.WARN).size() >= 2);
        final List<String> warned = log.textsFrom(Level.WARN);
        assertTrue(warned.get(0).contains("is out of use"), warned.toString());
        assertTrue(warned.get(1).contains("is back"), warned.toString());
    }
}
