package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.testing.FakeEngine;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.gateway.testing.RawClient;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.net.URLEncoder;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.List;
import java.util.Locale;

/** One id for a request: of its client, its answer, its worker and its decisions. */
class RequestIdTest {
    private static final String ANSWER = "{\"choices\":[],\"usage\":{\"prompt_tokens\":1}}";
    private static final String ASK = "{\"prompt\":[1]}";
    private static final String ID = "x-request-id";
    private static final String LONGEST = "x".repeat(128);

    private final FakeEngine engine = new FakeEngine(call -> call.json(200, ANSWER));
    private GatewayServer gateway = start(Gateways.config(engine.worker("w1")));

    private static GatewayServer start(GatewayConfig.Builder config) {
        return GatewayServer.start(config.build());
    }

    private void restart(GatewayConfig.Builder config) {
        gateway.close();
        gateway = start(config);
    }

    @AfterEach
    void stop() {
        gateway.close();
        engine.close();
    }

    private HttpResponse<String> ask(String id) throws Exception {
        return Gateways.post(gateway, "/v1/completions", ASK, ID, id);
    }

    private JsonNode decisions(String query) throws Exception {
        return GatewayHttpTest.json(Gateways.get(gateway, "/debug/decisions?" + query))
                .get("decisions");
    }

    @ParameterizedTest
    @ValueSource(strings = {"a", "4f1c-9+x/y=Z_~!", "<b>\"'\\{}%0a", "kv-1"})
    void theClientsIdIsThatOfAnswerWorkerAndDecision(String id) throws Exception {
        final HttpResponse<String> answer = ask(id);
        assertEquals(List.of(id), answer.headers().allValues(ID));
        assertEquals(List.of(id), answer.headers().allValues("x-kvasir-request-id"));
        assertEquals(id, engine.calls.getFirst().headers.get(ID));
        final JsonNode found = decisions("id=" + URLEncoder.encode(id, StandardCharsets.UTF_8));
        assertEquals(1, found.size());
        assertEquals(id, found.get(0).get("request_id").textValue());
    }

    @Test
    void theLongestIdIsTakenAndALongerOneIsNot() throws Exception {
        assertEquals(LONGEST, GatewayHttpTest.header(ask(LONGEST), ID));
        assertOwn(GatewayHttpTest.header(ask(LONGEST + "x"), ID), LONGEST);
        assertOwn(GatewayHttpTest.header(ask("y".repeat(6000)), ID), "yy");
    }

    @ParameterizedTest
    @ValueSource(strings = {"ä", "a b", "a\tb", "\u001b[31mred", "a\u007fb", "\u2028", ""})
    void whatDoesNotBelongIntoALogIsReplacedAndNotEchoed(String id) throws Exception {
        try (RawClient client = new RawClient(gateway.port())) {
            final String answer =
                    client.post("/v1/completions", ASK, ID + ": " + id, "Connection: close")
                            .readAll();
            if (answer.startsWith("HTTP/1.1 200 ")) {
                assertOwn(engine.calls.getFirst().headers.get(ID), "[31m");
            } else {
                assertTrue(answer.startsWith("HTTP/1.1 400 "), answer);
            }
            assertOwn(idOf(answer), "[31m");
            assertFalse(id.length() > 1 && answer.contains(id), answer);
        }
    }

    @Test
    void ofSeveralIdsNoneIsTaken() throws Exception {
        try (RawClient client = new RawClient(gateway.port())) {
            final String answer =
                    client.post(
                                    "/v1/completions",
                                    ASK,
                                    ID + ": one",
                                    "X-REQUEST-ID: two",
                                    "Connection: close")
                            .readAll();
            assertOwn(idOf(answer), "one");
            assertEquals(idOf(answer), engine.calls.getFirst().headers.get(ID));
        }
    }

    @Test
    void requestsWithoutAnIdGetDifferentOnes() throws Exception {
        final HttpResponse<String> first = Gateways.post(gateway, "/v1/completions", ASK);
        final HttpResponse<String> second = Gateways.post(gateway, "/v1/completions", ASK);
        assertOwn(GatewayHttpTest.header(first, ID), "none");
        assertNotEquals(GatewayHttpTest.header(first, ID), GatewayHttpTest.header(second, ID));
    }

    @Test
    void theWorkersOwnIdDoesNotReachTheClient() throws Exception {
        engine.script =
                call ->
                        call.raw(
                                "HTTP/1.1 200 OK\r\nX-Request-Id: engine-7\r\nConnection: close\r\n"
                                        + "Content-Length: 2\r\n\r\n{}");
        assertEquals(List.of("mine"), ask("mine").headers().allValues(ID));
    }

    @Test
    void everyAnswerHasTheIdAndErrorsNameIt() throws Exception {
        Gateways.awaitContact(gateway); // else /ready is a 503 whose one word is no error
        for (HttpRequest.Builder request :
                List.of(
                        to("/v1/models"),
                        to("/live"),
                        to("/ready"),
                        to("/health"),
                        to("/nothing"),
                        to("/v1/completions"),
                        to("/live").DELETE(),
                        to("/v1/completions").POST(HttpRequest.BodyPublishers.ofString("{")),
                        to("/tokenize")
                                .POST(HttpRequest.BodyPublishers.ofString("{\"prompt\":[5]}")),
                        Gateways.adminRequest(gateway, "/metrics"),
                        Gateways.adminRequest(gateway, "/nothing"))) {
            assertHasId(Gateways.send(request.header(ID, "mine")));
        }
        engine.script = call -> call.json(500, "{}");
        final HttpResponse<String> passed = ask("mine");
        assertEquals(500, passed.statusCode());
        assertEquals(List.of("mine"), passed.headers().allValues(ID));
        engine.script = FakeEngine.Call::cut;
        assertHasId(ask("mine"));
    }

    private HttpRequest.Builder to(String path) {
        return HttpRequest.newBuilder(Gateways.uri(gateway, path));
    }

    private static void assertHasId(HttpResponse<String> answer) throws Exception {
        assertEquals(List.of("mine"), answer.headers().allValues(ID), answer.body());
        if (answer.statusCode() >= 400) {
            assertEquals(
                    "mine",
                    GatewayHttpTest.json(answer).at("/error/kvasir/request_id").textValue(),
                    answer.body());
        }
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "GET /v1/models HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
                "GET /v1/models HTTP/1.1\r\nbad line\r\n\r\n",
                "GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n",
                "nonsense\r\n\r\n"
            })
    void answersOfTheServerItselfHaveAnId(String request) throws Exception {
        try (RawClient client = new RawClient(gateway.port())) {
            final String answer = client.send(request).readAll();
            assertTrue(answer.startsWith("HTTP/1.1 400 "), answer);
            assertOwn(idOf(answer), "none");
            assertTrue(answer.contains("\"request_id\":\"" + idOf(answer)), answer);
        }
    }

    @Test
    void allDecisionsOfAnIdAreFoundNewestFirst() throws Exception {
        for (int i = 0; i < 3; i++) {
            ask("twice");
            ask("other");
        }
        final JsonNode found = decisions("id=twice");
        assertEquals(3, found.size());
        for (int i = 0; i < 2; i++) {
            assertTrue(at(found.get(i)).compareTo(at(found.get(i + 1))) >= 0, found.toString());
        }
        assertEquals(2, decisions("id=twice&limit=2").size());
        assertEquals(6, decisions("limit=100").size());
    }

    private static Instant at(JsonNode decision) {
        return Instant.parse(decision.get("at").textValue());
    }

    @Test
    void attemptsOfARequestAreFoundTogether() throws Exception {
        try (FakeEngine broken = new FakeEngine(FakeEngine.Call::cut)) {
            restart(Gateways.config(broken.worker("b"), engine.worker("w1")));
            int attempts = 0;
            for (int i = 0; attempts < 2 && i < 50; i++) {
                ask("try-" + i);
                attempts = decisions("id=try-" + i).size();
            }
            assertTrue(attempts > 1, "the broken worker was never tried first");
        }
    }

    @Test
    void aDecisionThatIsNotKeptIsA404ThatNamesTheSetting() throws Exception {
        restart(Gateways.config(engine.worker("w1")).set(GatewaySettings.DECISION_LOG_SIZE, 2));
        ask("old");
        ask("new");
        assertEquals(1, decisions("id=old").size());
        ask("newer");
        assertEquals(1, decisions("id=new").size());
        for (String id : List.of("old", "", "%0d%0a", "z".repeat(3000))) {
            final HttpResponse<String> answer = Gateways.get(gateway, "/debug/decisions?id=" + id);
            GatewayHttpTest.assertError(
                    answer,
                    404,
                    "not_found",
                    "among the last 2; it was not routed, or decision-log-size");
            assertTrue(answer.body().length() < 1000, answer.body());
        }
    }

    private static void assertOwn(String id, String not) {
        assertTrue(id.matches("kv-[0-9a-f]{16}"), id);
        assertFalse(id.contains(not));
    }

    private static String idOf(String answer) {
        final List<String> ids =
                answer.lines()
                        .takeWhile(line -> !line.isBlank())
                        .filter(line -> line.toLowerCase(Locale.ROOT).startsWith(ID + ":"))
                        .map(line -> line.substring(ID.length() + 1).strip())
                        .toList();
        assertEquals(1, ids.size(), answer);
        return ids.getFirst();
    }
}
