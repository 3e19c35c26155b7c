package io.kvasir.gateway.server;

import io.kvasir.gateway.log.LogText;
import io.kvasir.gateway.log.RequestRecord;
import io.kvasir.gateway.metrics.GatewayMetrics;
import io.kvasir.gateway.openai.ApiException;

import org.eclipse.jetty.http.HttpFields;
import org.eclipse.jetty.http.HttpHeader;
import org.eclipse.jetty.http.HttpVersion;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.server.Response;
import org.eclipse.jetty.util.Callback;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.slf4j.spi.LoggingEventBuilder;

/**
 * Answers requests that failed before they were routed, and counts them: whatever it was, an {@link
 * Error} too. A client never sees what went wrong inside.
 */
public final class RequestFailures {
    private static final Logger LOG = LoggerFactory.getLogger(RequestFailures.class);

    private final GatewayMetrics metrics;

    /** Counts in these metrics. */
    public RequestFailures(GatewayMetrics metrics) {
        this.metrics = metrics;
    }

    /**
     * Answers with an error.
     *
     * @param failure an {@link ApiException} says what to answer; anything else is ours
     */
    public void answer(Request request, Response response, Callback callback, Throwable failure) {
        final RequestRecord record = RequestRecords.of(request);
        final ApiException error;
        if (failure instanceof ApiException refusal) {
            error = refusal;
        } else {
            log(record.id(), request, failure);
            error =
                    ApiException.internal(
                            "internal error; the gateway's log has request " + record.id());
        }
        var _ =
                metrics.ended(
                        record,
                        error.isOfClientThatLeft() ? RequestRecord.CLIENT_LEFT : error.status());
        response.reset();
        if (endsConnection(request)) {
            response.getHeaders().put(HttpFields.CONNECTION_CLOSE);
        }
        Responses.error(response, callback, error, record.id());
    }

    /**
     * Whether the connection ends with the answer, as there may be more of the body to come: its
     * client is to know, or sends its next request on it.
     */
    private static boolean endsConnection(Request request) {
        return request.getConnectionMetaData().getHttpVersion() != HttpVersion.HTTP_2
                && (request.getHeaders().contains(HttpHeader.EXPECT)
                        || !request.consumeAvailable());
    }

    /** An error of the machine's, such as no memory, is one line: its stack says nothing. */
    private static void log(String requestId, Request request, Throwable failure) {
        final String path = LogText.of(Request.getPathInContext(request));
        final String method = LogText.of(request.getMethod());
        final LoggingEventBuilder log = LOG.atError().addKeyValue(RequestRecord.LOG_KEY, requestId);
        if (failure instanceof VirtualMachineError) {
            log.log("{} {} {} failed: {}", requestId, method, path, LogText.of(failure.toString()));
        } else {
            log.setCause(LogText.of(failure)).log("{} {} {} failed", requestId, method, path);
        }
    }
}
