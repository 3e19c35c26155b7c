package io.kvasir.pipeline.zmtp;

import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.net.UnixDomainSocketAddress;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;

/**
 * A ZMQ address: {@code tcp://host:port}, {@code tcp://[ipv6]:port} or {@code ipc://path}.
 *
 * @param text the address as it was written
 * @param host host name, IP address without brackets, or {@code *} = all interfaces; null for ipc
 * @param port 0 = any free one ({@code *} in the text), which only a bound address can have
 * @param path path of the socket's file, null for tcp
 */
public record Endpoint(String text, String host, int port, Path path) {
    private static final String TCP = "tcp://";
    private static final String IPC = "ipc://";
    private static final int MAX_PORT = 65_535;

    /**
     * Reads an address.
     *
     * @throws IllegalArgumentException if it is none, or of a transport that is not supported
     */
    public static Endpoint parse(String text) {
        if (text.startsWith(IPC)) {
            return ipc(text);
        }
        if (!text.startsWith(TCP)) {
            throw wrong(text, "it must begin with tcp:// or ipc://");
        }
        final int colon = text.lastIndexOf(':');
        if (colon <= TCP.length()) {
            throw wrong(text, "it must be tcp://host:port");
        }
        String host = text.substring(TCP.length(), colon);
        if (host.startsWith("[") && host.endsWith("]")) {
            host = host.substring(1, host.length() - 1);
        } else if (host.indexOf(':') >= 0) {
            throw wrong(text, "an IPv6 address stands in brackets");
        }
        if (host.isEmpty() || host.indexOf(';') >= 0 || host.indexOf('/') >= 0) {
            throw wrong(text, "its host is not usable");
        }
        return new Endpoint(text, host, port(text, text.substring(colon + 1)), null);
    }

    private static Endpoint ipc(String text) {
        try {
            final Path path = Path.of(text.substring(IPC.length()));
            if (path.toString().isEmpty() || text.charAt(IPC.length()) == '@') {
                throw wrong(text, "it must be ipc://path");
            }
            return new Endpoint(text, null, 0, path);
        } catch (InvalidPathException e) {
            throw wrong(text, e.getReason());
        }
    }

    private static int port(String text, String digits) {
        if (digits.equals("*")) {
            return 0;
        }
        try {
            final int port = Integer.parseInt(digits);
            if (port >= 0 && port <= MAX_PORT) {
                return port;
            }
        } catch (NumberFormatException e) {
            // refused below
        }
        throw wrong(text, "its port must be 1 to 65535");
    }

    private static IllegalArgumentException wrong(String text, String why) {
        return new IllegalArgumentException("not a usable ZMQ address: " + text + ": " + why);
    }

    /**
     * The same, for connecting to.
     *
     * @return this
     * @throws IllegalArgumentException if it names no single host and port
     */
    public Endpoint connectable() {
        if (path == null && (port == 0 || host.equals("*"))) {
            throw wrong(text, "host and port are needed to connect");
        }
        return this;
    }

    /** Whether a port is to be chosen by the system. */
    public boolean isAnyPort() {
        return path == null && port == 0;
    }

    /** Whether the host is a name, which has to be looked up. */
    public boolean isName() {
        return path == null && literal() == null;
    }

    /** The address of a host that is no name, or of a file. */
    public SocketAddress address() {
        return path != null
                ? UnixDomainSocketAddress.of(path)
                : new InetSocketAddress(literal(), port);
    }

    private InetAddress literal() {
        try {
            return InetAddress.ofLiteral(host);
        } catch (IllegalArgumentException e) {
            return null;
        }
    }

    @Override
    public String toString() {
        return text;
    }
}
