package io.kvasir.gateway;

import org.eclipse.jetty.server.HttpConfiguration;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.StandardSocketOptions;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;

/** The ports of a gateway. */
final class Connectors {
    /** Room for what the gateway adds to a head that it passes on. */
    static final int OWN_HEADERS = 8 << 10;

    private static final Logger LOG = LoggerFactory.getLogger(Connectors.class);

    private Connectors() {}

    /** Adds a port for HTTP to a server that is not started. */
    static ServerConnector add(Server server, String host, int port, GatewayConfig config) {
        final HttpConfiguration http = new HttpConfiguration();
        http.setSendServerVersion(false);
        http.setRequestHeaderSize(config.get(GatewaySettings.MAX_HEAD_BYTES));
        http.setMaxResponseHeaderSize(config.get(GatewaySettings.MAX_HEAD_BYTES) + OWN_HEADERS);
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

    /**
     * Closes a port. The system would reset what it has connected and is not accepted yet: that is
     * accepted first.
     */
    static void close(ServerConnector connector) {
        if (connector.getTransport() instanceof ServerSocketChannel port) {
            connector.setAccepting(false);
            try {
                endAccept(port);
                port.configureBlocking(false);
                for (SocketChannel client = port.accept(); client != null; client = port.accept()) {
                    client.configureBlocking(false);
                    client.setOption(StandardSocketOptions.TCP_NODELAY, true);
                    connector.getSelectorManager().accept(client);
                }
            } catch (IOException e) {
                LOG.warn("connections may be lost at the close of the port: {}", e.toString());
            }
        }
        connector.close();
    }

    /** The acceptor waits in the system for one more connection: this one. */
    private static void endAccept(ServerSocketChannel port) throws IOException {
        final InetSocketAddress bound = (InetSocketAddress) port.getLocalAddress();
        final InetAddress address =
                bound.getAddress().isAnyLocalAddress()
                        ? InetAddress.getLoopbackAddress()
                        : bound.getAddress();
        new Socket(address, bound.getPort()).close();
    }
}
