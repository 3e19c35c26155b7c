package io.kvasir.gateway;

import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.server.RequestLog;
import org.eclipse.jetty.server.Response;

/**
 * Is called by the server at the end of each request, also of those that it answered itself: counts
 * the answer unless that was done before its last byte, and has it written into the access log.
 */
final class CompletedRequests implements RequestLog {
    private final GatewayMetrics metrics;
    private final AccessLog accessLog;

    /**
     * @param accessLog null for none
     */
    CompletedRequests(GatewayMetrics metrics, AccessLog accessLog) {
        this.metrics = metrics;
        this.accessLog = accessLog;
    }

    @Override
    public void log(Request request, Response response) {
        final RequestRecord record = RequestRecord.of(request);
        var _ = record.count(metrics, response.getStatus());
        if (accessLog != null) {
            accessLog.add(AccessEntry.of(record, request, response));
        }
    }
}
