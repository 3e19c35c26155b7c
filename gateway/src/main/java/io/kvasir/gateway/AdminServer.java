package io.kvasir.gateway;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.server.ConnectionCap;
import io.kvasir.gateway.server.Connectors;

import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.util.thread.QueuedThreadPool;

/**
 * The port for operators and probes, on threads that serve no one else: whatever load the other
 * port has, this one answers.
 */
final class AdminServer {
    private static final int MAX_THREADS = 8;
    private static final int MIN_THREADS = 2;
    private static final int MAX_CONNECTIONS = 64;

    private final Server server;
    private final ServerConnector connector;

    AdminServer(GatewayConfig config, Readiness readiness, AdminHandler handler) {
        final QueuedThreadPool threads = new QueuedThreadPool(MAX_THREADS, MIN_THREADS);
        threads.setName("kvasir-admin");
        server = new Server(threads);
        connector =
                Connectors.add(
                        server, config.get(GatewaySettings.ADMIN_HOST), config.adminPort(), config);
        server.setErrorHandler(GatewayHandler::serverError);
        final ConnectionCap cap =
                new ConnectionCap(connector, MAX_CONNECTIONS, "the admin port has no more");
        server.addBean(cap);
        server.setHandler(new StatusHandler(readiness, false, cap, threads, handler));
    }

    void start() throws Exception {
        server.start();
    }

    int port() {
        return connector.getLocalPort();
    }

    void stop() throws Exception {
        server.stop();
    }
}
