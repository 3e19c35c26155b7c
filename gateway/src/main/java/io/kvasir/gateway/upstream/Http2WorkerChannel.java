package io.kvasir.gateway.upstream;

import org.eclipse.jetty.client.transport.HttpReceiver;
import org.eclipse.jetty.http2.HTTP2Stream;
import org.eclipse.jetty.http2.api.Session;
import org.eclipse.jetty.http2.api.Stream;
import org.eclipse.jetty.http2.client.transport.internal.HttpChannelOverHTTP2;
import org.eclipse.jetty.http2.client.transport.internal.HttpConnectionOverHTTP2;
import org.eclipse.jetty.http2.client.transport.internal.HttpReceiverOverHTTP2;
import org.eclipse.jetty.io.Content;

import java.io.EOFException;

/**
 * One exchange at a time over HTTP/2. Jetty's, but that an answer whose stream has failed is none:
 * a stream that fails drops the frames that are not read yet, and says that it is at its end where
 * its last one was among them (Jetty 12.1.14).
 */
final class Http2WorkerChannel extends HttpChannelOverHTTP2 {
    private final Receiver receiver = new Receiver();

    Http2WorkerChannel(HttpConnectionOverHTTP2 connection, Session session) {
        super(connection, session);
    }

    @Override
    protected HttpReceiver getHttpReceiver() {
        return receiver;
    }

    @Override
    public void setStream(Stream stream) {
        super.setStream(stream);
        if (stream != null) {
            ((HTTP2Stream) stream).setAttachment(receiver);
        }
    }

    @Override
    public boolean isFailed() {
        return super.isFailed() || receiver.isFailed();
    }

    private final class Receiver extends HttpReceiverOverHTTP2 {
        Receiver() {
            super(Http2WorkerChannel.this);
        }

        @Override
        public Content.Chunk read(boolean fillInterestIfNeeded) {
            final HTTP2Stream stream = (HTTP2Stream) getStream(); // its end takes it away
            final Content.Chunk chunk = super.read(fillInterestIfNeeded);
            return chunk != null
                            && chunk.isLast()
                            && !Content.Chunk.isFailure(chunk)
                            && stream != null
                            && hasDropped(stream)
                    ? Content.Chunk.from(new EOFException("frames of the answer were dropped"))
                    : chunk;
        }

        /**
         * One whose last frame was read has ended, and fails no more; a worker that resets one
         * after its answer takes nothing of that back; one that is reset from here was aborted.
         */
        private static boolean hasDropped(HTTP2Stream stream) {
            return stream.isResetOrFailed() && !stream.isReset();
        }
    }
}
