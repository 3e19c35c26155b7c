package io.kvasir.gateway;

import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.gateway.log.RequestRecord;
import io.kvasir.gateway.openai.ApiException;
import io.kvasir.gateway.openai.Json;
import io.kvasir.gateway.server.ConnectionCap;
import io.kvasir.gateway.server.Http2ConnectionFactory;
import io.kvasir.gateway.server.Paths;
import io.kvasir.gateway.server.RequestRecords;
import io.kvasir.gateway.server.Responses;

import org.eclipse.jetty.http.HttpField;
import org.eclipse.jetty.http.HttpHeader;
import org.eclipse.jetty.http.HttpHeaderValue;
import org.eclipse.jetty.http.HttpVersion;
import org.eclipse.jetty.server.Handler;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.server.Response;
import org.eclipse.jetty.server.internal.ResponseHttpFields.PersistentPreEncodedHttpField;
import org.eclipse.jetty.util.Callback;

import java.util.concurrent.Executor;

/**
 * Outermost handler of a port. Answers {@code /live}, {@code /ready} and, where no handler below
 * does, {@code /health} on the I/O thread that read the request, without locks and waiting, so that
 * these answers come whatever the load is. All other requests go to the handler below on an
 * executor, where they may block. Every answer gets the request's id.
 */
final class StatusHandler extends Handler.Wrapper {
    static final String LIVE = "/live";
    static final String READY = "/ready";
    static final String HEALTH = "/health";

    private static final String METHODS = "GET, HEAD";

    /** Stays where an error takes the place of what an answer would have been. */
    private static final HttpField LAST =
            new PersistentPreEncodedHttpField(
                    HttpHeader.CONNECTION, HttpHeaderValue.CLOSE.asString());

    private final Readiness readiness;
    private final boolean answersHealth;
    private final ConnectionCap cap;
    private final Executor executor;

    /**
     * @param answersHealth whether {@code /health} is answered here, by status alone
     * @param cap of the port's connections
     */
    StatusHandler(
            Readiness readiness,
            boolean answersHealth,
            ConnectionCap cap,
            Executor executor,
            Handler below) {
        super(below);
        this.readiness = readiness;
        this.answersHealth = answersHealth;
        this.cap = cap;
        this.executor = executor;
    }

    @Override
    public InvocationType getInvocationType() {
        return InvocationType.NON_BLOCKING;
    }

    @Override
    public boolean handle(Request request, Response response, Callback callback) {
        response.getHeaders().put(RequestRecord.HEADER, RequestRecords.of(request).id());
        final Readiness.State state =
                switch (Request.getPathInContext(request)) {
                    case LIVE -> Readiness.State.LIVE;
                    case READY -> readiness.ready();
                    case HEALTH -> answersHealth ? readiness.health() : null;
                    default -> null;
                };
        if (readiness.draining()
                ? !Http2ConnectionFactory.goAway(request)
                : cap.isFull() && isOfOneRequest(request)) {
            response.getHeaders().put(LAST);
        }
        if (state == null) {
            executor.execute(() -> below(request, response, callback));
        } else {
            answer(state, request, response, callback);
        }
        return true;
    }

    /** Connections of HTTP/2 have many requests, and are few. */
    private static boolean isOfOneRequest(Request request) {
        return request.getConnectionMetaData().getHttpVersion() != HttpVersion.HTTP_2;
    }

    private static void answer(
            Readiness.State state, Request request, Response response, Callback callback) {
        final String method = request.getMethod();
        if (method.equals("OPTIONS")) {
            Responses.options(response, callback, METHODS);
            return;
        }
        if (!method.equals("GET") && !method.equals("HEAD")) {
            final ApiException error =
                    Paths.wrongMethod(Request.getPathInContext(request), METHODS, method);
            Responses.error(response, callback, error, RequestRecords.of(request).id());
            return;
        }
        final ObjectNode page = Json.MAPPER.createObjectNode();
        page.put("status", state.text());
        Responses.json(response, callback, state.good() ? 200 : 503, page);
    }

    private void below(Request request, Response response, Callback callback) {
        try {
            if (!getHandler().handle(request, response, callback)) {
                Response.writeError(request, response, callback, 404);
            }
        } catch (Throwable failure) { // on an executor nothing else would answer
            Response.writeError(request, response, callback, failure);
        }
    }
}
