package io.kvasir.gateway.server;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;

import org.eclipse.jetty.server.HttpConfiguration;
import org.eclipse.jetty.server.Server;

/** The ports of a gateway. */
public final class Connectors {
    /** Room for what the gateway adds to a head that it passes on. */
    public static final int OWN_HEADERS = 8 << 10;

    private Connectors() {}

    /** Adds a port for HTTP to a server that is not started. */
    public static ClosableConnector add(
            Server server, String host, int port, GatewayConfig config) {
        final HttpConfiguration http = new HttpConfiguration();
        http.setSendServerVersion(false);
        http.setRequestHeaderSize(config.get(GatewaySettings.MAX_HEAD_BYTES));
        http.setMaxResponseHeaderSize(config.get(GatewaySettings.MAX_HEAD_BYTES) + OWN_HEADERS);
        final ClosableConnector connector =
                new ClosableConnector(
                        server,
                        new LimitedHttpConnection.Factory(
                                http, config.get(GatewaySettings.HEAD_TIMEOUT)));
        connector.setHost(host);
        connector.setPort(port);
        connector.setIdleTimeout(config.get(GatewaySettings.CLIENT_IDLE_TIMEOUT).toMillis());
        server.addConnector(connector);
        return connector;
    }
}
