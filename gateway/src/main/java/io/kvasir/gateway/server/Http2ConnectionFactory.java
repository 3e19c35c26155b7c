package io.kvasir.gateway.server;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;

import org.eclipse.jetty.http.HttpFields;
import org.eclipse.jetty.http.HttpMethod;
import org.eclipse.jetty.http.MetaData;
import org.eclipse.jetty.http2.HTTP2Connection;
import org.eclipse.jetty.http2.HTTP2Session;
import org.eclipse.jetty.http2.SessionContainer;
import org.eclipse.jetty.http2.api.Session;
import org.eclipse.jetty.http2.api.server.ServerSessionListener;
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

/**
 * HTTP/2 on a port for HTTP/1.1, for clients that speak it from the first byte on. A connection of
 * HTTP/1.1 is not upgraded: a proxy that passes {@code Upgrade} on would from then on pass requests
 * on that it does not see, without what it checks and sets.
 */
public final class Http2ConnectionFactory extends HTTP2CServerConnectionFactory {
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
            connector.addConnectionFactory(
                    new Http2ConnectionFactory(
                            connector
                                    .getConnectionFactory(HttpConnectionFactory.class)
                                    .getHttpConfiguration(),
                            config));
        }
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
        return new HTTPServerSessionListener(endPoint) {
            @Override
            public void onGoAway(Session session, GoAwayFrame frame) {
                waitForAnswers(session);
                super.onGoAway(session, frame);
            }
        };
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
}
