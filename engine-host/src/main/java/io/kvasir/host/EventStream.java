package io.kvasir.host;

import org.eclipse.jetty.http.HttpHeader;
import org.eclipse.jetty.io.Content;
import org.eclipse.jetty.server.Response;

import java.io.IOException;
import java.io.OutputStream;

/**
 * The body of a stream of events, whose head goes out with the first byte. One thread at a time.
 */
final class EventStream extends OutputStream {
    private final Response response;
    private OutputStream body; // null before the first byte

    EventStream(Response response) {
        this.response = response;
    }

    /** Whether the head is on its way: the status cannot change any more. */
    boolean hasBegun() {
        return body != null;
    }

    private OutputStream body() {
        if (body == null) {
            response.getHeaders().put(HttpHeader.CONTENT_TYPE, "text/event-stream; charset=utf-8");
            response.getHeaders().put(HttpHeader.CACHE_CONTROL, "no-cache");
            body = Content.Sink.asOutputStream(response);
        }
        return body;
    }

    @Override
    public void write(int b) throws IOException {
        body().write(b);
    }

    @Override
    public void write(byte[] bytes, int offset, int length) throws IOException {
        body().write(bytes, offset, length);
    }

    @Override
    public void flush() throws IOException {
        body().flush();
    }

    @Override
    public void close() throws IOException {
        body().close();
    }
}
