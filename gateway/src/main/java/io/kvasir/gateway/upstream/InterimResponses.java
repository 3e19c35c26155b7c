package io.kvasir.gateway.upstream;

import org.eclipse.jetty.client.Connection;
import org.eclipse.jetty.client.ProcessingProtocolHandler;
import org.eclipse.jetty.client.Request;
import org.eclipse.jetty.client.Response;
import org.eclipse.jetty.http.HttpField;
import org.eclipse.jetty.http.HttpStatus;
import org.eclipse.jetty.http2.HTTP2Session;
import org.eclipse.jetty.http2.client.transport.internal.HttpConnectionOverHTTP2;

/**
 * Skips responses of status 1xx that a worker sends before the final one: they are for the
 * connection that they come over. A 101 is none of them: nothing was offered to switch to.
 *
 * <p>Their number and the bytes of their fields are limited for each request. Jetty 12.1.14 reads
 * as long as they come, keeps something of each until none comes, and ends for no abort in between:
 * one more than allowed fails the request and closes its connection.
 */
public final class InterimResponses extends ProcessingProtocolHandler {
    /** Engines and proxies send one or two; a 102 may come every few seconds of a long prefill. */
    static final int MOST = 256;

    private static final String COUNTED = InterimResponses.class.getName();
    private static final int SEPARATORS = 4; // of a field: colon, space and the line's end

    private final int mostBytes;

    /**
     * @param mostBytes of the fields of all those before one final response
     */
    public InterimResponses(int mostBytes) {
        this.mostBytes = mostBytes;
    }

    @Override
    public String getName() {
        return "interim";
    }

    @Override
    public boolean accept(Request request, Response response) {
        return HttpStatus.isInterim(response.getStatus());
    }

    @Override
    public Response.Listener getResponseListener() {
        return new Counting(super.getResponseListener());
    }

    private void count(Response response) {
        final Request request = response.getRequest();
        final Counted before =
                request.getAttributes().get(COUNTED) instanceof Counted some ? some : Counted.NONE;
        final Counted now = before.and(response);
        request.attribute(COUNTED, now);
        if (now.count > MOST || now.bytes > mostBytes) {
            final Connection connection = request.getConnection();
            var _ = request.abort(new TooManyInterimException(MOST, mostBytes)); // ends by itself
            connection.close();
            if (connection instanceof HttpConnectionOverHTTP2 shared) {
                // else it waits for a worker that has much to send yet
                ((HTTP2Session) shared.getSession()).getEndPoint().close();
            }
        }
    }

    /** What has come for one request; its one thread at a time reads and replaces it. */
    private record Counted(int count, long bytes) {
        static final Counted NONE = new Counted(0, 0);

        Counted and(Response response) {
            long sum = bytes;
            for (HttpField field : response.getHeaders()) {
                sum += field.getName().length() + SEPARATORS;
                sum += field.getValue() == null ? 0 : field.getValue().length();
            }
            return new Counted(count + 1, sum);
        }
    }

    /** Jetty's own listener of such a response, which has no content. */
    private final class Counting implements Response.Listener {
        private final Response.Listener skipping;

        Counting(Response.Listener skipping) {
            this.skipping = skipping;
        }

        @Override
        public void onHeaders(Response response) {
            count(response);
        }

        @Override
        public void onSuccess(Response response) {
            skipping.onSuccess(response);
        }

        @Override
        public void onFailure(Response response, Throwable failure) {
            skipping.onFailure(response, failure);
        }
    }
}
