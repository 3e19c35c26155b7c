package io.kvasir.pipeline.zmtp;

import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.util.List;

/**
 * Keeps a connection to one address: resolves its name, connects, and after a loss or failure tries
 * again with growing delays, each time with a fresh lookup. All methods on the poller's thread.
 */
public final class Connector implements ZmtpConnection.Listener {
    /** Is called on the poller's thread. */
    public interface Listener {
        /** There is a connection, for the first time or again. */
        void connected();

        /** Takes a message; false = not now: the same comes again after {@link #resume}. */
        boolean received(ZmtpMessage message);

        /** The connection is lost; it is made again. */
        void disconnected(String why);

        /** No connection could be made; it is tried again. */
        void connectFailed(String why);
    }

    private final SocketPoller poller;
    private final Resolver resolver;
    private final Endpoint endpoint;
    private final ZmtpOptions options;
    private final Backoff backoff;
    private final ConnectLimit limit;
    private final Listener listener;
    private ZmtpConnection connection;
    private boolean wasOpen;
    private boolean counted; // against the limit
    private boolean closed;
    private long openedAtNs;
    private int tries;
    private SocketPoller.Timer next;

    /**
     * Creates a connector that does nothing yet.
     *
     * @param endpoint what to connect to
     * @param backoff delays between tries
     * @param limit of connections under way
     * @param listener gets connections and messages
     */
    public Connector(
            SocketPoller poller,
            Resolver resolver,
            Endpoint endpoint,
            ZmtpOptions options,
            Backoff backoff,
            ConnectLimit limit,
            Listener listener) {
        this.poller = poller;
        this.resolver = resolver;
        this.endpoint = endpoint;
        this.options = options;
        this.backoff = backoff;
        this.limit = limit;
        this.listener = listener;
    }

    /** Begins to connect; once. */
    public void start() {
        if (closed) {
            return;
        }
        if (endpoint.isName()) {
            resolver.resolve(
                    endpoint.host(), addresses -> poller.execute(() -> resolved(addresses)));
        } else {
            limit.begin(() -> connect(endpoint.address()));
        }
    }

    private void resolved(List<InetAddress> addresses) {
        if (closed) {
            return;
        }
        if (addresses.isEmpty()) {
            failed("the host name cannot be resolved");
            return;
        }
        final InetAddress chosen = addresses.get(tries % addresses.size());
        limit.begin(() -> connect(new InetSocketAddress(chosen, endpoint.port())));
    }

    private void connect(SocketAddress address) {
        if (closed) {
            limit.end();
            return;
        }
        counted = true;
        wasOpen = false;
        tries = tries + 1 & Integer.MAX_VALUE;
        connection = new ZmtpConnection(poller, options, this);
        connection.connect(address);
    }

    private void endCount() {
        if (counted) {
            counted = false;
            limit.end();
        }
    }

    private void failed(String why) {
        retryLater();
        listener.connectFailed(endpoint + ": " + why);
    }

    private void retryLater() {
        connection = null;
        next = poller.schedule(backoff.nextNs(), this::start);
    }

    @Override
    public void opened(ZmtpConnection opened) {
        endCount();
        wasOpen = true;
        openedAtNs = System.nanoTime();
        listener.connected();
    }

    @Override
    public boolean received(ZmtpConnection from, ZmtpMessage message) {
        return listener.received(message);
    }

    @Override
    public void closed(ZmtpConnection lost, String why) {
        endCount();
        if (closed) {
            return;
        }
        if (!wasOpen) {
            failed(why);
            return;
        }
        backoff.heldFor(System.nanoTime() - openedAtNs);
        retryLater();
        listener.disconnected(endpoint + ": " + why);
    }

    /** Sends a message if there is a connection. */
    public void send(byte[]... frames) {
        if (connection != null) {
            connection.send(frames);
        }
    }

    /** Whether there is a connection. */
    public boolean isConnected() {
        return connection != null && connection.isOpen();
    }

    /** Messages that the peer has not taken yet. */
    public int unsent() {
        return connection == null ? 0 : connection.unsent();
    }

    /** Goes on after a refused message; see {@link ZmtpConnection#resume}. */
    public void resume() {
        if (connection != null) {
            connection.resume();
        }
    }

    /** Ends the connection and all tries. */
    public void close() {
        closed = true;
        if (next != null) {
            next.cancel();
        }
        if (connection != null) {
            connection.close();
            connection = null;
        }
        endCount();
    }
}
