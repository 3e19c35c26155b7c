package io.kvasir.nixl.exchange.zmq;

import io.kvasir.registry.FailureText;
import io.kvasir.registry.HostPort;

import org.zeromq.ZMQ;
import org.zeromq.ZMQException;

import java.io.IOException;
import java.net.BindException;
import java.net.InetSocketAddress;
import java.net.ServerSocket;

/** Binds sockets of JeroMQ, which says {@code Errno 48} whatever the reason of a failure is. */
public final class BoundPort {
    private static final int MAX_PORT = 65_535;

    private BoundPort() {}

    /**
     * Binds a socket.
     *
     * @param socket not yet bound
     * @param host name or address of this machine
     * @param port 0 for any free one
     * @return the port that is bound
     * @throws BindException with the address and the reason in words; its cause may be another one
     */
    public static int bind(ZMQ.Socket socket, String host, int port) throws BindException {
        socket.setIPv6(HostPort.isV6(host));
        final String endpoint = "tcp://" + HostPort.toBind(host, port);
        try {
            socket.bind(endpoint);
        } catch (ZMQException e) {
            final BindException failure =
                    new BindException("cannot bind " + endpoint + ": " + reason(host, port));
            failure.initCause(e);
            throw failure;
        }
        final String bound = socket.getLastEndpoint();
        return Integer.parseInt(bound.substring(bound.lastIndexOf(':') + 1));
    }

    /** What the system says to a plain socket that is bound to the same address. */
    private static String reason(String host, int port) {
        if (port < 0 || port > MAX_PORT) {
            return "no port has the number " + port;
        }
        try (ServerSocket socket = new ServerSocket()) {
            socket.bind(new InetSocketAddress(host, port));
            return "another socket had it"; // and has given it back meanwhile
        } catch (IOException e) {
            return FailureText.of(e);
        }
    }
}
