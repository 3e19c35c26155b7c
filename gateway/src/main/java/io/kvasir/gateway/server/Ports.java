package io.kvasir.gateway.server;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewayException;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.registry.FailureText;
import io.kvasir.registry.HostPort;

import java.io.IOException;
import java.net.BindException;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.UnresolvedAddressException;

/** The addresses that a gateway listens on. */
public enum Ports {
    /** For clients. */
    SERVING("--host", "--port"),
    /** For operators. */
    ADMIN("--admin-host", "--admin-port");

    private final String hostFlag;
    private final String portFlag;

    Ports(String hostFlag, String portFlag) {
        this.hostFlag = hostFlag;
        this.portFlag = portFlag;
    }

    /**
     * Checks that both can be listened on, and lets go of them again.
     *
     * @throws GatewayException if not; the message names the value and the flag
     */
    public static void check(GatewayConfig config) {
        try (ServerSocketChannel serving = SERVING.open(config);
                ServerSocketChannel admin = ADMIN.open(config)) {
            assert serving.isOpen() && admin.isOpen() : "both at once: they may be the same";
        } catch (IOException e) {
            throw new GatewayException("cannot close a port: " + FailureText.of(e), e);
        }
    }

    private ServerSocketChannel open(GatewayConfig config) throws IOException {
        final ServerSocketChannel channel = ServerSocketChannel.open();
        try {
            channel.setOption(StandardSocketOptions.SO_REUSEADDR, true); // as the server does
            return channel.bind(new InetSocketAddress(host(config), port(config)));
        } catch (IOException | UnresolvedAddressException e) {
            channel.close();
            throw failure(config, e);
        }
    }

    /** Says that it cannot be listened on. */
    public GatewayException failure(GatewayConfig config, Exception cause) {
        final String address = HostPort.of(host(config), port(config));
        if (cause instanceof UnresolvedAddressException) {
            return new GatewayException(
                    "cannot listen on "
                            + address
                            + ": the name has no address; "
                            + hostFlag
                            + " must be an address of this machine",
                    cause);
        }
        final boolean inUse =
                cause instanceof BindException
                        && String.valueOf(cause.getMessage()).contains("in use");
        return new GatewayException(
                "cannot listen on "
                        + address
                        + ": "
                        + cause.getMessage()
                        + (inUse
                                ? "; is another gateway running? choose another "
                                        + portFlag
                                        + ", or 0 for a free one"
                                : "; choose another " + hostFlag + " or " + portFlag),
                cause);
    }

    private String host(GatewayConfig config) {
        return config.get(this == SERVING ? GatewaySettings.HOST : GatewaySettings.ADMIN_HOST);
    }

    private int port(GatewayConfig config) {
        return this == SERVING ? config.get(GatewaySettings.PORT) : config.adminPort();
    }

    /** The URL of a port that is open. */
    public String url(GatewayConfig config, int openPort) {
        return "http://" + HostPort.of(host(config), openPort);
    }
}
