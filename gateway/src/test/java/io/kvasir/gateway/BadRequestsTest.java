package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.testing.FakeEngine;
import io.kvasir.gateway.testing.FrameClient;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.gateway.testing.RawClient;
import io.kvasir.router.Worker;
import io.kvasir.router.policy.RoutingMode;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.Trials;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.List;
import java.util.stream.Stream;

/** Requests that make engines fail, beside others that must not suffer from them. */
@Order(1) // takes long: begins first, beside the others
class BadRequestsTest {
    private static final String ANSWER = "{\"choices\":[],\"usage\":{\"prompt_tokens\":1}}";
    private static final String GOOD = "{\"prompt\":[1]}";

    private volatile FakeEngine.Script onBad;
    private final List<FakeEngine> engines =
            Stream.generate(() -> new FakeEngine(this::answer)).limit(3).toList();
    private GatewayServer gateway;

    private void answer(FakeEngine.Call call) throws java.io.IOException, InterruptedException {
        if (call.text().contains("bad")) {
            onBad.answer(call);
        } else {
            call.json(200, ANSWER);
        }
    }

    private GatewayConfig.Builder config() {
        return Gateways.config(
                        engines.get(0).worker("a"),
                        engines.get(1).worker("b"),
                        engines.get(2).worker("c"))
                .set(RouterSettings.MODE, RoutingMode.ROUND_ROBIN)
                .set(GatewaySettings.RETRY_BACKOFF, Duration.ZERO);
    }

    private void start(GatewayConfig.Builder config) throws InterruptedException {
        gateway = GatewayServer.start(config.build());
        Gateways.awaitContact(gateway);
    }

    @AfterEach
    void stop() {
        gateway.close();
        engines.forEach(FakeEngine::close);
    }

    private HttpResponse<String> bad(int number) throws Exception {
        return Gateways.post(
                gateway, "/v1/completions", "{\"prompt\":[2],\"user\":\"bad" + number + "\"}");
    }

    private void assertGoodIsAnswered() throws Exception {
        final HttpResponse<String> answer = Gateways.post(gateway, "/v1/completions", GOOD);
        assertEquals(200, answer.statusCode(), answer.body());
    }

    private boolean allAvailable() {
        return gateway.router().workers().stream().allMatch(Worker::available);
    }

    @Tag("trials")
    @ParameterizedTest
    @CsvSource({"500, 2", "500, 0", "501, 2", "505, 2", "529, 2", "502, 1", "503, 2"})
    void badRequestsTakeNoWorkerFromGoodOnes(int status, int retries) throws Exception {
        onBad = call -> call.json(status, "{\"error\":\"no\"}");
        start(config().set(GatewaySettings.RETRIES, retries));
        for (int i = 0; i < Trials.of(15, 40); i++) {
            assertEquals(status, bad(i).statusCode());
            assertEquals(status, bad(0).statusCode());
            assertGoodIsAnswered();
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {500, 501, 529})
    void badRequestsAloneLeaveEveryWorkerInUse(int status) throws Exception {
        onBad = call -> call.json(status, "{\"error\":\"no\"}");
        start(config());
        for (int i = 0; i < 40; i++) {
            assertEquals(status, bad(i).statusCode());
            assertTrue(allAvailable());
        }
        assertGoodIsAnswered();
    }

    @Test
    void whereEveryRequestIsBadAndTriedOnceAQuorumStays() throws Exception {
        onBad = call -> call.json(500, "{\"error\":\"no\"}");
        start(
                config().set(GatewaySettings.RETRIES, 0)
                        .set(GatewaySettings.BREAKER_HOLD, Duration.ofHours(1)));
        for (int i = 0; i < 100; i++) {
            assertEquals(500, bad(i).statusCode());
        }
        assertTrue(allAvailable(), "all were ejected, so none is");
        assertGoodIsAnswered();
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1, 2})
    void aQueryOfDeathIsSentOnceMoreThanThereAreRetries(int retries) throws Exception {
        onBad = FakeEngine.Call::cut;
        for (FakeEngine engine : engines) {
            engine.health = call -> call.keepAlive("{}"); // connections that are used again
        }
        start(
                config().set(GatewaySettings.RETRIES, retries)
                        .set(GatewaySettings.HEALTH_INTERVAL, Duration.ofMinutes(1)));
        final HttpResponse<String> answer = bad(1);
        assertEquals(502, answer.statusCode(), answer.body());
        assertEquals(retries + 1, engines.stream().mapToInt(e -> e.calls.size()).sum());
        assertTrue(allAvailable());
    }

    @Test
    void aWorkerThatFailsWhatOthersAnswerIsLeftOutUntilItIsWellAgain() throws Exception {
        onBad = call -> call.json(200, ANSWER);
        engines.get(0).script = call -> call.json(500, "{\"error\":\"broken\"}");
        start(
                config().set(GatewaySettings.BREAKER_WINDOW, Duration.ofMinutes(10))
                        .set(GatewaySettings.BREAKER_HOLD, Duration.ofMillis(100)));
        final Worker broken = gateway.router().workers().get(0);
        for (int i = 0; broken.available(); i++) {
            assertEquals(200, bad(i).statusCode());
            assertTrue(i < 100, "never left out");
        }
        engines.get(0).script = call -> call.json(200, ANSWER);
        Eventually.holds("in use again", broken::available);
        for (int i = 0; i < 20; i++) {
            assertEquals(200, bad(i).statusCode());
        }
        assertFalse(engines.get(0).calls.isEmpty());
        assertTrue(allAvailable());
        assertTrue(Gateways.get(gateway, "/health").statusCode() == 200, "some worker can be used");
    }

    @Test
    void theOnlyWorkerStaysInUseWhateverItAnswers() throws Exception {
        onBad = call -> call.json(500, "{\"error\":\"no\"}");
        start(Gateways.config(engines.get(0).worker("a")));
        for (int i = 0; i < 40; i++) {
            assertEquals(500, bad(i).statusCode());
        }
        assertGoodIsAnswered();
    }

    @ParameterizedTest
    @ValueSource(strings = {"a=%zz", "a%", "a=%2", "%=1", "a=%ff", "a=%E2%28", "a=\u00e9"})
    void aQueryThatIsNoneIsRefusedBeforeAWorkerIsChosen(String query) throws Exception {
        start(config());
        for (int i = 0; i < 20; i++) {
            try (RawClient client = new RawClient(gateway.port())) {
                assertRefused(
                        client.post("/v1/completions?" + query, GOOD, "Connection: close")
                                .readAll());
            }
        }
        assertNoneWasAsked();
    }

    private static void assertRefused(String answer) {
        assertTrue(answer.startsWith("HTTP/1.1 400 "), answer);
        assertTrue(answer.contains("the query"), answer);
    }

    /** Neither for a request nor for its fault. */
    private void assertNoneWasAsked() throws Exception {
        assertTrue(engines.stream().allMatch(engine -> engine.calls.isEmpty()));
        assertTrue(allAvailable());
        assertFalse(gateway.workersPage().contains("\"available\":false"));
        assertGoodIsAnswered();
    }

    @ParameterizedTest
    @ValueSource(strings = {"a b", "a=1 HTTP/1.1", "a\tb", "a=%zz"})
    void aQueryThatNoRequestLineCanCarryIsRefusedOverHttp2(String query) throws Exception {
        start(config());
        try (FrameClient client = new FrameClient(gateway.port())) {
            final FrameClient.Exchange exchange = client.post("/v1/completions?" + query, GOOD);
            final String answer = exchange.whole();
            assertEquals(400, exchange.status(), answer);
            assertTrue(answer.contains("the query"), answer);
        }
        assertNoneWasAsked();
    }

    @ParameterizedTest
    @ValueSource(
            strings = {"", "a=%41%c3%a9&b=[1]&=&c", "a=1+2&b=%20?/:@!$&'()*,;-._~", "a=%00%0d%0a"})
    void aQueryIsPassedOnAsItIs(String query) throws Exception {
        start(config());
        try (RawClient client = new RawClient(gateway.port())) {
            client.post("/v1/completions?" + query, GOOD).readUntil(ANSWER);
        }
        assertEquals(
                List.of("/v1/completions?" + query),
                engines.stream().flatMap(e -> e.calls.stream()).map(call -> call.path).toList());
    }
}
