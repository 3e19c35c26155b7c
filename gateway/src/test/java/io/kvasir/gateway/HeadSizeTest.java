package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.WorkerConfig;
import io.kvasir.gateway.testing.FakeEngine;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.gateway.testing.RawClient;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.net.http.HttpResponse;

/** Heads of requests and answers up to the limit, and beyond it. */
class HeadSizeTest {
    private static final String ANSWER = "{\"choices\":[],\"usage\":{\"prompt_tokens\":1}}";
    private static final String BODY = "{\"prompt\":[1]}";

    private volatile int status = 200;
    private volatile int answerBytes;
    private final FakeEngine engine =
            new FakeEngine(
                    call ->
                            call.raw(
                                    "HTTP/1.1 "
                                            + status
                                            + " X\r\nConnection: close\r\nX-Big: "
                                            + "b".repeat(answerBytes)
                                            + "\r\nContent-Length: "
                                            + ANSWER.length()
                                            + "\r\n\r\n"
                                            + ANSWER));
    private GatewayServer gateway;

    private void start(int most) {
        gateway =
                GatewayServer.start(
                        Gateways.config(engine.worker("w"))
                                .set(GatewaySettings.MAX_HEAD_BYTES, most)
                                .build());
    }

    @AfterEach
    void stop() {
        gateway.close();
        engine.close();
    }

    private HttpResponse<String> complete(int headerBytes) throws Exception {
        return Gateways.post(
                gateway,
                "/v1/completions",
                BODY,
                "Authorization",
                "Bearer " + "a".repeat(headerBytes));
    }

    @ParameterizedTest
    @CsvSource({"32768, 9000", "32768, 31000", "2048, 1500", "1048576, 300000"})
    void aHeadWithinTheLimitIsPassedOnBothWays(int most, int headerBytes) throws Exception {
        start(most);
        answerBytes = headerBytes;
        final HttpResponse<String> answer = complete(headerBytes);
        assertEquals(200, answer.statusCode(), answer.body());
        assertEquals(headerBytes, answer.headers().firstValue("X-Big").orElseThrow().length());
        assertEquals(
                "Bearer ".length() + headerBytes,
                engine.calls.get(0).headers.get("authorization").length());
    }

    @ParameterizedTest
    @CsvSource({"32768, 33000", "1024, 1100", "1024, 3000"})
    void aRequestWithALongerOneIsRefused(int most, int headerBytes) throws Exception {
        start(most);
        try (RawClient client = new RawClient(gateway.port())) {
            client.send(
                    "GET /v1/models HTTP/1.1\r\nHost: x\r\nX-A: "
                            + "a".repeat(headerBytes)
                            + "\r\n\r\n");
            final String answer = client.readUntil("}}");
            assertTrue(answer.startsWith("HTTP/1.1 431 "), answer);
            assertTrue(answer.contains("max-head-bytes"), answer);
        }
    }

    @Test
    void anAnswerWithALongerOneIsAFaultOfTheWorkerThatIsNamed() throws Exception {
        start(2048);
        status = 404; // of others the client's own assertions fail, where they are on
        answerBytes = 3000;
        final HttpResponse<String> answer = complete(1);
        assertEquals(502, answer.statusCode(), answer.body());
        assertTrue(answer.body().contains("\"kind\":\"head_too_large\""), answer.body());
        assertTrue(answer.body().contains("max-head-bytes"), answer.body());
        assertTrue(answer.body().contains("\"leg\":\"upstream\""), answer.body());
    }

    @Test
    void aRequestThatCannotBeWrittenIsNoFaultOfItsWorkerAndNotTriedAgain() throws Exception {
        final String most = "/" + "p".repeat(9000); // of what the gateway may add to a head
        gateway =
                GatewayServer.start(
                        Gateways.config(WorkerConfig.parse(engine.url() + most + ",name=w"))
                                .set(GatewaySettings.MAX_HEAD_BYTES, 2048)
                                .set(GatewaySettings.BREAKER_FAULTS, 1)
                                .set(GatewaySettings.PANIC_PERCENT, 0)
                                .build());
        Gateways.awaitContact(gateway);
        for (int i = 0; i < 3; i++) {
            final HttpResponse<String> answer = complete(1500);
            assertEquals(500, answer.statusCode(), answer.body());
            assertTrue(answer.body().contains("(unsendable, attempt 1 of 3)"), answer.body());
            assertTrue(answer.body().contains("\"leg\":\"gateway\""), answer.body());
        }
        final String workers = gateway.workersPage();
        assertTrue(workers.contains("\"last_error\":null"), workers);
        assertTrue(gateway.router().workers().get(0).available(), workers);
        assertEquals(0, gateway.router().activeLeases());
    }
}
