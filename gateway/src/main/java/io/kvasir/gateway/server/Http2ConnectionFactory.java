package io.kvasir.gateway.server;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;

import org.eclipse.jetty.http.HttpException;
import org.eclipse.jetty.http.HttpField;
import org.eclipse.jetty.http.HttpFields;
import org.eclipse.jetty.http.HttpHeader;
import org.eclipse.jetty.http.HttpMethod;
import org.eclipse.jetty.http.HttpStatus;
import org.eclipse.jetty.http.MetaData;
import org.eclipse.jetty.http2.ErrorCode;
import org.eclipse.jetty.http2.HTTP2Connection;
import org.eclipse.jetty.http2.HTTP2Session;
import org.eclipse.jetty.http2.HTTP2Stream;
import org.eclipse.jetty.http2.SessionContainer;
import org.eclipse.jetty.http2.api.Session;
import org.eclipse.jetty.http2.api.Stream;
import org.eclipse.jetty.http2.api.server.ServerSessionListener;
import org.eclipse.jetty.http2.frames.FailureFrame;
import org.eclipse.jetty.http2.frames.GoAwayFrame;
import org.eclipse.jetty.http2.server.HTTP2CServerConnectionFactory;
import org.eclipse.jetty.io.Connection;
import org.eclipse.jetty.io.EndPoint;
import org.eclipse.jetty.io.WindowRateControl;
import org.eclipse.jetty.server.ConnectionMetaData;
import org.eclipse.jetty.server.Connector;
import org.eclipse.jetty.server.HttpConfiguration;
import org.eclipse.jetty.server.HttpConnectionFactory;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.util.Callback;

/**
 * HTTP/2 on a port for HTTP/1.1, for clients that speak it from the first byte on. A connection of
 * HTTP/1.1 is not upgraded: a proxy that passes {@code Upgrade} on would from then on pass requests
 * on that it does not see, without what it checks and sets.
 */
public final class Http2ConnectionFactory extends HTTP2CServerConnectionFactory {
    /** Attribute of a connection: its {@link ClientSession}. */
    private static final String SESSION = ClientSession.class.getName();

    /**
     * Bytes beyond the longest head that are still read, to be answered by a 431. A longer one ends
     * its connection: what it adds to the table of both sides' compression would not be known.
     */
    private static final int REFUSED_HEAD_BYTES = 64 << 10;

    /** Beside its name and value: a colon, a blank, the end of the line. */
    private static final int FIELD_BYTES = 4;

    private final GatewayConfig config;

    private Http2ConnectionFactory(HttpConfiguration http, GatewayConfig config) {
        super(http);
        this.config = config;
        setMaxConcurrentStreams(config.get(GatewaySettings.HTTP2_MAX_STREAMS));
        setRateControlFactory(
                new WindowRateControl.Factory(
                        config.get(GatewaySettings.HTTP2_MAX_CONTROL_FRAMES)));
        setConnectProtocolEnabled(false);
    }

    /** Adds it to a port for HTTP/1.1 that is not open, where the settings say so. */
    public static void addTo(ServerConnector connector, GatewayConfig config) {
        if (config.get(GatewaySettings.HTTP2)) {
            final HttpConfiguration http =
                    new HttpConfiguration(
                            connector
                                    .getConnectionFactory(HttpConnectionFactory.class)
                                    .getHttpConfiguration());
            final int most = http.getRequestHeaderSize();
            http.setRequestHeaderSize(most + REFUSED_HEAD_BYTES);
            http.addCustomizer((request, _) -> begin(request, most));
            connector.addConnectionFactory(new Http2ConnectionFactory(http, config));
        }
    }

    /** Before a request is handled. */
    private static Request begin(Request request, int mostHeadBytes) {
        ClientStream.wrap(request);
        if (isMalformed(request.getHeaders())) {
            throw new HttpException.RuntimeException(HttpStatus.BAD_REQUEST_400);
        }
        if (headBytes(request) > mostHeadBytes) {
            throw new HttpException.RuntimeException(
                    HttpStatus.REQUEST_HEADER_FIELDS_TOO_LARGE_431);
        }
        return request;
    }

    /** What the server lets pass of what RFC 9113 (8.1.1, 8.2.2) has refused. */
    private static boolean isMalformed(HttpFields fields) {
        final String length = fields.get(HttpHeader.CONTENT_LENGTH);
        return fields.contains(HttpHeader.TRANSFER_ENCODING)
                || (length != null && length.startsWith("-"));
    }

    /** Bytes of a head as it would be in HTTP/1.1, with its whole URI. */
    private static int headBytes(Request request) {
        int bytes = request.getMethod().length() + request.getHttpURI().asString().length();
        for (HttpField field : request.getHeaders()) {
            bytes += field.getName().length() + field.getValue().length() + FIELD_BYTES;
        }
        return bytes;
    }

    @Override
    public Connection upgradeConnection(
            Connector connector,
            EndPoint endPoint,
            MetaData.Request request,
            HttpFields.Mutable response101) {
        return HttpMethod.PRI.is(request.getMethod())
                ? super.upgradeConnection(connector, endPoint, request, response101)
                : null;
    }

    /** Asks the clients of all connections to send new requests elsewhere. */
    public static void goAway(ServerConnector connector) {
        final Http2ConnectionFactory factory =
                connector.getConnectionFactory(Http2ConnectionFactory.class);
        if (factory != null) {
            factory.getBean(SessionContainer.class).getSessions().forEach(factory::goAway);
        }
    }

    private void goAway(Session session) {
        waitForAnswers(session);
        var _ = session.shutdown();
    }

    /**
     * Has a connection that takes no new requests wait for the answers under way, however silent
     * they are: otherwise the server ends it, and them, at the idle limit of clients.
     */
    private void waitForAnswers(Session session) {
        ((HTTP2Session) session)
                .getEndPoint()
                .setIdleTimeout(config.get(GatewaySettings.ANSWER_TIMEOUT).toMillis());
    }

    @Override
    protected ServerSessionListener newSessionListener(Connector connector, EndPoint endPoint) {
        return new ClientSession(endPoint);
    }

    /** What closes a connection of HTTP/2 where it is idle; null if it is none. */
    static IdleConnection idleConnection(Connection connection) {
        return connection instanceof ConnectionMetaData data
                ? (IdleConnection) data.getAttribute(SESSION)
                : null;
    }

    /**
     * Asks the client of one connection to send new requests elsewhere.
     *
     * @return false if it is not HTTP/2
     */
    public static boolean goAway(Request request) {
        final ConnectionMetaData data = request.getConnectionMetaData();
        if (!(data.getConnection() instanceof HTTP2Connection connection)) {
            return false;
        }
        data.getConnector()
                .getConnectionFactory(Http2ConnectionFactory.class)
                .goAway(connection.getSession());
        return true;
    }

    /** One connection, which is idle where it has no stream. */
    private final class ClientSession extends HTTPServerSessionListener implements IdleConnection {
        private volatile HTTP2Session session;
        private volatile long sinceNs = IdleConnection.nowNs(); // end of the last stream
        private volatile boolean sentAway;

        ClientSession(EndPoint endPoint) {
            super(endPoint);
        }

        @Override
        public void onAccept(Session accepted) {
            session = (HTTP2Session) accepted;
            final Connection connection = session.getEndPoint().getConnection();
            ((ConnectionMetaData) connection).setAttribute(SESSION, this);
        }

        /** Before the session counts one stream less. */
        @Override
        public void onClosed(Stream stream) {
            sinceNs = IdleConnection.nowNs();
        }

        @Override
        public void onGoAway(Session of, GoAwayFrame frame) {
            waitForAnswers(of);
            super.onGoAway(of, frame);
        }

        /**
         * A client that has ended its connection is not there any more. Where it has said GOAWAY
         * before, the server goes on with all requests that have come whole.
         */
        @Override
        public void onFailure(Session of, Throwable failure, Callback callback) {
            if (((HTTP2Session) of).getEndPoint().isInputShutdown()) {
                final FailureFrame end =
                        new FailureFrame(ErrorCode.NO_ERROR.code, "input_shutdown", failure);
                for (Stream stream : of.getStreams()) {
                    ((HTTP2Stream) stream).process(end, Callback.NOOP);
                }
            }
            super.onFailure(of, failure, callback);
        }

        @Override
        public long idleSinceNs() {
            return session.getStreamCount() == 0 ? sinceNs : 0;
        }

        /**
         * Asks the client to close it, and closes it if the client has not when it has been idle
         * for long again: a request that was on its way is answered.
         */
        @Override
        public void closeIfIdle() {
            if (session.getStreamCount() > 0) {
                return;
            }
            if (sentAway) {
                session.disconnect();
            } else {
                sentAway = true;
                sinceNs = IdleConnection.nowNs();
                goAway(session);
            }
        }
    }
}
