package io.kvasir.gateway.server;

import io.kvasir.gateway.log.AccessEntry;
import io.kvasir.gateway.log.AccessLogs;
import io.kvasir.gateway.log.RequestRecord;
import io.kvasir.gateway.metrics.GatewayMetrics;

import org.eclipse.jetty.http.HttpMethod;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.server.RequestLog;
import org.eclipse.jetty.server.Response;

import java.util.concurrent.TimeUnit;

/**
 * Is called by the server at the end of each request, also of those that it answered itself: counts
 * the answer unless that was done before its last byte, and has it written into the access log.
 */
public final class CompletedRequests implements RequestLog {
    private final GatewayMetrics metrics;
    private final AccessLogs accessLogs;

    /** Counts and writes what has ended. */
    public CompletedRequests(GatewayMetrics metrics, AccessLogs accessLogs) {
        this.metrics = metrics;
        this.accessLogs = accessLogs;
    }

    @Override
    public void log(Request request, Response response) {
        final RequestRecord record = RequestRecords.of(request);
        var _ = metrics.ended(record, response.getStatus());
        if (accessLogs.isOn()) {
            accessLogs.add(entry(record, request, response));
        }
    }

    private static AccessEntry entry(RequestRecord record, Request request, Response response) {
        final long beganNs = ServerAnswers.beganNs(request);
        final long durationNs = System.nanoTime() - beganNs;
        final HttpMethod method = HttpMethod.fromString(request.getMethod());
        return new AccessEntry(
                Request.getTimeStamp(request)
                        - TimeUnit.NANOSECONDS.toMillis(request.getHeadersNanoTime() - beganNs),
                Request.getRemoteAddr(request),
                method == null ? "-" : method.asString(),
                request.getConnectionMetaData().getProtocol(),
                record,
                record.status(),
                ServerAnswers.bytesWritten(request, response),
                record.firstByteNs() < 0 ? durationNs : record.firstByteNs(),
                durationNs);
    }
}
