package io.kvasir.gateway.upstream;

import org.eclipse.jetty.http2.BufferingFlowControlStrategy;
import org.eclipse.jetty.http2.HTTP2Stream;
import org.eclipse.jetty.http2.api.Session;
import org.eclipse.jetty.http2.api.Stream;

/**
 * Flow control that opens no window of a stream whose last frame has come. There is nothing to be
 * let in, and Jetty 12.1.14 ends a stream for which it cannot write: what had come and was not yet
 * read would be lost.
 */
final class CompleteStreams extends BufferingFlowControlStrategy {
    private static final float HALF = 0.5F; // of a window consumed before it is opened again

    CompleteStreams() {
        super(HALF);
    }

    @Override
    public void onDataConsumed(Session session, Stream stream, int length) {
        final boolean complete = stream instanceof HTTP2Stream s && s.isLastDataReceived();
        super.onDataConsumed(session, complete ? null : stream, length);
    }
}
