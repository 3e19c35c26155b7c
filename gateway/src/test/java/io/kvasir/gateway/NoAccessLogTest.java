package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.kvasir.gateway.testing.FakeEngine;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.gateway.testing.MetricsPage;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Isolated;

/** A gateway that is to write no access log. */
@Isolated // looks at the threads of the process
class NoAccessLogTest {
    @Test
    void withoutTheSettingThereIsNoLog() throws Exception {
        try (FakeEngine engine = new FakeEngine(FakeEngine.chatStream(5, 1));
                GatewayServer gateway =
                        GatewayServer.start(Gateways.config(engine.worker("w1")).build())) {
            Gateways.get(gateway, "/live");
            assertEquals(
                    0,
                    Thread.getAllStackTraces().keySet().stream()
                            .filter(thread -> thread.getName().equals("kvasir-access-log"))
                            .count());
            assertEquals(0, MetricsPage.of(gateway).sum("kvasir_access_log_dropped_total"));
        }
    }
}
