package io.kvasir.gateway.server;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import ch.qos.logback.classic.Level;

import io.kvasir.gateway.testing.CapturedLog;
import io.kvasir.gateway.testing.Gateways;

import org.eclipse.jetty.server.Server;
import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.util.List;

class AcceptFailureTest {
    @Test
    void aLackOfDescriptorsIsSaidOnceInALineThatNamesLimitAndKnob() throws Exception {
        final Server server = new Server();
        final ClosableConnector connector =
                Connectors.add(server, "127.0.0.1", 0, Gateways.config().build());
        server.start();
        try (CapturedLog log = new CapturedLog(ClosableConnector.class, Level.WARN)) {
            for (int i = 0; i < 2; i++) {
                assertTrue(
                        connector.handleAcceptFailure(new IOException("Too many open files")),
                        "it goes on");
            }
            final List<String> lines = log.textsFrom(Level.WARN);
            assertEquals(1, lines.size(), lines::toString);
            final String line = lines.getFirst();
            assertTrue(line.contains("ulimit -n") && line.contains("max-connections"), line);
        } finally {
            server.stop();
        }
    }
}
