package io.kvasir.sim;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.sim.config.SimConfig;
import io.kvasir.sim.testing.EventClient;
import io.kvasir.sim.testing.Http;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Engines at addresses of IPv6. */
class Ipv6Test {
    @ParameterizedTest
    @ValueSource(strings = {"::1", "::", "[::1]"})
    void anEngineServesAndPublishesWhereItSays(String host) {
        try (SimEngine engine = SimEngine.start(SimConfig.builder().host(host).build())) {
            assertEquals("http://[::1]:" + engine.port(), engine.url().toString());
            assertTrue(engine.eventsEndpoint(0).startsWith("tcp://[::1]:"));
            assertTrue(engine.replayEndpoint(0).startsWith("tcp://[::1]:"));
            try (EventClient events = new EventClient(engine, 0)) {
                final Http http = new Http(engine);
                final int[] unique = {0};
                events.awaitSubscription(
                        () -> http.complete(new int[] {unique[0]++, 2, 3, 4, 5, 6, 7, 8}, 40));
                assertEquals(0, events.replay(engine, 0, 0).getFirst().sequence());
            }
        }
    }

    @Test
    void anAddressThatCannotBeServedAtIsNamedAsInUrls() {
        try (SimEngine first = SimEngine.start(SimConfig.builder().host("::1").build())) {
            final SimConfig same =
                    SimConfig.builder().host("::1").port(first.port()).eventsPort(-1).build();
            final IllegalStateException refused =
                    assertThrows(IllegalStateException.class, () -> SimEngine.start(same));
            assertTrue(
                    refused.getMessage()
                            .startsWith("cannot serve HTTP on [::1]:" + first.port() + ": "),
                    refused.getMessage());
        }
    }
}
