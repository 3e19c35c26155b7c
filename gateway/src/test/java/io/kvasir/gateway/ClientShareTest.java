package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.kvasir.gateway.config.WorkerConfig;
import io.kvasir.gateway.server.ConnectionCap;
import io.kvasir.gateway.upstream.Descriptors;

import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.junit.jupiter.api.Test;

/** What workers leave of the file descriptors to clients. */
class ClientShareTest {
    private static final String URL = "http://127.0.0.1:1";

    private final ConnectionCap cap =
            new ConnectionCap(new ServerConnector(new Server()), 500, "max-connections");

    private static long of(String worker) {
        return Descriptors.of(WorkerConfig.parse(worker));
    }

    @Test
    void connectionsThatWorkersKeepAndTheirEventSourcesAreNotForClients() {
        final ClientShare share = new ClientShare(cap, 1000);
        final Runnable plain = share.begun(of(URL));
        assertEquals(499, cap.getMaxNetworkConnectionCount());
        final Runnable ranks = share.begun(of(URL + ",events=tcp://127.0.0.1:2,dp=8"));
        assertEquals(494, cap.getMaxNetworkConnectionCount());
        plain.run();
        ranks.run();
        assertEquals(500, cap.getMaxNetworkConnectionCount());
    }

    @Test
    void someAreLeftToClientsHoweverManyWorkersThereAre() {
        final ClientShare share = new ClientShare(cap, 100);
        for (int i = 0; i < 100; i++) {
            var _ = share.begun(of(URL));
        }
        assertEquals(16, cap.getMaxNetworkConnectionCount());
    }
}
