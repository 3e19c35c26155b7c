package io.kvasir.gateway.upstream;

import org.eclipse.jetty.client.Destination;
import org.eclipse.jetty.http2.HTTP2Connection;
import org.eclipse.jetty.http2.HTTP2Session;
import org.eclipse.jetty.http2.api.Session;
import org.eclipse.jetty.http2.client.HTTP2Client;
import org.eclipse.jetty.http2.client.HTTP2ClientConnectionFactory;
import org.eclipse.jetty.http2.client.transport.ClientConnectionFactoryOverHTTP2;
import org.eclipse.jetty.http2.client.transport.internal.HTTPSessionListenerPromise;
import org.eclipse.jetty.http2.frames.GoAwayFrame;
import org.eclipse.jetty.io.ClientConnectionFactory;
import org.eclipse.jetty.io.ClientConnector;
import org.eclipse.jetty.io.Connection;
import org.eclipse.jetty.io.EndPoint;
import org.eclipse.jetty.util.Callback;

import java.io.IOException;
import java.util.List;
import java.util.Map;

/**
 * Connections of HTTP/2 to workers. Jetty's, but that a connection on which answers are waited for
 * is never idle: an engine may be silent for long, and the attempts have limits of their own.
 */
final class Http2WorkerConnections extends ClientConnectionFactoryOverHTTP2 {
    private static final int STREAM_WINDOW_BYTES = 1 << 16;
    private static final long NO_LIMIT = 0;

    private final ClientConnectionFactory frames = new HTTP2ClientConnectionFactory();
    private final HTTP2Client client;

    private Http2WorkerConnections(HTTP2Client client) {
        super(client);
        this.client = client;
        client.setFlowControlStrategyFactory(CompleteStreams::new);
        client.setInitialStreamRecvWindow(STREAM_WINDOW_BYTES);
        client.setInitialSessionRecvWindow(STREAM_WINDOW_BYTES * UpstreamTransport.MAX_STREAMS);
    }

    @Override
    public Connection newConnection(EndPoint endPoint, Map<String, Object> context)
            throws IOException {
        final HTTPSessionListenerPromise events = new Events(context);
        context.put(HTTP2Client.CONTEXT_KEY, client);
        context.put(HTTP2Client.SESSION_LISTENER_CONTEXT_KEY, events);
        context.put(HTTP2Client.SESSION_PROMISE_CONTEXT_KEY, events);
        return frames.newConnection(endPoint, context);
    }

    private static final class Events extends HTTPSessionListenerPromise {
        private volatile Http2WorkerConnection made; // null before the worker's first frame

        Events(Map<String, Object> context) {
            super(context);
        }

        @Override
        protected org.eclipse.jetty.client.Connection newConnection(
                Destination destination, Session session, HTTP2Connection connection) {
            made = new Http2WorkerConnection(destination, session, connection);
            return made;
        }

        @Override
        public void onFailure(Session session, Throwable failure, Callback callback) {
            final Http2WorkerConnection connection = made;
            if (connection == null) {
                super.onFailure(session, failure, callback);
            } else {
                endsWithItsStreams(session);
                connection.lost(failure, callback);
            }
        }

        private static void endsWithItsStreams(Session session) {
            ((HTTP2Session) session).getEndPoint().setIdleTimeout(NO_LIMIT);
        }

        @Override
        public boolean onIdleTimeout(Session session) {
            return session.getStreams().isEmpty() && super.onIdleTimeout(session);
        }

        @Override
        public void onGoAway(Session session, GoAwayFrame frame) {
            endsWithItsStreams(session);
            // removed from its pool while it is in use, it is closed when the last but one of its
            // streams ends (Jetty 12.1.14 counts the removal as one); the pool passes it over
            if (session.getStreams().isEmpty()) {
                super.onGoAway(session, frame);
            }
        }
    }

    /** What the transport has to know of it. */
    static final class Protocol extends ClientConnectionFactory.Info {
        private static final List<String> OVER_TLS = List.of("h2");
        private static final List<String> CLEAR = List.of("h2c");

        Protocol(ClientConnector connections) {
            super(new Http2WorkerConnections(new HTTP2Client(connections)));
        }

        @Override
        public List<String> getProtocols(boolean secure) {
            return secure ? OVER_TLS : CLEAR;
        }
    }
}
