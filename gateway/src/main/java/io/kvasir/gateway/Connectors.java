package io.kvasir.gateway;

import org.eclipse.jetty.server.HttpConfiguration;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;

/** The ports of a gateway. */
final class Connectors {
    private Connectors() {}

    /** Adds a port for HTTP to a server that is not started. */
    static ServerConnector add(Server server, String host, int port, GatewayConfig config) {
        final HttpConfiguration http = new HttpConfiguration();
        http.setSendServerVersion(false);
        final ServerConnector connector =
                new ServerConnector(
                        server,
                        1,
                        1,
                        new LimitedHttpConnection.Factory(
                                http, config.get(GatewaySettings.HEAD_TIMEOUT)));
        connector.setHost(host);
        connector.setPort(port);
        connector.setIdleTimeout(config.get(GatewaySettings.CLIENT_IDLE_TIMEOUT).toMillis());
        server.addConnector(connector);
        return connector;
    }
}
