package io.kvasir.pipeline.zmtp;

import io.kvasir.pipeline.log.LogLimit;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.io.IOException;
import java.net.Inet4Address;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.NetworkInterface;
import java.net.SocketAddress;
import java.net.StandardProtocolFamily;
import java.net.StandardSocketOptions;
import java.nio.channels.SelectionKey;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;

/**
 * A bound address to which publishers connect. All methods on the poller's thread, but {@link
 * #addressOf} and {@link #text}.
 */
public final class ZmtpListener implements SocketPoller.Handler {
    private static final Logger LOG = LoggerFactory.getLogger(ZmtpListener.class);
    private static final int BACKLOG = 1_024;
    private static final int MAX_CONNECTIONS = 16_384;
    private static final long ERROR_PAUSE_NS = TimeUnit.MILLISECONDS.toNanos(500);

    private final SocketPoller poller;
    private final Endpoint endpoint;
    private final ZmtpOptions options;
    private final Supplier<ZmtpConnection.Listener> newPeer;
    private final Set<ZmtpConnection> connections = new HashSet<>();
    private final int maxConnections;
    private final Logger log;
    private final LogLimit refusals = new LogLimit();
    private ServerSocketChannel channel;
    private SelectionKey key;
    private boolean closed;

    /**
     * Creates a listener that is not bound yet.
     *
     * @param endpoint address to bind
     * @param newPeer makes the listener of each connection
     */
    public ZmtpListener(
            SocketPoller poller,
            Endpoint endpoint,
            ZmtpOptions options,
            Supplier<ZmtpConnection.Listener> newPeer) {
        this(poller, endpoint, options, newPeer, MAX_CONNECTIONS, LOG);
    }

    /** The same with another limit of connections and a log of its own. */
    ZmtpListener(
            SocketPoller poller,
            Endpoint endpoint,
            ZmtpOptions options,
            Supplier<ZmtpConnection.Listener> newPeer,
            int maxConnections,
            Logger log) {
        this.poller = poller;
        this.endpoint = endpoint;
        this.options = options;
        this.newPeer = newPeer;
        this.maxConnections = maxConnections;
        this.log = log;
    }

    /**
     * What to bind: an address, the first IPv4 address of a network interface, or of a name, which
     * is looked up meanwhile. Any thread.
     *
     * @throws IOException if there is no such host or interface
     */
    public static SocketAddress addressOf(Endpoint endpoint) throws IOException {
        if (endpoint.path() != null || !endpoint.isName()) {
            return endpoint.address();
        }
        if (endpoint.host().equals("*")) {
            return new InetSocketAddress(
                    InetAddress.getByAddress(new byte[Integer.BYTES]), endpoint.port());
        }
        final NetworkInterface named = NetworkInterface.getByName(endpoint.host());
        if (named != null) {
            for (InetAddress address : named.inetAddresses().toList()) {
                if (address instanceof Inet4Address) {
                    return new InetSocketAddress(address, endpoint.port());
                }
            }
        }
        return new InetSocketAddress(InetAddress.getByName(endpoint.host()), endpoint.port());
    }

    /**
     * Binds and begins to accept.
     *
     * @return the address in ZMQ's form, with the real port
     * @throws IOException if the address is in use or not one of this machine
     */
    public String bind(SocketAddress address) throws IOException {
        final boolean ipc = endpoint.path() != null;
        channel =
                ipc
                        ? ServerSocketChannel.open(StandardProtocolFamily.UNIX)
                        : ServerSocketChannel.open();
        try {
            channel.configureBlocking(false);
            if (ipc) {
                removeLeftover();
            } else {
                channel.setOption(StandardSocketOptions.SO_REUSEADDR, true);
            }
            channel.bind(address, BACKLOG);
            key = poller.register(channel, SelectionKey.OP_ACCEPT, this);
            return ipc ? endpoint.text() : text((InetSocketAddress) channel.getLocalAddress());
        } catch (IOException | RuntimeException e) {
            close();
            throw e;
        }
    }

    /** Removes the file that a process left which did not close its socket. */
    private void removeLeftover() throws IOException {
        final Path path = endpoint.path();
        if (Files.exists(path) && Files.readAttributes(path, BasicFileAttributes.class).isOther()) {
            Files.delete(path);
        }
    }

    /** An address in ZMQ's form. Any thread. */
    public static String text(InetSocketAddress bound) {
        final String host = bound.getAddress().getHostAddress();
        return "tcp://" + (host.indexOf(':') < 0 ? host : "[" + host + "]") + ":" + bound.getPort();
    }

    @Override
    public void ready(SelectionKey ready) {
        try {
            SocketChannel accepted = channel.accept();
            while (accepted != null) {
                take(accepted);
                accepted = channel.accept();
            }
        } catch (IOException e) {
            failed(e);
        }
    }

    /** Accepts nothing for a while: without descriptors it would fail again at once. */
    @Override
    public void failed(Throwable error) {
        if (!closed) {
            log.warn("{}: cannot accept a connection: {}", endpoint, FailureWords.of(error));
            key.interestOps(0);
            poller.schedule(ERROR_PAUSE_NS, this::acceptAgain);
        }
    }

    private void acceptAgain() {
        if (!closed) {
            key.interestOps(SelectionKey.OP_ACCEPT);
        }
    }

    private void take(SocketChannel accepted) throws IOException {
        if (connections.size() >= maxConnections) {
            accepted.close();
            sayRefused();
            return;
        }
        final ZmtpConnection.Listener peer = newPeer.get();
        final ZmtpConnection connection = new ZmtpConnection(poller, options, new Peer(peer));
        connections.add(connection);
        connection.accept(accepted);
    }

    /** Peers that are refused come again at once. */
    private void sayRefused() {
        final String more = refusals.take(System.nanoTime());
        if (more != null) {
            log.warn("{}: {} connections, one more is refused{}", endpoint, maxConnections, more);
        }
    }

    /** Sends a message to all peers that are connected. */
    public void send(byte[]... frames) {
        for (ZmtpConnection connection : connections) {
            connection.send(frames);
        }
    }

    /** Stops accepting and ends all connections. */
    @Override
    public void close() {
        if (closed) {
            return;
        }
        closed = true;
        connections.forEach(ZmtpConnection::close);
        connections.clear();
        try {
            channel.close();
            if (endpoint.path() != null && key != null) {
                Files.deleteIfExists(endpoint.path());
            }
        } catch (IOException e) {
            log.debug("{} did not close cleanly", endpoint, e);
        }
    }

    /** Forgets connections that have ended. */
    private final class Peer implements ZmtpConnection.Listener {
        private final ZmtpConnection.Listener listener;

        private Peer(ZmtpConnection.Listener listener) {
            this.listener = listener;
        }

        @Override
        public void opened(ZmtpConnection connection) {
            listener.opened(connection);
        }

        @Override
        public boolean received(ZmtpConnection connection, ZmtpMessage message) {
            return listener.received(connection, message);
        }

        @Override
        public void closed(ZmtpConnection connection, String why) {
            connections.remove(connection);
            listener.closed(connection, why);
        }
    }
}
