package io.kvasir.gateway.upstream;

import io.kvasir.registry.FailureText;

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

import javax.net.ssl.SSLException;
import javax.net.ssl.SSLHandshakeException;

/** How an exchange with a worker failed. */
public enum UpstreamFault {
    /** No connection: refused, unreachable, unknown host, the connect timeout or no TLS. */
    CONNECT(502),
    /** Connected, but silent for longer than the time limit. */
    TIMEOUT(504),
    /** Found dead by probes while the request was under way. */
    DEAD(504),
    /** The connection ended before the answer did. */
    CLOSED(502),
    /** The worker answered with a 5xx that is a fault. */
    STATUS(502),
    /** The worker refuses work for now: 429, 503 or 529. No fault. */
    BUSY(503),
    /** The worker has not begun with the request, and says so (HTTP/2). No fault. */
    REFUSED(503),
    /** The answer breaks the protocol, e.g. an event stream without an end mark. */
    PROTOCOL(502),
    /** The head of the answer is longer than it may be. */
    HEAD_TOO_LARGE(502),
    /** It sent more interim answers (1xx) than it may. */
    TOO_MANY_INTERIM(502),
    /** The gateway itself could not: its client is full, or the JVM has no memory for it. */
    LOCAL(503),
    /** The gateway itself could not: what it was to send cannot be written as a request. */
    UNSENDABLE(500),
    /** The gateway itself could not: it has no file descriptor left. */
    DESCRIPTORS(503),
    /** The gateway itself could not hold the answer, which it has to have whole. */
    MEMORY(503);

    /** What the HTTP client says; it has no type, and the status is the answer's own. */
    private static final String LONG_HEAD = "Response Header Bytes Too Large";

    private static final String ENDED = "the connection was closed before the answer was complete";

    private final int status;

    UpstreamFault(int status) {
        this.status = status;
    }

    /**
     * Sorts the status of an answer.
     *
     * @return null if it is no fault: the request is wrong for every worker alike (a 4xx, 501 or
     *     505) or fine
     */
    public static UpstreamFault ofStatus(int status) {
        return switch (status) {
            case 429, 503, 529 -> BUSY;
            case 501, 505 -> null;
            default -> status >= 500 ? STATUS : null;
        };
    }

    /** Status for the client when no retry is left. */
    public int status() {
        return status;
    }

    /** What clients get: the cause itself may say what is behind the gateway. */
    public String textForClient() {
        return switch (this) {
            case CONNECT -> "it cannot be reached";
            case TIMEOUT -> "it was silent for too long";
            case DEAD -> "it does not answer any more";
            case CLOSED -> ENDED;
            case STATUS -> "it answered with an error of its own";
            case BUSY -> "it has too much to do";
            case REFUSED -> "it did not take the request";
            case PROTOCOL -> "its answer is not what the protocol says";
            case HEAD_TOO_LARGE -> "the head of its answer is longer than max-head-bytes allows";
            case TOO_MANY_INTERIM ->
                    "it sent more than "
                            + InterimResponses.MOST
                            + " interim answers (1xx), or more of them than max-head-bytes allows";
            case LOCAL -> "the gateway could not send the request, or not read the answer";
            case UNSENDABLE -> "the gateway could not write the request";
            case DESCRIPTORS -> "the gateway has no file descriptor left";
            case MEMORY ->
                    "the gateway holds as many bytes of answers as max-body-bytes-in-flight allows";
        };
    }

    /** As metrics and error answers write it. */
    public String spelling() {
        return name().toLowerCase(Locale.ROOT);
    }

    /** Sorts a failure of the HTTP client. */
    public static UpstreamFault of(Throwable failure) {
        if (errorOrNull(failure) != null) {
            return LOCAL; // whatever ended with it
        }
        if (tlsFailureOrNull(failure) instanceof SSLHandshakeException) {
            return CONNECT; // below what says that the connection has ended
        }
        for (Throwable t = failure; t != null; t = t.getCause()) {
            if (Descriptors.isLack(t)
                    || (t instanceof UnknownHostException && Descriptors.areExhausted())) {
                return DESCRIPTORS; // names are not resolved without one either
            }
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
            if (StreamReset.isRefusal(t)) {
                return REFUSED;
            }
            if (t instanceof TimeoutException) {
                return TIMEOUT;
            }
            if (t instanceof TooManyInterimException) {
                return TOO_MANY_INTERIM;
            }
            if (t instanceof FoundDeadException) {
                return DEAD;
            }
            if (t instanceof HttpException wrong && LONG_HEAD.equals(wrong.getReason())) {
                return HEAD_TOO_LARGE;
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

    /**
     * Sorts a failure of the HTTP client with a request of which it had written nothing: its own
     * checks are no failure of the worker, and where TLS failed there was no connection.
     */
    public static UpstreamFault ofUnwritten(Throwable failure) {
        final UpstreamFault fault = of(failure);
        if (fault != CLOSED) {
            return fault;
        }
        if (failure instanceof IllegalArgumentException) {
            return UNSENDABLE;
        }
        return tlsFailureOrNull(failure) == null ? CLOSED : CONNECT;
    }

    /** What the JVM lacks, such as memory for the buffer of a connection: no worker is why. */
    private static Error errorOrNull(Throwable failure) {
        for (Throwable t = failure; t != null; t = t.getCause()) {
            if (t instanceof Error error) {
                return error;
            }
        }
        return null;
    }

    private static SSLException tlsFailureOrNull(Throwable failure) {
        for (Throwable t = failure; t != null; t = t.getCause()) {
            if (t instanceof SSLException tls) {
                return tls;
            }
        }
        return null;
    }

    /** Whether the gateway could not, so that nothing is known of the worker. */
    public boolean isOwn() {
        return this == LOCAL || this == UNSENDABLE || this == DESCRIPTORS || this == MEMORY;
    }

    /** What became of the worker's part. */
    public String outcome() {
        if (this == MEMORY || this == LOCAL) {
            return "was given up";
        }
        return isOwn() ? "was not asked" : "failed";
    }

    /** The shortest text that says what happened, for logs and clients. */
    public static String describe(Throwable failure) {
        final Error error = errorOrNull(failure);
        if (error != null) {
            return FailureText.of(error); // the connection's end only follows from it
        }
        final SSLException tls = tlsFailureOrNull(failure);
        if (tls != null && tls.getMessage() != null) {
            return FailureText.of(tls); // the connection's end only follows from it
        }
        for (Throwable t = failure; t != null; t = t.getCause()) {
            if (t instanceof EOFException || t instanceof ClosedChannelException) {
                return ENDED;
            }
            final String ended = Http2End.errorOrNull(t);
            if (ended != null) {
                return ENDED + ended;
            }
            if (StreamReset.is(t)) {
                return "the stream was reset: " + t.getMessage();
            }
            if (t instanceof HttpException wrong) {
                return "the answer is not valid HTTP: " + wrong.getReason();
            }
        }
        return FailureText.of(failure);
    }
}
