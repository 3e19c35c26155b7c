package io.kvasir.gateway.server;

import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.gateway.log.RequestRecord;
import io.kvasir.gateway.openai.ApiException;
import io.kvasir.gateway.openai.InferenceRequest;

import org.eclipse.jetty.http.HttpHeader;
import org.eclipse.jetty.http.HttpStatus;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.server.Response;
import org.eclipse.jetty.util.Callback;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

/** Writes the gateway's own responses. */
public final class Responses {
    static final String JSON = "application/json";

    private Responses() {}

    /** Answers with JSON. */
    public static void json(Response response, Callback callback, int status, JsonNode body) {
        write(response, callback, status, JSON, body.toString().getBytes(StandardCharsets.UTF_8));
    }

    /** An error in the shape of the request's API; one that may pass says when to try again. */
    public static void error(
            Response response, Callback callback, ApiException error, String requestId) {
        if (error.status() == 503 || error.status() == 429) {
            response.getHeaders().put(HttpHeader.RETRY_AFTER, "1");
        }
        if (error.header() != null) {
            response.getHeaders().put(error.header());
        }
        if (requestId != null) {
            response.getHeaders().put(RequestRecord.HEADER, requestId);
        }
        final InferenceRequest.Form form =
                InferenceRequest.Route.formOf(Request.getPathInContext(response.getRequest()));
        write(response, callback, error.status(), JSON, error.body(form, requestId));
    }

    /** Says what may be asked of a path. */
    public static void options(Response response, Callback callback, String methods) {
        response.setStatus(HttpStatus.NO_CONTENT_204);
        response.getHeaders().put(HttpHeader.ALLOW, methods + ", OPTIONS");
        callback.succeeded();
    }

    /** Answers with a body. */
    public static void write(
            Response response, Callback callback, int status, String type, byte[] body) {
        response.setStatus(status);
        response.getHeaders().put(HttpHeader.CONTENT_TYPE, type);
        response.getHeaders().put(HttpHeader.CONTENT_LENGTH, body.length);
        response.write(true, ByteBuffer.wrap(body), callback);
    }
}
