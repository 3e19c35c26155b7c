package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.testing.FakeEngine;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.net.http.HttpResponse;

class InterimResponsesTest {
    private static final String ANSWER = "{\"choices\":[],\"usage\":{\"prompt_tokens\":1}}";
    private static final String WHOLE = "{\"prompt\":[1]}";
    private static final String STREAM = "{\"prompt\":[1],\"stream\":true}";

    private final FakeEngine engine = new FakeEngine(call -> call.json(200, ANSWER));
    private final GatewayServer gateway =
            GatewayServer.start(
                    Gateways.config(engine.worker("w")).set(GatewaySettings.RETRIES, 0).build());

    @AfterEach
    void stop() {
        gateway.close();
        engine.close();
    }

    private static String interim(int status) {
        return "HTTP/1.1 " + status + " Interim\r\nLink: </x>\r\n\r\n";
    }

    @ParameterizedTest
    @ValueSource(ints = {100, 102, 103, 104, 199})
    void anInterimAnswerIsSkipped(int status) throws Exception {
        engine.script =
                call -> {
                    call.raw(interim(status));
                    call.json(200, ANSWER);
                };
        final HttpResponse<String> answer = Gateways.post(gateway, "/v1/completions", WHOLE);
        assertEquals(200, answer.statusCode());
        assertEquals(ANSWER, answer.body());
        assertTrue(answer.headers().firstValue("link").isEmpty());
    }

    @Test
    void manyInterimAnswersOfAllKindsAreSkippedHoweverTheyAreCut() throws Exception {
        engine.script =
                call -> {
                    for (int i = 0; i < 10; i++) {
                        call.raw(interim(100) + interim(102));
                        call.raw(interim(103).substring(0, 10));
                        call.raw(interim(103).substring(10));
                    }
                    FakeEngine.chatStream(2, 0).answer(call);
                };
        final String events = Gateways.post(gateway, "/v1/completions", STREAM).body();
        assertTrue(events.contains("t1 ") && events.endsWith("[DONE]\n\n"), events);
    }

    @Test
    void aConnectionThatInterimAnswersCameOverIsUsedAgain() throws Exception {
        engine.health =
                call ->
                        call.raw(
                                interim(103)
                                        + interim(100)
                                        + "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}");
        engine.script =
                call -> {
                    call.raw(interim(103));
                    call.json(200, ANSWER);
                };
        Gateways.awaitContact(gateway);
        for (int i = 0; i < 20; i++) {
            assertEquals(ANSWER, Gateways.post(gateway, "/v1/completions", WHOLE).body());
        }
        assertEquals(20, engine.calls.size());
    }

    @Test
    void anInterimAnswerWithoutAnAnswerIsAFailure() throws Exception {
        engine.script =
                call -> {
                    call.raw(interim(103));
                    call.cut();
                };
        GatewayHttpTest.assertError(
                Gateways.post(gateway, "/v1/completions", WHOLE), 502, "upstream_closed", "w");
        assertEquals(0, gateway.router().activeLeases());
    }

    @Test
    void aSwitchOfProtocolsThatWasNotAskedForIsAFailure() throws Exception {
        engine.script =
                call -> {
                    call.raw(interim(101));
                    call.awaitClientGone(60);
                };
        GatewayHttpTest.assertError(
                Gateways.post(gateway, "/v1/completions", WHOLE),
                502,
                "upstream_protocol",
                "not what the protocol says");
        Eventually.holds("the engine is released", () -> engine.inFlight.get() == 0);
        assertEquals(0, gateway.router().activeLeases());
    }

    @Test
    void anAnswerThatIsNotHttpIsNamedWithoutTheServersInnerState() throws Exception {
        engine.script =
                call -> {
                    call.raw("\u0000garbage garbage\r\n\r\n");
                    call.cut();
                };
        final HttpResponse<String> answer = Gateways.post(gateway, "/v1/completions", WHOLE);
        GatewayHttpTest.assertError(answer, 502, "upstream_protocol", "not what the protocol says");
        assertTrue(answer.body().length() < 500, answer.body());
    }
}
