package io.kvasir.gateway.server;

import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.upstream.Descriptors;
import io.kvasir.registry.FailureText;
import io.kvasir.registry.HostPort;

import org.eclipse.jetty.server.ConnectionFactory;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.net.StandardSocketOptions;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.time.Duration;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;

/**
 * A port that can be closed without a reset of what clients have connected: the system would reset
 * what is connected and not accepted yet. One thread accepts.
 */
public final class ClosableConnector extends ServerConnector {
    private static final Logger LOG = LoggerFactory.getLogger(ClosableConnector.class);
    private static final long ACCEPT_INTERVAL_NS = 5_000_000L;
    private static final int CONNECT_TIMEOUT_MS = 1_000;

    /** Clients wait in the system's queue meanwhile. */
    private static final long LACK_PAUSE_NS = 1_000_000_000L;

    private static final long LOG_INTERVAL_NS = 60_000_000_000L;

    /** Held while a connection is awaited, taken and handed over. */
    private final ReentrantLock accepting = new ReentrantLock();

    private volatile boolean closing;
    private long loggedNs = System.nanoTime() - LOG_INTERVAL_NS; // of the one thread that accepts

    ClosableConnector(Server server, ConnectionFactory http) {
        super(server, 1, 1, http);
    }

    @Override
    public void accept(int acceptor) throws IOException {
        accepting.lock();
        try {
            if (!closing) {
                super.accept(acceptor);
            }
        } finally {
            accepting.unlock();
        }
    }

    @Override
    protected boolean handleAcceptFailure(Throwable failure) {
        if (!isRunning() || !Descriptors.isLack(failure)) {
            return super.handleAcceptFailure(failure);
        }
        final long nowNs = System.nanoTime();
        if (nowNs - loggedNs >= LOG_INTERVAL_NS) {
            loggedNs = nowNs;
            LOG.warn(
                    "no file descriptor is left for connections to {}, which wait: the limit is"
                            + " {}; raise ulimit -n, or lower {} of the gateway",
                    address(),
                    Descriptors.limit(),
                    GatewaySettings.MAX_CONNECTIONS.name());
        }
        LockSupport.parkNanos(LACK_PAUSE_NS);
        return true;
    }

    /** Where it is to listen, as in URLs; with port 0 where any free one is wanted. */
    public String address() {
        return HostPort.of(getHost(), getPort());
    }

    /**
     * Closes the port. What is connected until then has been accepted when it returns; it counts as
     * a connection. Attempts to connect are ignored from its call on where the system can do so.
     *
     * @param handshakes how long connections are accepted that clients had begun before
     */
    public void close(Duration handshakes) {
        if (getTransport() instanceof ServerSocketChannel port) {
            closing = true;
            setAccepting(false);
            try {
                awaitAcceptor(port);
                try {
                    acceptRest(port, handshakes);
                } finally {
                    accepting.unlock();
                }
            } catch (IOException e) {
                LOG.warn("connections may be lost at the close of the port: {}", FailureText.of(e));
            }
        }
        close();
    }

    private void acceptRest(ServerSocketChannel port, Duration handshakes) throws IOException {
        port.configureBlocking(false);
        final long startNs = System.nanoTime();
        final boolean isFiltered = SynFilter.attach(port);
        acceptAll(port);
        while (isFiltered && System.nanoTime() - startNs < handshakes.toNanos()) {
            LockSupport.parkNanos(ACCEPT_INTERVAL_NS);
            acceptAll(port);
        }
    }

    private void acceptAll(ServerSocketChannel port) throws IOException {
        for (SocketChannel client = port.accept(); client != null; client = port.accept()) {
            client.configureBlocking(false);
            client.setOption(StandardSocketOptions.TCP_NODELAY, true);
            getSelectorManager().accept(client);
        }
    }

    /** Takes the lock: the acceptor has handed over what it had taken, and takes nothing more. */
    private void awaitAcceptor(ServerSocketChannel port) throws IOException {
        if (accepting.tryLock()) {
            return;
        }
        // it waits in the system for one more connection: this one
        final InetSocketAddress bound = (InetSocketAddress) port.getLocalAddress();
        final InetAddress address =
                bound.getAddress().isAnyLocalAddress()
                        ? InetAddress.getLoopbackAddress()
                        : bound.getAddress();
        try (Socket last = new Socket()) {
            last.connect(new InetSocketAddress(address, bound.getPort()), CONNECT_TIMEOUT_MS);
        } catch (SocketTimeoutException e) {
            LOG.debug("others have filled the queue: it does not wait", e);
        }
        accepting.lock();
    }
}
