package io.kvasir.gateway.server;

import org.eclipse.jetty.server.Request;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Predicate;

/**
 * Says whose silence an idle connection is: the client's where bytes have waited for it throughout
 * the port's idle limit, else the worker's. A write that has only just begun is no sign: answers
 * come at the moment of an expiry as at any other. Written by one thread at a time, tested by any.
 */
public final class StalledWrite implements Predicate<TimeoutException> {
    private static final long NONE = Long.MIN_VALUE;

    private final long limitNs;
    private volatile long sinceNs = NONE;

    private StalledWrite(long limitNs) {
        this.limitNs = limitNs;
    }

    /** Decides about a request's idle timeouts from now on. */
    public static StalledWrite of(Request request) {
        final StalledWrite stalled =
                new StalledWrite(
                        TimeUnit.MILLISECONDS.toNanos(
                                request.getConnectionMetaData().getConnector().getIdleTimeout()));
        request.addIdleTimeoutListener(stalled);
        return stalled;
    }

    /** A write begins, or has ended. */
    public void writing(boolean underWay) {
        sinceNs = underWay ? System.nanoTime() : NONE;
    }

    @Override
    public boolean test(TimeoutException timeout) {
        final long beganNs = sinceNs;
        return beganNs != NONE && System.nanoTime() - beganNs >= limitNs;
    }
}
