package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.testing.FakeEngine;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.gateway.testing.RawClient;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

import java.io.IOException;
import java.net.SocketException;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/** Clients that send their requests byte by byte. */
@Order(1) // takes long: begins first, beside the others
class SlowClientTest {
    private static final Duration SHORT = Duration.ofMillis(200);
    private static final Duration LONG = Duration.ofHours(1);
    private static final String ANSWER = "{\"choices\":[],\"usage\":{\"prompt_tokens\":1}}";
    private static final String POST = "POST /v1/completions HTTP/1.1\r\nHost: x\r\n";

    private final FakeEngine engine = new FakeEngine(call -> call.json(200, ANSWER));
    private GatewayServer gateway;

    private void start(Duration head, Duration body, int rate) {
        start(LONG, head, body, rate);
    }

    private void start(Duration idle, Duration head, Duration body, int rate) {
        gateway =
                GatewayServer.start(
                        Gateways.config(engine.worker("w"))
                                .set(GatewaySettings.CLIENT_IDLE_TIMEOUT, idle)
                                .set(GatewaySettings.HEAD_TIMEOUT, head)
                                .set(GatewaySettings.BODY_TIMEOUT, body)
                                .set(GatewaySettings.BODY_MIN_RATE, rate)
                                .build());
    }

    @AfterEach
    void stop() {
        gateway.close();
        engine.close();
    }

    private RawClient client(boolean admin) throws IOException {
        return new RawClient(admin ? gateway.adminPort() : gateway.port());
    }

    /** Sends on and on until the connection is closed. */
    private static void drip(RawClient client, String bytes) {
        Thread.ofVirtual()
                .start(
                        () -> {
                            try {
                                while (true) {
                                    client.send(bytes);
                                    Thread.sleep(20);
                                }
                            } catch (SocketException e) {
                                // cut, as it must be
                            } catch (IOException | InterruptedException e) {
                                throw new IllegalStateException(e);
                            }
                        });
    }

    private static void assertCut(RawClient client, String what) throws IOException {
        final String answer = client.readUntil("}}");
        assertTrue(answer.startsWith("HTTP/1.1 408 "), answer);
        assertTrue(answer.contains("\"kind\":\"timeout\"") && answer.contains(what), answer);
    }

    @ParameterizedTest
    @CsvSource({"'\n', false", "'\r\n', true", "x, false"})
    void bytesAfterTheLastAnswerKeepNoConnection(String bytes, boolean admin) throws Exception {
        start(SHORT, LONG, 0);
        try (RawClient client = client(admin)) {
            client.send("GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
            assertTrue(client.readAll().startsWith("HTTP/1.1 "));
            Eventually.until("a closed connection", () -> !takes(client, bytes));
        }
    }

    private static boolean takes(RawClient client, String bytes) throws IOException {
        try {
            client.send(bytes);
            return true;
        } catch (SocketException e) {
            return false;
        }
    }

    @ParameterizedTest
    @CsvSource({"'', false", "'', true", "'GET /v1/mod', false", "'GET /health', true"})
    void aHeadThatNeverEndsIsCutWhateverItBeginsWith(String begin, boolean admin) throws Exception {
        start(SHORT, LONG, 0);
        try (RawClient client = client(admin)) {
            drip(client.send(begin), begin.isEmpty() ? "\r\n" : "x");
            assertCut(client, "the request's head did not arrive in time");
        }
    }

    @Test
    void aHeaderThatNeverEndsIsCutOnAConnectionThatHasServedBefore() throws Exception {
        start(SHORT, LONG, 0);
        try (RawClient client = client(false)) {
            client.send("GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n").readUntil("]}");
            drip(client.send(POST + "X-A: "), "a");
            assertCut(client, "head");
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aSilentHeadIsAnsweredToo(boolean admin) throws Exception {
        start(SHORT, LONG, 0);
        try (RawClient client = client(admin).send(POST)) {
            assertCut(client, "head");
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aHeadThatIsSilentForLongerThanAClientMayBeEndsWithoutAnAnswer(boolean admin)
            throws Exception {
        start(Duration.ofSeconds(1), LONG, LONG, 0);
        try (RawClient client = client(admin).send(POST)) {
            assertEquals("", client.readAll());
        }
    }

    @ParameterizedTest
    @CsvSource({"false, 0", "true, 0", "false, 1000", "true, 1000"})
    void aBodyOfSingleBytesIsCut(boolean admin, int rate) throws Exception {
        start(LONG, SHORT, rate);
        try (RawClient client = client(admin)) {
            final String post =
                    admin ? "POST /admin/workers HTTP/1.1\r\nHost: localhost\r\n" : POST;
            drip(client.send(post + "Content-Length: 60000\r\n\r\n"), " ");
            assertCut(client, "the request body did not arrive in time");
        }
    }

    @Test
    void aBodyThatIsRefusedIsNotReadForEver() throws Exception {
        start(LONG, SHORT, 0);
        try (RawClient client = client(false)) {
            drip(client.send(POST + "Content-Length: 1000000000\r\n\r\n"), " ");
            assertCut(client, "body");
        }
    }

    @Test
    void aLongBodyMayTakeItsTime() throws Exception {
        start(LONG, SHORT, 100);
        try (RawClient client = client(false)) {
            // what comes at once is worth a minute
            client.send(POST + "Content-Length: 9014\r\n\r\n{\"prompt\":[1]" + " ".repeat(6_000));
            for (int sent = 0; sent < 30; sent++) {
                client.send(" ".repeat(100));
                Thread.sleep(20);
            }
            client.send("}");
            assertTrue(client.readUntil(ANSWER).startsWith("HTTP/1.1 200 "));
        }
    }

    @Test
    void aConnectionMayBeIdleBetweenRequestsForLongerThanAHeadMayTake() throws Exception {
        start(SHORT, LONG, 0);
        try (RawClient client = client(false)) {
            for (int i = 0; i < 3; i++) {
                client.send("GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n").readUntil("]}");
                Thread.sleep(2 * SHORT.toMillis());
            }
        }
    }

    @Test
    void anAnswerMayTakeLongerThanTheHeadOfItsRequest() throws Exception {
        final CountDownLatch arrived = new CountDownLatch(1);
        engine.script =
                call -> {
                    arrived.countDown();
                    Thread.sleep(3_500); // longer than the head may take
                    call.json(200, ANSWER);
                };
        start(Duration.ofSeconds(3), LONG, 0);
        try (RawClient client = client(false).send("POST /v1/comp")) {
            Thread.sleep(50);
            client.send(
                    "letions HTTP/1.1\r\nHost: x\r\nContent-Length: 14\r\n\r\n{\"prompt\":[1]}");
            assertTrue(arrived.await(1, TimeUnit.MINUTES));
            assertTrue(client.readUntil(ANSWER).startsWith("HTTP/1.1 200 "));
        }
        assertEquals(1, engine.calls.size());
    }
}
