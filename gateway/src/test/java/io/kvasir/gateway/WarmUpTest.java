package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.testing.FakeEngine;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.prompt.chat.ChatModel;
import io.kvasir.prompt.chat.SimModel;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

import java.time.Duration;
import java.util.concurrent.atomic.AtomicInteger;

class WarmUpTest {
    private static final Duration SHORT = Duration.ofMillis(300);

    private final AtomicInteger completions = new AtomicInteger();
    private final FakeEngine engine =
            new FakeEngine(
                    call -> {
                        completions.incrementAndGet();
                        call.json(200, "{\"choices\":[{\"text\":\"a\"}]}");
                    });

    @AfterEach
    void stop() {
        engine.close();
    }

    private static long stubThreads() {
        return Thread.getAllStackTraces().keySet().stream()
                .filter(thread -> thread.getName().startsWith("kvasir-stub"))
                .count();
    }

    @Test
    void itsRequestsReachNoWorkerAndLeaveNothingBehind() throws Exception {
        try (GatewayServer gateway =
                GatewayServer.start(
                        Gateways.config(engine.worker("w1"))
                                .set(GatewaySettings.TOKENIZER, SimModel.files())
                                .set(GatewaySettings.WARM_UP, SHORT)
                                .build())) {
            assertEquals(0, completions.get());
            assertEquals(
                    200,
                    Gateways.post(
                                    gateway,
                                    "/v1/chat/completions",
                                    "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]}")
                            .statusCode());
            assertEquals(1, completions.get());
            Eventually.holds("stub ended", () -> stubThreads() == 0);
        }
    }

    @Test
    void chatsTextsAndIdsAreSentAsTheModelTakesThem() throws Exception {
        final GatewayConfig config =
                Gateways.config(engine.worker("w1")).set(GatewaySettings.WARM_UP, SHORT).build();
        Eventually.holds("ids", () -> WarmUp.run(config, Encoders.of(null)) > 0);
        try (ChatModel model = ChatModel.load(SimModel.files())) {
            Eventually.holds("chat", () -> WarmUp.run(config, Encoders.of(model)) > 0);
            assertTrue(model.completionTokens("still open").length > 0);
        }
    }

    @Test
    void anEmbeddedGatewaySendsNoneUnlessAsked() {
        assertEquals(
                0, WarmUp.run(Gateways.config(engine.worker("w1")).build(), Encoders.of(null)));
    }
}
