package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.testing.FakeEngine;
import io.kvasir.gateway.testing.FrameClient;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.gateway.testing.MetricsPage;
import io.kvasir.gateway.testing.RawClient;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.util.List;
import java.util.Set;
import java.util.concurrent.CountDownLatch;

/** Every answer is counted, once, under the one name of its endpoint. */
@Order(1) // takes long: begins first, beside the others
class CountedResponsesTest {
    private static final String REQUESTS = "kvasir_requests_total";
    private static final String ANSWER =
            "{\"choices\":[],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":4}}";
    private static final String IDS = "{\"prompt\":[1]}";
    private static final String STREAM = "{\"prompt\":[1,2,3],\"stream\":true}";
    private static final Set<String> ROUTES =
            Set.of(
                    "chat",
                    "completions",
                    "models",
                    "tokenize",
                    "live",
                    "ready",
                    "health",
                    "unknown");

    private final FakeEngine engine = new FakeEngine(call -> call.json(200, ANSWER));
    private GatewayServer gateway =
            start(
                    Gateways.config(engine.worker("w1"))
                            .set(GatewaySettings.MAX_BODY_BYTES, 1000)
                            .set(GatewaySettings.LORA, List.of("adapter")));
    private int expected;

    private static GatewayServer start(GatewayConfig.Builder config) {
        return GatewayServer.start(config.build());
    }

    @AfterEach
    void stop() {
        gateway.close();
        engine.close();
    }

    /** One request more has been answered, and counted so; nothing else was counted. */
    private void assertCounted(String... labels) throws InterruptedException {
        expected++;
        Eventually.holds(
                expected + " counted, one as " + List.of(labels),
                () -> {
                    final MetricsPage page = MetricsPage.of(gateway);
                    return page.sum(REQUESTS) >= expected && page.sum(REQUESTS, labels) > 0;
                });
        final MetricsPage page = MetricsPage.of(gateway);
        assertEquals(expected, page.sum(REQUESTS), page.series(REQUESTS).toString());
        assertTrue(ROUTES.containsAll(page.values(REQUESTS, "route")), "" + page.series(REQUESTS));
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "POST /v1/completions|{\"prompt\":[1]}|completions|200",
                "POST /v1/completions|{|completions|400",
                "POST /v1/completions|{\"model\":\"other\",\"prompt\":[1]}|completions|404",
                "GET /v1/completions||completions|405",
                "POST /v1/chat/completions|{\"messages\":1}|chat|400",
                "POST /v1/chat/completions|long|chat|413",
                "POST /tokenize|{\"prompt\":[1]}|tokenize|200",
                "POST /tokenize|{\"prompt\":\"a\"}|tokenize|501",
                "GET /v1/models||models|200",
                "HEAD /v1/models||models|200",
                "GET /v1/models/m||models|200",
                "GET /v1/models/x||models|404",
                "POST /v1/models/m|x|models|405",
                "GET /v1/models/||unknown|404",
                "GET /v1/completions/||unknown|404",
                "OPTIONS *||unknown|204",
                "GET /live||live|200",
                "POST /live|x|live|405",
                "GET /ready||ready|200",
                "GET /health||health|200"
            })
    void anAnswerIsCountedUnderItsEndpoint(String target, String body, String route, int status)
            throws Exception {
        Gateways.awaitContact(gateway);
        final String sent = body == null ? "" : body.equals("long") ? "x".repeat(2000) : body;
        try (RawClient client = new RawClient(gateway.port())) {
            client.send(
                    target
                            + " HTTP/1.1\r\nHost: g\r\nConnection: close\r\nContent-Length: "
                            + sent.length()
                            + "\r\n\r\n"
                            + sent);
            final String answer = client.readAll();
            assertTrue(answer.startsWith("HTTP/1.1 " + status + " "), answer);
        }
        assertCounted("route", route, "status", "" + status);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "GET /v1/models HTTP/1.1\\r\\nHost: a\\r\\nHost: b\\r\\n\\r\\n|400",
                "GET /%zz HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n|400",
                "nonsense\\r\\n\\r\\n|400",
                "POST /v1/completions HTTP/1.1\\r\\nHost: a\\r\\nX: LONG\\r\\n\\r\\n|431",
                "GET /LONG HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n|414",
                "POST /v1/completions HTTP/1.1\\r\\nHost: a\\r\\nContent-Length: 3\\r\\n"
                        + "Transfer-Encoding: chunked\\r\\n\\r\\n|400",
                "GET /v1/models HTTP/7.0\\r\\nHost: a\\r\\n\\r\\n|505"
            })
    void whatTheServerItselfRefusesIsCounted(String request, int status) throws Exception {
        try (RawClient client = new RawClient(gateway.port())) {
            final String answer =
                    client.send(
                                    request.replace("\\r\\n", "\r\n")
                                            .replace("LONG", "x".repeat(40_000)))
                            .readAll();
            assertTrue(answer.startsWith("HTTP/1.1 " + status + " "), answer);
        }
        assertCounted("status", "" + status);
    }

    @Test
    void aClientThatLeavesIsCountedOnce() throws Exception {
        engine.script = call -> call.awaitClientGone(60);
        for (String body : List.of(IDS, STREAM)) {
            try (RawClient client = new RawClient(gateway.port())) {
                client.post("/v1/completions", body);
                Eventually.holds("sent", () -> engine.inFlight.get() == 1);
            }
            assertCounted("route", "completions", "status", "499", "mode", "kv");
            Eventually.holds("the engine is released", () -> engine.inFlight.get() == 0);
        }
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "/v1/completions|true",
                "/v1/completions|false",
                "/v1/chat/completions|false",
                "/tokenize|false"
            })
    void aStreamThatIsCancelledAtOnceIsOneOfAClientThatLeft(String path, boolean whole)
            throws Exception {
        engine.script = call -> call.awaitClientGone(60);
        final int count = 24;
        try (FrameClient client = new FrameClient(gateway.port())) {
            for (int i = 0; i < count; i++) {
                client.begin("POST", path, false).send(STREAM, whole).reset();
            }
            Eventually.holds("all counted", () -> MetricsPage.of(gateway).sum(REQUESTS) == count);
        }
        final MetricsPage page = MetricsPage.of(gateway);
        assertEquals(count, page.sum(REQUESTS, "status", "499"), page.series(REQUESTS).toString());
    }

    @Test
    void aPageThatIsCancelledAtOnceIsNoFault() throws Exception {
        final int count = 24;
        try (FrameClient client = new FrameClient(gateway.port())) {
            for (int i = 0; i < count; i++) {
                client.get("GET", "/v1/models").reset();
            }
            Eventually.holds("all counted", () -> MetricsPage.of(gateway).sum(REQUESTS) == count);
        }
        final MetricsPage page = MetricsPage.of(gateway);
        assertEquals(
                count,
                page.sum(REQUESTS, "status", "499") + page.sum(REQUESTS, "status", "200"),
                page.series(REQUESTS).toString());
    }

    @ParameterizedTest
    @CsvSource({
        "Content-Length: 50, false",
        "Content-Length: 50, true",
        "Transfer-Encoding: chunked, true"
    })
    void aClientThatLeavesWithinItsBodyIsCountedAsOne(String length, boolean reset)
            throws Exception {
        try (RawClient client = new RawClient(gateway.port())) {
            client.send("POST /v1/completions HTTP/1.1\r\nHost: g\r\n" + length + "\r\n\r\n5\r\n{");
            if (reset) {
                client.reset();
            }
        }
        assertCounted("route", "completions", "status", "499");
    }

    @Test
    void aClientThatReadsOnAfterABodyThatBrokeOffGetsAnAnswer() throws Exception {
        try (RawClient client = new RawClient(gateway.port())) {
            final String answer =
                    client.send(
                                    "POST /v1/completions HTTP/1.1\r\nHost: g\r\n"
                                            + "Content-Length: 50\r\n\r\n{")
                            .halfClose()
                            .readAll();
            assertTrue(answer.startsWith("HTTP/1.1 400 "), answer);
        }
        assertCounted("route", "completions", "status", "499");
    }

    @Test
    void anAnswerThatIsCutIsCountedOnceWithItsFault() throws Exception {
        engine.script =
                call -> {
                    call.beginEvents();
                    call.chunk(FakeEngine.event("{\"index\":0,\"text\":\"a\"}"));
                    call.cut();
                };
        final String events = Gateways.post(gateway, "/v1/completions", STREAM).body();
        assertTrue(events.contains("upstream_"), events);
        assertCounted("route", "completions", "status", "502");
        engine.script = FakeEngine.Call::cut;
        assertEquals(502, Gateways.post(gateway, "/v1/completions", IDS).statusCode());
        expected++;
        assertEquals(2, MetricsPage.of(gateway).sum(REQUESTS, "status", "502"));
    }

    @Test
    void theModelIsOneThatIsServed() throws Exception {
        Gateways.post(gateway, "/v1/completions", "{\"prompt\":[1],\"model\":\"m\"}");
        assertCounted("model", "m");
        Gateways.post(gateway, "/v1/completions", "{\"prompt\":[1],\"model\":\"adapter\"}");
        assertCounted("model", "adapter");
        for (int i = 0; i < 50; i++) {
            Gateways.post(gateway, "/v1/completions", "{\"prompt\":[1],\"model\":\"n" + i + "\"}");
            assertCounted("model", "none", "status", "404");
        }
        assertEquals(
                Set.of("m", "adapter", "none"), MetricsPage.of(gateway).values(REQUESTS, "model"));
    }

    @Test
    void aRefusalForLoadIsCounted() throws Exception {
        final CountDownLatch answered = new CountDownLatch(1);
        engine.script =
                call -> {
                    answered.await();
                    call.json(200, ANSWER);
                };
        gateway.close();
        gateway =
                start(
                        Gateways.config(engine.worker("w1"))
                                .set(RouterSettings.MAX_ACTIVE_REQUESTS, 1));
        try (RawClient first = new RawClient(gateway.port())) {
            first.post("/v1/completions", IDS);
            Eventually.holds("booked", () -> gateway.router().activeLeases() == 1);
            assertEquals(429, Gateways.post(gateway, "/v1/completions", IDS).statusCode());
            assertCounted("route", "completions", "status", "429", "mode", "none");
            answered.countDown();
            first.readUntil("choices");
            assertCounted("route", "completions", "status", "200", "mode", "kv");
        }
    }

    @Test
    void openConnectionsAreSeenAlsoThoseWithoutARequest() throws Exception {
        try (RawClient silent = new RawClient(gateway.port());
                RawClient half = new RawClient(gateway.port())) {
            half.send("POST /v1/comp");
            Eventually.holds(
                    "connected", () -> MetricsPage.of(gateway).sum("kvasir_open_connections") == 2);
            silent.reset();
            half.reset();
        }
        Eventually.holds(
                "closed", () -> MetricsPage.of(gateway).sum("kvasir_open_connections") == 0);
    }
}
