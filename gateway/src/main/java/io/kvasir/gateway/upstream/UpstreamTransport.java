package io.kvasir.gateway.upstream;

import io.kvasir.gateway.config.UpstreamHttp2;

import org.eclipse.jetty.client.Connection;
import org.eclipse.jetty.client.ConnectionPool;
import org.eclipse.jetty.client.Destination;
import org.eclipse.jetty.client.DuplexConnectionPool;
import org.eclipse.jetty.client.HttpClientTransport;
import org.eclipse.jetty.client.MultiplexConnectionPool;
import org.eclipse.jetty.client.Origin;
import org.eclipse.jetty.client.Request;
import org.eclipse.jetty.client.transport.HttpClientTransportDynamic;
import org.eclipse.jetty.client.transport.HttpClientTransportOverHTTP;
import org.eclipse.jetty.http.HttpScheme;
import org.eclipse.jetty.http.HttpVersion;
import org.eclipse.jetty.http2.client.transport.internal.HttpConnectionOverHTTP2;
import org.eclipse.jetty.io.ClientConnector;
import org.eclipse.jetty.io.EndPoint;
import org.eclipse.jetty.util.ConcurrentPool;

import java.net.URI;
import java.util.List;
import java.util.Map;

/**
 * Connections to workers: one for each request under way over HTTP/1.1, one for many over HTTP/2.
 */
public final class UpstreamTransport {
    /**
     * Requests under way on one connection of HTTP/2 at most, if the worker allows as many. What
     * clients do not take stays in the stream's window, and the connection's is as large as all of
     * these together: a client that does not read never holds another one's stream back.
     */
    static final int MAX_STREAMS = 256;

    static final List<String> HTTP11 = List.of("http/1.1");

    private UpstreamTransport() {}

    /** The transport of a client of workers. */
    public static HttpClientTransport of(ClientConnector connections, UpstreamHttp2 http2) {
        if (http2 == UpstreamHttp2.OFF) {
            return new Http1Transport(connections);
        }
        // HTTP/1.1 comes first: it is spoken with servers of TLS that negotiate nothing
        final HttpClientTransport transport =
                new HttpClientTransportDynamic(
                        connections,
                        Http1WorkerConnections.INFO,
                        new Http2WorkerConnections.Protocol(connections));
        transport.setConnectionPoolFactory(UpstreamTransport::pool);
        return transport;
    }

    /** Whether a request to such a URL may share its connection with others. */
    public static boolean mayShareConnection(UpstreamHttp2 http2, URI worker) {
        return http2 != UpstreamHttp2.OFF
                && (http2 == UpstreamHttp2.PRIOR_KNOWLEDGE
                        || HttpScheme.HTTPS.is(worker.getScheme()));
    }

    /** Chooses the version of a request. */
    public static Request applyTo(Request request, UpstreamHttp2 http2) {
        if (HttpScheme.HTTPS.is(request.getScheme())) {
            return http2 == UpstreamHttp2.OFF
                    ? request.version(HttpVersion.HTTP_1_1)
                    : request; // negotiated
        }
        return request.version(
                http2 == UpstreamHttp2.PRIOR_KNOWLEDGE ? HttpVersion.HTTP_2 : HttpVersion.HTTP_1_1);
    }

    private static ConnectionPool pool(Destination destination) {
        final int most = destination.getHttpClient().getMaxConnectionsPerDestination();
        final Origin.Protocol protocol = destination.getOrigin().getProtocol();
        return protocol == null || protocol.getProtocols().equals(HTTP11)
                ? new DuplexConnectionPool(destination, most)
                : new SharedConnections(destination, most);
    }

    private static final class Http1Transport extends HttpClientTransportOverHTTP {
        private final Http1WorkerConnections factory = new Http1WorkerConnections();

        Http1Transport(ClientConnector connections) {
            super(connections);
        }

        @Override
        public org.eclipse.jetty.io.Connection newConnection(
                EndPoint endPoint, Map<String, Object> context) {
            return factory.newConnection(endPoint, context);
        }
    }

    /**
     * Takes the last connection's word for how many requests the next one can carry: a burst opens
     * no more connections than it needs.
     */
    private static final class SharedConnections extends MultiplexConnectionPool {
        SharedConnections(Destination destination, int most) {
            super(
                    destination,
                    () ->
                            new ConcurrentPool<>(
                                    ConcurrentPool.StrategyType.FIRST,
                                    most,
                                    SharedConnections::streams),
                    1);
        }

        /** At least 1: what is less is no limit. */
        private static int streams(Connection connection) {
            if (!(connection instanceof HttpConnectionOverHTTP2 shared) || isEnding(shared)) {
                return 1;
            }
            final int allowed = shared.getMaxMultiplex();
            return allowed < 0 ? MAX_STREAMS : Math.clamp(allowed, 1, MAX_STREAMS);
        }

        private static boolean isEnding(HttpConnectionOverHTTP2 connection) {
            return connection.getSession().isClosed();
        }

        @Override
        protected void onCreated(Connection connection) {
            setInitialMaxMultiplex(streams(connection));
            super.onCreated(connection);
        }

        @Override
        public boolean release(Connection connection) {
            final boolean kept = super.release(connection);
            if (kept
                    && connection instanceof HttpConnectionOverHTTP2 shared
                    && isEnding(shared)
                    && shared.getSession().getStreams().isEmpty()) {
                remove(connection);
            }
            return kept;
        }
    }
}
