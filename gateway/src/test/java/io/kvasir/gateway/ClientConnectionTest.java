package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.gateway.testing.FakeEngine;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.gateway.testing.RawClient;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/** What clients send after a request while its answer is being made, and how they leave. */
class ClientConnectionTest {
    private static final String ANSWER = "{\"choices\":[],\"usage\":{\"prompt_tokens\":1}}";
    private static final String WHOLE = "{\"prompt\":[1]}";
    private static final String STREAM = "{\"prompt\":[1],\"stream\":true}";
    private static final String GET = "GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n";

    private final CountDownLatch arrived = new CountDownLatch(1);
    private final CountDownLatch left = new CountDownLatch(1);
    private final CountDownLatch goOn = new CountDownLatch(1);
    private final FakeEngine engine = new FakeEngine(this::waitForEver);
    private final GatewayServer gateway =
            GatewayServer.start(Gateways.config(engine.worker("w")).build());

    private void waitForEver(FakeEngine.Call call)
            throws java.io.IOException, InterruptedException {
        if (call.text().contains("stream")) {
            call.beginEvents();
            call.chunk(FakeEngine.event("{\"index\":0,\"text\":\"first\"}"));
        }
        arrived.countDown();
        if (call.awaitClientGone(60)) {
            left.countDown();
        }
    }

    /** Answers when the test says so. */
    private void answerLater(FakeEngine.Call call)
            throws java.io.IOException, InterruptedException {
        final boolean stream = call.text().contains("stream");
        if (stream) {
            call.beginEvents();
            call.chunk(FakeEngine.event("{\"index\":0,\"text\":\"first\"}"));
        }
        arrived.countDown();
        assertTrue(goOn.await(1, TimeUnit.MINUTES));
        if (stream) {
            call.chunk(FakeEngine.event("{\"index\":0,\"text\":\"last\"}"));
            call.chunk("data: [DONE]\n\n");
            call.endChunks();
        } else {
            call.json(200, ANSWER);
        }
    }

    @AfterEach
    void stop() {
        gateway.close();
        engine.close();
    }

    /** Else its client sends the next request on it, and gets no answer. */
    @ParameterizedTest
    @CsvSource({
        "/v1/models, 405, false",
        "/none, 404, false",
        "/v1/models, 405, true",
        "/none, 404, true"
    })
    void aConnectionEndsWithAWordWhereABodyMayStillCome(String path, int status, boolean whole)
            throws Exception {
        final String head = "POST " + path + " HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n";
        try (RawClient client = new RawClient(gateway.port())) {
            client.send(head + (whole ? "{" : ""));
            final String answer = client.readUntil("}}");
            assertTrue(answer.startsWith("HTTP/1.1 " + status + " "), answer);
            assertEquals(!whole, answer.contains("\r\nConnection: close\r\n"), answer);
            if (whole) {
                client.send(GET);
                assertTrue(client.readUntil("}]}").contains("HTTP/1.1 200 "));
            }
        }
    }

    /** Its connection ends, and a client of HTTP/1.1 keeps one that is not said to. */
    @ParameterizedTest
    @CsvSource({
        "GET /%zz HTTP/1.1, 400",
        "POST /%00 HTTP/1.1, 400",
        "GET / HTTP/3.7, 505",
        "GET /v1/models, 505"
    })
    void aConnectionEndsWithAWordWhereARequestCannotBeRead(String line, int status)
            throws Exception {
        try (RawClient client = new RawClient(gateway.port())) {
            final String answer = client.send(line + "\r\nHost: x\r\n\r\n").readAll();
            assertTrue(answer.startsWith("HTTP/1.1 " + status + " "), answer);
            assertTrue(answer.contains("\r\nConnection: close\r\n"), answer);
        }
    }

    private RawClient waiting(String body) throws Exception {
        final RawClient client = new RawClient(gateway.port());
        client.post("/v1/completions", body);
        assertTrue(arrived.await(1, TimeUnit.MINUTES));
        return client;
    }

    private void assertEngineIsReleased() throws InterruptedException {
        assertTrue(left.await(1, TimeUnit.MINUTES), "the engine computes on");
        Eventually.holds("no booking is left", () -> gateway.router().activeLeases() == 0);
    }

    @ParameterizedTest
    @ValueSource(strings = {"\r\n", "x", GET, GET + GET + "GET /v1/mod"})
    void aClientThatLeavesAfterEarlyBytesIsNoticed(String early) throws Exception {
        waiting(WHOLE).send(early).close();
        assertEngineIsReleased();
    }

    @Test
    void aClientThatLeavesAfterEarlyBytesInTheMiddleOfAStreamIsNoticed() throws Exception {
        waiting(STREAM).send("\r\n").close();
        assertEngineIsReleased();
    }

    @Test
    void aClientThatLeavesAfterMoreEarlyBytesThanAreKeptIsNoticed() throws Exception {
        waiting(WHOLE).send(GET.repeat(1_000)).close();
        assertEngineIsReleased();
    }

    @Test
    void aClientThatSendsByteAfterByteAndResetsIsNoticed() throws Exception {
        final RawClient client = waiting(WHOLE);
        for (int i = 0; i < 200; i++) {
            client.send("x");
        }
        client.reset();
        assertEngineIsReleased();
    }

    @Test
    void earlyRequestsAreAnsweredInTurn() throws Exception {
        engine.script = this::answerLater;
        try (RawClient client = waiting(WHOLE)) {
            for (int i = 0; i < GET.length(); i++) {
                client.send("\r\n".repeat(i % 2 == 0 && i == 0 ? 1 : 0) + GET.charAt(i));
            }
            client.send(GET.repeat(20));
            goOn.countDown();
            client.readUntil(ANSWER);
            for (int i = 0; i < 21; i++) {
                client.readUntil("\"object\":\"list\"");
            }
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "\r\n", GET})
    void aClientThatOnlyEndsItsSendingSideGetsItsAnswer(String early) throws Exception {
        engine.script = this::answerLater;
        try (RawClient client = waiting(WHOLE).send(early).halfClose()) {
            client.readUntil("100 Continue\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n");
            goOn.countDown();
            final String rest = client.readAll();
            assertTrue(rest.contains("HTTP/1.1 200 OK") && rest.contains(ANSWER), rest);
            assertEquals(early.equals(GET), rest.contains("\"object\":\"list\""), rest);
        }
        assertEquals(0, gateway.router().activeLeases());
    }

    @Test
    void aQuickAnswerToAClientThatEndsItsSendingSideIsAsItAlwaysIs() throws Exception {
        engine.script = call -> call.json(200, ANSWER);
        try (RawClient client = new RawClient(gateway.port())) {
            client.post("/v1/completions", WHOLE).halfClose();
            final String answer = client.readAll();
            assertTrue(answer.contains("HTTP/1.1 200 OK") && answer.endsWith(ANSWER), answer);
        }
    }

    @Test
    void aStreamGoesOnForAClientThatOnlyEndsItsSendingSide() throws Exception {
        engine.script = this::answerLater;
        try (RawClient client = waiting(STREAM)) {
            client.readUntil("first");
            client.halfClose();
            client.readUntil("\n:\n\n");
            goOn.countDown();
            final String rest = client.readAll();
            assertTrue(rest.contains("last") && rest.contains("[DONE]"), rest);
        }
    }

    @Test
    void aClientThatEndsItsSendingSideAndLeavesLaterIsNoticed() throws Exception {
        try (RawClient client = waiting(WHOLE).halfClose()) {
            client.readUntil("100 Continue\r\n\r\n");
        }
        assertEngineIsReleased();
    }

    @Test
    void aClientOfHttp10ThatEndsItsSendingSideGetsItsAnswerAndNothingBeforeIt() throws Exception {
        engine.script = this::answerLater;
        try (RawClient client = new RawClient(gateway.port())) {
            client.send(
                            "POST /v1/completions HTTP/1.0\r\nContent-Length: "
                                    + WHOLE.length()
                                    + "\r\n\r\n"
                                    + WHOLE)
                    .halfClose();
            assertTrue(arrived.await(1, TimeUnit.MINUTES));
            Thread.sleep(300); // longer than an interim answer would take
            goOn.countDown();
            final String answer = client.readAll();
            assertTrue(answer.startsWith("HTTP/1.1 200 OK") && answer.endsWith(ANSWER), answer);
        }
    }

    private String streamOf(String version) throws Exception {
        engine.script =
                call -> {
                    call.beginEvents();
                    call.chunk(FakeEngine.event("{\"index\":0,\"text\":\"a\"}"));
                    call.chunk("data: [DONE]\n\n");
                    call.endChunks();
                };
        try (RawClient client = new RawClient(gateway.port())) {
            return client.send(
                            "POST /v1/completions "
                                    + version
                                    + "\r\nHost: g\r\nConnection: close\r\nContent-Length: "
                                    + STREAM.length()
                                    + "\r\n\r\n"
                                    + STREAM)
                    .readAll();
        }
    }

    @Test
    void aStreamThatIsTheLastOfItsConnectionHasAnEndOfItsOwn() throws Exception {
        final String answer = streamOf("HTTP/1.1");
        assertTrue(answer.contains("\r\nConnection: close\r\n"), answer);
        assertTrue(answer.contains("\r\nTransfer-Encoding: chunked\r\n"), answer);
        assertTrue(answer.endsWith("data: [DONE]\n\n\r\n0\r\n\r\n"), answer);
    }

    @Test
    void aStreamOfHttp10EndsWithItsConnection() throws Exception {
        final String answer = streamOf("HTTP/1.0");
        assertFalse(answer.contains("Transfer-Encoding"), answer);
        assertTrue(answer.endsWith("\n\ndata: [DONE]\n\n"), answer);
    }
}
