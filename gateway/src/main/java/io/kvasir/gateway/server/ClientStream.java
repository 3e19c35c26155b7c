package io.kvasir.gateway.server;

import org.eclipse.jetty.http2.HTTP2Connection;
import org.eclipse.jetty.http2.HTTP2Session;
import org.eclipse.jetty.http2.HTTP2Stream;
import org.eclipse.jetty.server.HttpStream;
import org.eclipse.jetty.server.Request;

/**
 * A stream of HTTP/2 on which nothing more is sent once its client has reset it. The server answers
 * such a reset by one of its own, against RFC 9113 (5.4.2), and counts both as the client's control
 * frames.
 */
public final class ClientStream extends HttpStream.Wrapper {
    private static final String ATTRIBUTE = ClientStream.class.getName();

    private final HTTP2Session session;

    private ClientStream(HttpStream stream, HTTP2Session session) {
        super(stream);
        this.session = session;
    }

    /**
     * Has a request of HTTP/2 fail so; only the first call counts. It must come before all that
     * listens for the request's end, which would miss it otherwise.
     */
    public static void wrap(Request request) {
        if (request.getConnectionMetaData().getConnection() instanceof HTTP2Connection http2
                && request.getAttribute(ATTRIBUTE) == null) {
            request.setAttribute(ATTRIBUTE, true);
            request.addHttpStreamWrapper(stream -> new ClientStream(stream, http2.getSession()));
        }
    }

    @Override
    public void failed(Throwable cause) {
        final HTTP2Stream open = session.getStream(Integer.parseInt(getId()));
        if (open != null && !open.isReset()) {
            super.failed(cause);
        }
    }
}
