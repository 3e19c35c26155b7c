package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.gateway.testing.FakeEngine;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.gateway.testing.RawClient;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.util.Locale;

/** Events that a worker sends at once go to the client at once, and in the form of a stream. */
class EventsInOneWriteTest {
    private static final int EVENTS = 100; // more than one read of the gateway takes
    private static final String EVENT = FakeEngine.event("{\"index\":0,\"text\":\"token\"}");
    private static final String DONE = "data: [DONE]\n\n";
    private static final String STREAM = "{\"prompt\":[1],\"stream\":true}";
    private static final String HEAD =
            String.join(
                    "\r\n",
                    "HTTP/1.1 200 OK",
                    "Content-Type: text/event-stream",
                    "Transfer-Encoding: chunked",
                    "",
                    "");

    private final FakeEngine engine = new FakeEngine(call -> call.json(500, "{}"));
    private final GatewayServer gateway =
            GatewayServer.start(Gateways.config(engine.worker("w")).build());

    @AfterEach
    void stop() {
        gateway.close();
        engine.close();
    }

    private static String chunk(String text) {
        return Integer.toHexString(text.length()) + "\r\n" + text + "\r\n";
    }

    private String answerTo(FakeEngine.Script script) throws IOException {
        engine.script = script;
        try (RawClient client = new RawClient(gateway.port())) {
            return client.post("/v1/completions", STREAM).readUntil("\r\n0\r\n\r\n");
        }
    }

    @Test
    void anAnswerThatIsThereAtOnceHasFewChunks() throws IOException {
        final String answer =
                answerTo(
                        call ->
                                call.raw(
                                        HEAD
                                                + chunk(EVENT).repeat(EVENTS)
                                                + chunk(DONE)
                                                + "0\r\n\r\n"));
        final String head = answer.substring(0, answer.indexOf("\r\n\r\n"));
        assertTrue(head.toLowerCase(Locale.ROOT).contains("transfer-encoding: chunked"), head);
        assertEquals(EVENTS, answer.split("\"token\"", -1).length - 1);
        assertTrue(answer.contains(DONE), answer);
        // one of the 100 events a chunk would be 100; the system may split what it carries
        final int chunks = answer.split("\r\n[0-9A-Fa-f]+\r\n", -1).length - 1;
        assertTrue(chunks < EVENTS / 4, chunks + " chunks");
    }

    @Test
    void eventsBeforeABreakAreDeliveredBeforeItIsReported() throws IOException {
        final String answer =
                answerTo(
                        call -> {
                            call.raw(HEAD + chunk(EVENT).repeat(EVENTS));
                            call.cut();
                        });
        final int error = answer.indexOf("\"error\"");
        assertTrue(error > 0, answer);
        assertFalse(answer.contains(DONE), answer);
        assertTrue(answer.lastIndexOf("\"token\"") < error, answer);
    }

    @Test
    void eventsThatEndWithoutTheMarkAreDeliveredAll() throws IOException {
        final String answer =
                answerTo(call -> call.raw(HEAD + chunk(EVENT).repeat(EVENTS) + "0\r\n\r\n"));
        assertEquals(EVENTS, answer.split("\"token\"", -1).length - 1);
        assertTrue(answer.lastIndexOf("\"token\"") < answer.indexOf("\"error\""), answer);
    }
}
