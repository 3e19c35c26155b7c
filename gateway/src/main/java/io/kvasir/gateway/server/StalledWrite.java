package io.kvasir.gateway.server;

import org.eclipse.jetty.http2.HTTP2Connection;
import org.eclipse.jetty.http2.HTTP2Stream;
import org.eclipse.jetty.io.Connection;
import org.eclipse.jetty.io.IdleTimeout;
import org.eclipse.jetty.server.Request;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Predicate;

/**
 * Says whose silence an idle connection is: the client's where bytes have waited for it throughout
 * the port's idle limit, else the worker's. A write that has only just begun is no sign: answers
 * come at the moment of an expiry as at any other. The server fails a write that an expiry meets
 * and asks afterwards, so the idle time begins anew with each write. Written by one thread at a
 * time, tested by any.
 */
public final class StalledWrite implements Predicate<TimeoutException> {
    private static final long NONE = Long.MIN_VALUE;

    private final long limitNs;
    private final Runnable notIdle;
    private volatile long sinceNs = NONE;

    private StalledWrite(long limitNs, Runnable notIdle) {
        this.limitNs = limitNs;
        this.notIdle = notIdle;
    }

    /** Decides about a request's idle timeouts from now on. */
    public static StalledWrite of(Request request) {
        final StalledWrite stalled =
                new StalledWrite(
                        TimeUnit.MILLISECONDS.toNanos(
                                request.getConnectionMetaData().getConnector().getIdleTimeout()),
                        idleClock(request));
        request.addIdleTimeoutListener(stalled);
        return stalled;
    }

    /** What has the idle time of a request's stream begin anew, of HTTP/1.1 its connection's. */
    private static Runnable idleClock(Request request) {
        final Connection connection = request.getConnectionMetaData().getConnection();
        if (connection instanceof HTTP2Connection http2) {
            final HTTP2Stream stream =
                    http2.getSession().getStream(Integer.parseInt(request.getId()));
            return stream == null ? () -> {} : stream::notIdle; // null: it has ended
        }
        return connection.getEndPoint() instanceof IdleTimeout endPoint
                ? endPoint::notIdle
                : () -> {};
    }

    /** A write begins, or has ended. */
    public void writing(boolean underWay) {
        if (underWay) {
            notIdle.run();
        }
        sinceNs = underWay ? System.nanoTime() : NONE;
    }

    @Override
    public boolean test(TimeoutException timeout) {
        final long beganNs = sinceNs;
        return beganNs != NONE && System.nanoTime() - beganNs >= limitNs;
    }
}
