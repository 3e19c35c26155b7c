package io.kvasir.gateway.upstream;

import org.eclipse.jetty.client.Destination;
import org.eclipse.jetty.client.transport.HttpChannel;
import org.eclipse.jetty.client.transport.HttpExchange;
import org.eclipse.jetty.http2.HTTP2Connection;
import org.eclipse.jetty.http2.api.Session;
import org.eclipse.jetty.http2.client.transport.internal.HttpChannelOverHTTP2;
import org.eclipse.jetty.http2.client.transport.internal.HttpConnectionOverHTTP2;
import org.eclipse.jetty.util.Callback;

import java.util.Iterator;

/**
 * A connection of HTTP/2 to a worker. Jetty's, but that an answer is whole once its last frame has
 * come (RFC 9113 §5.1): where the worker ends the connection then, it is read to its end before the
 * session ends, while Jetty 12.1.14 aborts what has not been read.
 */
final class Http2WorkerConnection extends HttpConnectionOverHTTP2 {
    private Callback endOfSession; // once nothing is left to be read; guarded by this

    Http2WorkerConnection(Destination worker, Session session, HTTP2Connection frames) {
        super(worker, session, frames);
    }

    /**
     * Nothing comes any more: no further request is sent, and what waits for frames is failed.
     *
     * @param end what is to be done once the answers that have come are read
     */
    void lost(Throwable failure, Callback end) {
        upwardClose();
        for (Iterator<HttpChannel> all = getHttpChannels(); all.hasNext(); ) {
            final HttpChannel channel = all.next();
            final HttpExchange exchange = channel.getHttpExchange();
            if (exchange != null && !channel.isLastDataReceived()) {
                var _ = exchange.getRequest().abort(failure); // it ends by itself
            }
        }
        synchronized (this) {
            endOfSession = end;
        }
        endIfIdle();
    }

    @Override
    protected HttpChannelOverHTTP2 newHttpChannel() {
        return new Http2WorkerChannel(this, getSession());
    }

    @Override
    protected void release(HttpChannelOverHTTP2 channel) {
        super.release(channel);
        endIfIdle();
    }

    private void endIfIdle() {
        final Callback end;
        synchronized (this) {
            if (endOfSession == null || getHttpChannels().hasNext()) {
                return;
            }
            end = endOfSession;
            endOfSession = null;
        }
        end.succeeded();
    }
}
