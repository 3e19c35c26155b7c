package io.kvasir.gateway.proxy;

import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.UpstreamHttp2;
import io.kvasir.gateway.upstream.FoundDeadException;
import io.kvasir.gateway.upstream.RunningAttempt;
import io.kvasir.gateway.upstream.StaleConnectionDetector;
import io.kvasir.gateway.upstream.StreamReset;
import io.kvasir.gateway.upstream.Upstream;
import io.kvasir.gateway.upstream.UpstreamFault;
import io.kvasir.gateway.upstream.UpstreamTransport;

import org.eclipse.jetty.client.ByteBufferRequestContent;
import org.eclipse.jetty.client.Request;
import org.eclipse.jetty.client.Response;
import org.eclipse.jetty.client.Result;
import org.eclipse.jetty.http.HttpFields;
import org.eclipse.jetty.http.HttpHeader;
import org.eclipse.jetty.http.HttpHeaderValue;
import org.eclipse.jetty.http.HttpStatus;
import org.eclipse.jetty.io.Content;
import org.eclipse.jetty.util.Callback;

import java.net.ProtocolException;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.time.Instant;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;

/**
 * One request to one worker: sent once, with the outcome reported as it comes. Knows neither what
 * the answer is for nor whether another attempt follows.
 *
 * <p>The outcome is {@link Failed}, or {@link Answered} and, where the answer breaks off, {@link
 * Broken} after it. Outcomes are reported on I/O threads, one at a time.
 */
final class UpstreamAttempt implements RunningAttempt {
    /** What came of it. */
    sealed interface Outcome {}

    /**
     * The head of an answer. Its content must be read to the end, or the attempt aborted.
     *
     * @param isCut whether the content that was read to its end is not whole, although nothing else
     *     says so: what the connection's end should have ended, a reset has, or it was given up
     *     before all was read
     */
    record Answered(Response head, Content.Source content, BooleanSupplier isCut)
            implements Outcome {}

    /** Reading the content of the answer gives a failure from now on. */
    record Broken() implements Outcome {}

    /**
     * There is no answer.
     *
     * @param unprocessed the worker had closed the connection before the request came, or says that
     *     it has not begun with it
     * @param sent the worker has the whole request
     */
    record Failed(UpstreamFault fault, String cause, boolean unprocessed, boolean sent)
            implements Outcome {
        /** How one that was not processed is counted. */
        String unprocessedOutcome() {
            return fault == UpstreamFault.REFUSED ? "refused" : "stale_connection";
        }
    }

    private static final String OWN_CONNECTION = "own connection";

    private final ProxyContext context;
    private final Upstream upstream;
    private final AttemptTimeout timeout;
    private final Consumer<Outcome> listener;
    private volatile Request request;
    private volatile StaleConnectionDetector.Sent connection; // null before it is known
    private volatile boolean begun; // its head is written
    private volatile boolean sent;
    private volatile boolean answered;
    private volatile HttpFields headers = HttpFields.EMPTY; // of the answer

    /**
     * @param stream whether the answer is asked for as a stream of events
     */
    UpstreamAttempt(
            ProxyContext context, Upstream upstream, boolean stream, Consumer<Outcome> listener) {
        this.context = context;
        this.upstream = upstream;
        this.timeout = new AttemptTimeout(context, stream, this::abort);
        this.listener = listener;
    }

    /**
     * Sends it.
     *
     * @param pathAndQuery below the path of the worker's URL
     * @param headers of the request to the worker
     * @param body not copied, and not moved
     * @param ownConnection sends it over a connection that nothing was sent over before: the worker
     *     cannot have closed it
     */
    void send(String pathAndQuery, HttpFields headers, ByteBuffer body, boolean ownConnection) {
        final String contentType = headers.get(HttpHeader.CONTENT_TYPE);
        final UpstreamHttp2 http2 = context.config().get(GatewaySettings.UPSTREAM_HTTP2);
        final Request prepared =
                UpstreamTransport.applyTo(context.client().newRequest(upstream.url()), http2)
                        .path(upstream.path(pathAndQuery))
                        .method("POST")
                        .idleTimeout(0, TimeUnit.MILLISECONDS) // the attempt has limits of its own
                        .headers(all -> all.add(headers))
                        .body(
                                new ByteBufferRequestContent(
                                        contentType == null ? "application/json" : contentType,
                                        body.duplicate()))
                        .onRequestBegin(over -> connection = context.staleConnections().sent(over))
                        .onRequestCommit(_ -> begun = true)
                        .onRequestSuccess(_ -> sent = true)
                        .onResponseContentSource(this::answered);
        if (ownConnection) {
            // a pool of its own, which nothing returns to; one of HTTP/2 would be shared
            prepared.tag(
                            UpstreamTransport.mayShareConnection(http2, upstream.url())
                                    ? new Object()
                                    : OWN_CONNECTION)
                    .headers(all -> all.put(HttpHeader.CONNECTION, HttpHeaderValue.CLOSE));
        }
        request = prepared;
        upstream.begun(this);
        timeout.begin();
        prepared.send(this::ended);
    }

    private void answered(Response head, Content.Source content) {
        if (HttpStatus.isInformational(head.getStatus())) {
            abort(new ProtocolException("status " + head.getStatus() + " was not asked for"));
            return;
        }
        answered = true;
        headers = head.getHeaders();
        received();
        listener.accept(new Answered(head, timeout.watch(content, this::received), this::isCut));
    }

    private boolean isCut() {
        return request.getAbortCause() != null // over HTTP/2 unread frames are dropped then
                || (!headers.contains(HttpHeader.CONTENT_LENGTH)
                        && !headers.contains(HttpHeader.TRANSFER_ENCODING)
                        && connection.wasReset());
    }

    /**
     * Waits for the end of an answer of which nothing more is needed. One that does not end soon
     * costs its connection.
     *
     * @param rest as given with {@link Answered}; read and thrown away
     */
    void awaitEnd(Content.Source rest) {
        timeout.endFollows();
        Content.Source.consumeAll(rest, Callback.NOOP);
    }

    /** When the worker says to try again; zero where it does not. */
    Duration retryAfter() {
        return RetryAfter.of(headers, Instant.now());
    }

    private void received() {
        connection.received();
        upstream.received();
    }

    private void ended(Result result) {
        timeout.destroy();
        upstream.ended(this);
        if (result.isSucceeded()) {
            return;
        }
        if (answered) {
            listener.accept(new Broken());
            return;
        }
        final UpstreamFault fault =
                begun
                        ? UpstreamFault.of(result.getFailure())
                        : UpstreamFault.ofUnwritten(result.getFailure());
        listener.accept(
                new Failed(
                        fault,
                        UpstreamFault.describe(result.getFailure()),
                        fault == UpstreamFault.REFUSED || wasStale(result.getFailure(), fault),
                        sent));
    }

    /**
     * The connection, if it was shared and has ended; null if the failure is this attempt's own.
     */
    Object lostConnection() {
        final StaleConnectionDetector.Sent over = connection;
        return over == null ? null : over.lost();
    }

    /**
     * Whether a worker that has failed so knows nothing of it: it got no connection, or says that
     * it has not begun. What a connection was taken for may have arrived whole, although it broke
     * before that was known here.
     */
    boolean isUnseen(UpstreamFault fault) {
        return connection == null || fault == UpstreamFault.REFUSED;
    }

    private boolean wasStale(Throwable failure, UpstreamFault fault) {
        final StaleConnectionDetector.Sent over = connection;
        return over != null && !StreamReset.is(failure) && over.wasStale(fault);
    }

    /** Ends what is under way; does nothing before {@link #send} and after the answer's end. */
    void abort(Throwable cause) {
        final Request underWay = request;
        if (underWay != null) {
            var _ = underWay.abort(cause); // false means that it is over, which is as good
        }
    }

    /** Ends what is under way, as there is nothing to be waited for. */
    @Override
    public void workerDied(String description) {
        abort(new FoundDeadException("the worker is silent to probes, too: " + description));
    }
}
