package io.kvasir.gateway;

import org.eclipse.jetty.server.HttpConfiguration;
import org.eclipse.jetty.server.HttpConnectionFactory;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;

import java.time.Duration;

/** The ports of a gateway. */
final class Connectors {
    private Connectors() {}

    /** Adds a port for HTTP to a server that is not started. */
    static ServerConnector add(Server server, String host, int port, Duration idleTimeout) {
        final HttpConfiguration http = new HttpConfiguration();
        http.setSendServerVersion(false);
        final ServerConnector connector =
                new ServerConnector(server, 1, 1, new HttpConnectionFactory(http));
        connector.setHost(host);
        connector.setPort(port);
        connector.setIdleTimeout(idleTimeout.toMillis());
        server.addConnector(connector);
        return connector;
    }
}
