package io.kvasir.gateway;

import org.eclipse.jetty.client.ByteBufferRequestContent;
import org.eclipse.jetty.client.Request;
import org.eclipse.jetty.client.Response;
import org.eclipse.jetty.client.Result;
import org.eclipse.jetty.http.HttpFields;
import org.eclipse.jetty.http.HttpHeader;
import org.eclipse.jetty.http.HttpStatus;
import org.eclipse.jetty.io.Content;

import java.net.ProtocolException;
import java.nio.ByteBuffer;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;

/**
 * One request to one worker: sent once, with the outcome reported as it comes. Knows neither what
 * the answer is for nor whether another attempt follows.
 *
 * <p>The outcome is {@link Failed}, or {@link Answered} and, where the answer breaks off, {@link
 * Broken} after it. Outcomes are reported on I/O threads, one at a time.
 */
final class UpstreamAttempt {
    /** What came of it. */
    sealed interface Outcome {}

    /** The head of an answer. Its content must be read to the end, or the attempt aborted. */
    record Answered(Response head, Content.Source content) implements Outcome {}

    /** Reading the content of the answer gives a failure from now on. */
    record Broken() implements Outcome {}

    /**
     * There is no answer.
     *
     * @param stale the worker had closed the connection before the request came
     */
    record Failed(UpstreamFault fault, String cause, boolean stale) implements Outcome {}

    private final ProxyContext context;
    private final Upstream upstream;
    private final Consumer<Outcome> listener;
    private volatile Request sent;
    private volatile boolean answered;

    UpstreamAttempt(ProxyContext context, Upstream upstream, Consumer<Outcome> listener) {
        this.context = context;
        this.upstream = upstream;
        this.listener = listener;
    }

    /**
     * Sends it.
     *
     * @param pathAndQuery below the path of the worker's URL
     * @param headers of the request to the worker
     * @param body not copied, and not moved
     */
    void send(String pathAndQuery, HttpFields headers, ByteBuffer body) {
        final String contentType = headers.get(HttpHeader.CONTENT_TYPE);
        final Request request =
                context.client()
                        .newRequest(upstream.url())
                        .path(upstream.path(pathAndQuery))
                        .method("POST")
                        .idleTimeout(
                                context.config()
                                        .get(GatewaySettings.UPSTREAM_IDLE_TIMEOUT)
                                        .toMillis(),
                                TimeUnit.MILLISECONDS)
                        .headers(all -> all.add(headers))
                        .body(
                                new ByteBufferRequestContent(
                                        contentType == null ? "application/json" : contentType,
                                        body.duplicate()))
                        .onResponseContentSource(this::answered);
        sent = request;
        request.send(this::ended);
    }

    private void answered(Response head, Content.Source content) {
        if (HttpStatus.isInformational(head.getStatus())) {
            abort(new ProtocolException("status " + head.getStatus() + " was not asked for"));
            return;
        }
        answered = true;
        context.answered().add(head.getRequest());
        listener.accept(new Answered(head, content));
    }

    private void ended(Result result) {
        if (result.isSucceeded()) {
            return;
        }
        if (answered) {
            listener.accept(new Broken());
            return;
        }
        final UpstreamFault fault = UpstreamFault.of(result.getFailure());
        listener.accept(
                new Failed(
                        fault,
                        UpstreamFault.describe(result.getFailure()),
                        context.answered().wasStale(sent, fault)));
    }

    /** Ends what is under way; does nothing before {@link #send} and after the answer's end. */
    void abort(Throwable cause) {
        final Request underWay = sent;
        if (underWay != null) {
            var _ = underWay.abort(cause); // false means that it is over, which is as good
        }
    }

    Upstream upstream() {
        return upstream;
    }
}
