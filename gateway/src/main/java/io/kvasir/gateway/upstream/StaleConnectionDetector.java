package io.kvasir.gateway.upstream;

import org.eclipse.jetty.client.Connection;
import org.eclipse.jetty.client.ConnectionPool;
import org.eclipse.jetty.client.Request;

import java.util.Collections;
import java.util.Map;
import java.util.WeakHashMap;
import java.util.concurrent.atomic.AtomicLong;

/**
 * What has come over the client's connections. A worker may close one that it has answered over by
 * itself while the next request is on its way: that is no fault, and the request can be sent again.
 * It is known by the silence of the connection since then; of HTTP/2 other answers come over it,
 * too. Thread-safe.
 */
public final class StaleConnectionDetector {
    /**
     * How often a request or a probe is sent again because the worker had closed its connection:
     * that many are no attempts.
     */
    static final int STALE_RETRIES = 5;

    private final Map<Connection, AtomicLong> received =
            Collections.synchronizedMap(new WeakHashMap<>());

    /** A request is about to be sent over its connection. */
    public Sent sent(Request request) {
        final Connection connection = request.getConnection();
        return new Sent(connection, received.computeIfAbsent(connection, _ -> new AtomicLong()));
    }

    /** A request that is under way on a connection. */
    public static final class Sent {
        private final Connection connection;
        private final AtomicLong received;
        private final long before;

        private Sent(Connection connection, AtomicLong received) {
            this.connection = connection;
            this.received = received;
            this.before = received.get();
        }

        /** A part of the answer has come. */
        public void received() {
            received.incrementAndGet();
        }

        /** The connection, if it was shared and has ended: what has failed is that; else null. */
        public Object lost() {
            return connection instanceof ConnectionPool.MaxMultiplexable && connection.isClosed()
                    ? connection
                    : null;
        }

        /** Whether the connection has ended by a reset; false of one that others share. */
        public boolean wasReset() {
            return WorkerConnector.wasReset(connection);
        }

        /** Whether the request failed because the worker had closed its connection before. */
        public boolean wasStale(UpstreamFault fault) {
            return fault == UpstreamFault.CLOSED && before > 0 && received.get() == before;
        }
    }
}
