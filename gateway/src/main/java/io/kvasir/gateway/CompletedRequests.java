package io.kvasir.gateway;

import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.server.RequestLog;
import org.eclipse.jetty.server.Response;

/**
 * Is called by the server at the end of each request, also of those that it answered itself: counts
 * the answer unless that was done before its last byte.
 */
final class CompletedRequests implements RequestLog {
    private final GatewayMetrics metrics;

    CompletedRequests(GatewayMetrics metrics) {
        this.metrics = metrics;
    }

    @Override
    public void log(Request request, Response response) {
        var _ = RequestRecord.of(request).count(metrics, response.getStatus());
    }
}
