package io.kvasir.gateway;

import org.eclipse.jetty.http.HttpException;

import java.io.EOFException;
import java.net.ConnectException;
import java.net.NoRouteToHostException;
import java.net.ProtocolException;
import java.net.SocketTimeoutException;
import java.net.UnknownHostException;
import java.nio.channels.ClosedChannelException;
import java.nio.channels.UnresolvedAddressException;
import java.util.Locale;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeoutException;

/** How an exchange with a worker failed. */
enum UpstreamFault {
    /**
     * No connection: refused, unreachable, unknown host or the connect timeout. The worker is down.
     */
    CONNECT(502, true),
    /** Connected, but silent for longer than the idle timeout. */
    TIMEOUT(504, true),
    /** The connection ended before the answer did. */
    CLOSED(502, true),
    /** The worker answered with a 5xx. */
    STATUS(502, true),
    /** The worker refuses work for now: 429 or 503. No fault of its health. */
    BUSY(503, false),
    /** The answer breaks the protocol, e.g. an event stream without an end mark. */
    PROTOCOL(502, true),
    /** The gateway's own client refused the exchange. No fault of the worker. */
    LOCAL(503, false);

    private final int status;
    private final boolean unhealthy;

    UpstreamFault(int status, boolean unhealthy) {
        this.status = status;
        this.unhealthy = unhealthy;
    }

    /** Status for the client when no retry is left. */
    int status() {
        return status;
    }

    /** Whether it counts against the worker's health. */
    boolean unhealthy() {
        return unhealthy;
    }

    String spelling() {
        return name().toLowerCase(Locale.ROOT);
    }

    /** Sorts a failure of the HTTP client. */
    static UpstreamFault of(Throwable failure) {
        for (Throwable t = failure; t != null; t = t.getCause()) {
            if (t instanceof ConnectException
                    || t instanceof NoRouteToHostException
                    || t instanceof UnknownHostException
                    || t instanceof UnresolvedAddressException
                    || t instanceof SocketTimeoutException) {
                return CONNECT;
            }
            if (t instanceof RejectedExecutionException) {
                return LOCAL;
            }
            if (t instanceof TimeoutException) {
                return TIMEOUT;
            }
            if (t instanceof ProtocolException || t instanceof HttpException) {
                return PROTOCOL;
            }
            if (t instanceof EOFException) {
                return CLOSED;
            }
        }
        return CLOSED;
    }

    /** The shortest text that says what happened, for logs and clients. */
    static String describe(Throwable failure) {
        for (Throwable t = failure; t != null; t = t.getCause()) {
            if (t instanceof EOFException || t instanceof ClosedChannelException) {
                return "the connection was closed before the answer was complete";
            }
            if (t instanceof HttpException wrong) {
                return "the answer is not valid HTTP: " + wrong.getReason();
            }
        }
        Throwable root = failure;
        while (root.getCause() != null && root.getMessage() == null) {
            root = root.getCause();
        }
        return root.getMessage() == null ? root.getClass().getSimpleName() : root.getMessage();
    }
}
