package io.kvasir.gateway.upstream;

import org.eclipse.jetty.client.transport.HttpClientConnectionFactory;
import org.eclipse.jetty.client.transport.internal.HttpChannelOverHTTP;
import org.eclipse.jetty.client.transport.internal.HttpConnectionOverHTTP;
import org.eclipse.jetty.client.transport.internal.HttpReceiverOverHTTP;
import org.eclipse.jetty.io.ClientConnectionFactory;
import org.eclipse.jetty.io.Connection;
import org.eclipse.jetty.io.EndPoint;

import java.util.List;
import java.util.Map;

/**
 * Connections of HTTP/1.1 to workers. Jetty's, but that one is closed where bytes behind a complete
 * answer are no HTTP. Jetty 12.1.14 keeps it if they are read while the answer's request is still
 * being sent, or not yet known to be sent; what is sent over it next has no answer then, as its
 * parser ignores all that comes.
 */
final class Http1WorkerConnections extends HttpClientConnectionFactory {
    /** What a transport of several protocols has to know of it. */
    static final ClientConnectionFactory.Info INFO = new Protocol();

    @Override
    public Connection newConnection(EndPoint endPoint, Map<String, Object> context) {
        final HttpConnectionOverHTTP connection = new Http1Connection(endPoint, context);
        connection.setInitialize(isInitializeConnections());
        connection.setTransferEncodingChunkMaxLength(getTransferEncodingChunkMaxLength());
        return customize(connection, context);
    }

    private static final class Http1Connection extends HttpConnectionOverHTTP {
        Http1Connection(EndPoint endPoint, Map<String, Object> context) {
            super(endPoint, context);
        }

        @Override
        protected void close(Throwable failure) {
            super.close(failure); // visible to the receiver
        }

        @Override
        protected HttpChannelOverHTTP newHttpChannel() {
            return new HttpChannelOverHTTP(this) {
                @Override
                protected HttpReceiverOverHTTP newHttpReceiver() {
                    return new Receiver(this, Http1Connection.this);
                }
            };
        }
    }

    private static final class Receiver extends HttpReceiverOverHTTP {
        private final Http1Connection connection;

        Receiver(HttpChannelOverHTTP channel, Http1Connection connection) {
            super(channel);
            this.connection = connection;
        }

        @Override
        public void failAndClose(Throwable failure) {
            super.failAndClose(failure);
            connection.close(failure); // above it is left open where the answer was complete
        }
    }

    private static final class Protocol extends ClientConnectionFactory.Info {
        Protocol() {
            super(new Http1WorkerConnections());
        }

        @Override
        public List<String> getProtocols(boolean secure) {
            return UpstreamTransport.HTTP11;
        }
    }
}
