package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.WorkerConfig;
import io.kvasir.gateway.testing.FakeEngine;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.router.policy.RoutingMode;
import io.kvasir.router.settings.RouterSettings;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

import java.time.Duration;
import java.util.List;

/** A client that names its session stays with one worker. */
class SessionHeaderTest {
    private static final String ANSWER = "{\"choices\":[],\"usage\":{\"prompt_tokens\":1}}";

    @ParameterizedTest
    @EnumSource(names = {"ROUND_ROBIN", "RANDOM", "CONSISTENT_HASH"})
    void requestsOfASessionGoToOneWorkerWhoeverCalls(RoutingMode mode) throws Exception {
        try (FakeEngine one = new FakeEngine(call -> call.json(200, ANSWER));
                FakeEngine two = new FakeEngine(call -> call.json(200, ANSWER));
                GatewayServer gateway =
                        Gateways.started(
                                Gateways.config(
                                                WorkerConfig.parse(one.url() + ",name=one"),
                                                WorkerConfig.parse(two.url() + ",name=two"))
                                        .set(GatewaySettings.TRUSTED_NETWORKS, List.of())
                                        .set(GatewaySettings.SESSION_HEADER, "X-Conversation")
                                        .set(RouterSettings.SESSION_TTL, Duration.ofMinutes(10))
                                        .set(RouterSettings.HASH_LOAD_FACTOR, 100.0)
                                        .set(RouterSettings.MODE, mode))) {
            for (int i = 0; i < 20; i++) {
                assertEquals(
                        200,
                        Gateways.post(
                                        gateway,
                                        "/v1/completions",
                                        "{\"prompt\":[" + i + "]}",
                                        "x-conversation",
                                        "c-7")
                                .statusCode());
            }
            final long ofOne = ofSession(one);
            assertEquals(20, ofOne + ofSession(two));
            assertTrue(ofOne == 0 || ofOne == 20, "to both: " + ofOne);
            final boolean remembered = mode != RoutingMode.CONSISTENT_HASH;
            assertEquals(remembered ? 1 : 0, gateway.router().sessions());
            final String newest = Gateways.admin(gateway, "/debug/decisions?limit=1").body();
            assertEquals(remembered, newest.contains("\"by_session\":true"), newest);
        }
    }

    /** The header is the client's, and is passed on. */
    private static long ofSession(FakeEngine engine) {
        return engine.calls.stream()
                .filter(call -> "c-7".equals(call.headers.get("x-conversation")))
                .count();
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "x session", "x:y", "é"})
    void whatIsNoNameOfAHeaderIsRefused(String name) {
        final IllegalArgumentException refused =
                assertThrows(
                        IllegalArgumentException.class,
                        () -> Gateways.config().set(GatewaySettings.SESSION_HEADER, name));
        assertTrue(refused.getMessage().contains("session-header"), refused.getMessage());
    }

    @Test
    void withoutTheSettingNothingIsRemembered() throws Exception {
        try (FakeEngine engine = new FakeEngine(call -> call.json(200, ANSWER));
                GatewayServer gateway =
                        Gateways.started(
                                Gateways.config(WorkerConfig.parse(engine.url() + ",name=w")))) {
            assertEquals(
                    200,
                    Gateways.post(
                                    gateway,
                                    "/v1/completions",
                                    "{\"prompt\":[1]}",
                                    "x-session-id",
                                    "c-7")
                            .statusCode());
            assertEquals(0, gateway.router().sessions());
        }
    }
}
