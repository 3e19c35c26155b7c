package io.kvasir.gateway.server;

import org.eclipse.jetty.io.Connection;
import org.eclipse.jetty.io.EndPoint;
import org.eclipse.jetty.server.NetworkConnectionLimit;
import org.eclipse.jetty.server.ServerConnector;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.util.Comparator;
import java.util.Objects;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;
import java.util.function.ToLongFunction;
import java.util.stream.Stream;

/**
 * A limit of a port's connections. At the limit new ones wait in the system's queue; the
 * connections that have been idle for longest are closed, those whose heads have been arriving for
 * longest are refused, and answers say that theirs is closed after them, so that those that wait
 * get their turn. Thread-safe.
 */
public final class ConnectionCap extends NetworkConnectionLimit {
    private static final Logger LOG = LoggerFactory.getLogger(ConnectionCap.class);

    /** At the limit one connection of so many is closed at once, if as many are idle. */
    private static final int CLOSED_SHARE = 8;

    private static final int CLOSED_AT_LEAST = 8;

    /** The request of one that has been idle for less may be on its way. */
    private static final long IDLE_NS = 1_000_000_000L;

    /** A head that has been arriving for less may be that of a slow client. */
    private static final long HEAD_NS = 2_000_000_000L;

    private static final long CHECK_INTERVAL_MS = 100;

    private static final long LOG_INTERVAL_NS = 60_000_000_000L;

    private final ServerConnector connector;
    private final String setting;
    private final AtomicLong loggedNs = new AtomicLong(System.nanoTime() - LOG_INTERVAL_NS);
    private final AtomicBoolean checking = new AtomicBoolean();
    private volatile boolean full;
    private boolean ended; // guarded by this

    /**
     * @param setting name of what sets the limit
     */
    public ConnectionCap(ServerConnector connector, int most, String setting) {
        super(most, connector);
        this.connector = connector;
        this.setting = setting;
    }

    /** Whether there is no room for another connection. */
    public boolean isFull() {
        return full;
    }

    /** Whether there is a connection, or one that was accepted and is not set up yet. */
    public boolean hasConnections() {
        return getPendingNetworkConnectionCount() + getNetworkConnectionCount() > 0;
    }

    /**
     * How long no connection has brought anything of a request, or had one under way.
     *
     * @return 0 where one is under way, {@link Long#MAX_VALUE} where there is no connection
     */
    public long silenceNs() {
        final long nowNs = System.nanoTime();
        return idleConnections()
                .mapToLong(IdleConnection::silentSinceNs)
                .map(sinceNs -> sinceNs == 0 ? 0 : Math.max(0, nowNs - sinceNs))
                .min()
                .orElse(Long.MAX_VALUE);
    }

    /**
     * Refuses the requests whose heads are still arriving, because the gateway ends. By one thread.
     *
     * @return whether the answer of one is still under way
     */
    public boolean cutHeads() {
        return idleConnections().filter(IdleConnection::cutHead).count() > 0;
    }

    @Override
    protected void limit() {
        full = true;
        super.limit();
        if (checking.compareAndSet(false, true)) {
            next();
        }
        final long nowNs = System.nanoTime();
        final long last = loggedNs.get();
        if (nowNs - last >= LOG_INTERVAL_NS && loggedNs.compareAndSet(last, nowNs)) {
            LOG.warn(
                    "{} connections of clients are as many as may be; others wait ({})",
                    getMaxNetworkConnectionCount(),
                    setting);
        }
    }

    @Override
    protected synchronized void unlimit() {
        full = false;
        if (!ended) {
            super.unlimit();
        }
    }

    /** Has the port accept nothing from now on, however many connections there are. */
    public synchronized void end() {
        ended = true;
        connector.setAccepting(false);
    }

    private void next() {
        final Executor executor = connector.getExecutor(); // not within the limit's lock
        connector
                .getScheduler()
                .schedule(
                        () -> executor.execute(this::check),
                        CHECK_INTERVAL_MS,
                        TimeUnit.MILLISECONDS);
    }

    private void check() {
        if (full) {
            closeLongest(IdleConnection::idleSinceNs, IDLE_NS, IdleConnection::closeIfIdle);
            closeLongest(IdleConnection::headSinceNs, HEAD_NS, IdleConnection::endHead);
            next();
        } else {
            checking.set(false);
            if (full && checking.compareAndSet(false, true)) {
                next(); // it became full in between
            }
        }
    }

    /**
     * Ends those that have waited for longest.
     *
     * @param sinceNs since when one waits; 0 where it does not
     * @param leastNs for how long at least
     */
    private void closeLongest(
            ToLongFunction<IdleConnection> sinceNs, long leastNs, Consumer<IdleConnection> end) {
        final long nowNs = System.nanoTime();
        idleConnections()
                .map(connection -> Waiting.of(connection, sinceNs, nowNs))
                .filter(waiting -> waiting.forNs >= leastNs)
                .sorted(Comparator.comparingLong(Waiting::forNs).reversed())
                .limit(Math.max(CLOSED_AT_LEAST, getMaxNetworkConnectionCount() / CLOSED_SHARE))
                .forEach(waiting -> end.accept(waiting.connection));
    }

    private Stream<IdleConnection> idleConnections() {
        return connector.getConnectedEndPoints().stream()
                .map(EndPoint::getConnection)
                .map(ConnectionCap::idleConnection)
                .filter(Objects::nonNull);
    }

    /** Null where it has not begun. */
    private static IdleConnection idleConnection(Connection connection) {
        return connection instanceof IdleConnection idle
                ? idle
                : Http2ConnectionFactory.idleConnection(connection);
    }

    /** How long a connection had waited at one moment: it changes while they are sorted. */
    private record Waiting(IdleConnection connection, long forNs) {
        static Waiting of(
                IdleConnection connection, ToLongFunction<IdleConnection> since, long nowNs) {
            final long sinceNs = since.applyAsLong(connection);
            return new Waiting(connection, sinceNs == 0 ? 0 : nowNs - sinceNs);
        }
    }
}
