package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertEquals;

import ch.qos.logback.classic.Level;

import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.testing.CapturedLog;
import io.kvasir.gateway.testing.FakeEngine;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.gateway.testing.RawClient;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Isolated;

import java.time.Duration;
import java.util.List;
import java.util.function.Consumer;

/** What the log says of requests that an end cuts. */
@Isolated // captures the log of the process
class CutLogTest {
    private static final String STREAM = "{\"model\":\"m\",\"prompt\":\"x\",\"stream\":true}";

    private final FakeEngine engine =
            new FakeEngine(
                    call -> {
                        call.beginEvents();
                        call.chunk(FakeEngine.event("{\"index\":0,\"text\":\"a\"}"));
                        call.awaitClientGone(60);
                    });

    @AfterEach
    void stop() {
        engine.close();
    }

    private List<String> said(Duration drain, Consumer<GatewayServer> end) throws Exception {
        try (CapturedLog log = new CapturedLog(Level.WARN);
                GatewayServer gateway =
                        Gateways.started(
                                Gateways.config(engine.worker("w"))
                                        .set(GatewaySettings.DRAIN_TIMEOUT, drain))) {
            try (RawClient client = new RawClient(gateway.port())) {
                client.post("/v1/completions", STREAM).readUntil("\"a\"");
                end.accept(gateway);
            }
            return log.textsFrom(Level.WARN).stream()
                    .filter(text -> text.contains("requests are cut"))
                    .toList();
        }
    }

    @Test
    void anEndAtOnceNamesNoTimeThatWasNotWaitedFor() throws Exception {
        assertEquals(
                List.of("1 requests are cut: the gateway ends without waiting for them"),
                said(Duration.ofHours(1), GatewayServer::cut));
    }

    @Test
    void theEndOfADrainNamesItsTime() throws Exception {
        assertEquals(
                List.of("1 requests are cut at the end of drain-timeout-ms=50"),
                said(Duration.ofMillis(50), GatewayServer::close));
    }
}
