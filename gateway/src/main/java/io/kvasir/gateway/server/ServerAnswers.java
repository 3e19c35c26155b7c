package io.kvasir.gateway.server;

import io.kvasir.gateway.openai.ApiException;

import org.eclipse.jetty.http.HttpHeader;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.server.Response;
import org.eclipse.jetty.server.handler.ErrorHandler;

/** What is known of answers that the server makes itself, by its error handler, and only there. */
public final class ServerAnswers {
    private static final String RESPONSE = ServerAnswers.class.getName() + ".response";
    private static final String BEGAN = ServerAnswers.class.getName() + ".began";

    private ServerAnswers() {}

    /**
     * Keeps it for the access log.
     *
     * @param request as the error handler gets it
     * @param response that it writes to, which is not the request's own
     */
    public static void keep(Request request, Response response) {
        request.setAttribute(RESPONSE, response);
        if (request.getAttribute(ErrorHandler.ERROR_EXCEPTION) instanceof EndedHead head) {
            request.setAttribute(BEGAN, head.beganNs);
        }
    }

    /**
     * The status that the server has for one, whose connection ends with it: where the next request
     * on it begins may not be known. A client of HTTP/1.1 keeps a connection that is not said to.
     *
     * @param response that gets the word for it
     */
    public static int lastOfConnection(Request request, Response response) {
        response.getHeaders().put(HttpHeader.CONNECTION, "close");
        return request.getAttribute(ErrorHandler.ERROR_STATUS) instanceof Integer status
                ? status
                : response.getStatus();
    }

    /** 408: the head was late. */
    public static ApiException lateHead() {
        return EndedHead.lateAnswer();
    }

    /** When a request began: its head had come, or its first byte where the head never did. */
    static long beganNs(Request request) {
        return request.getAttribute(BEGAN) instanceof Long began
                ? began
                : request.getHeadersNanoTime();
    }

    /** Bytes of the body that was written, by the server or to the request's own response. */
    static long bytesWritten(Request request, Response response) {
        return Response.getContentBytesWritten(
                request.getAttribute(RESPONSE) instanceof Response apart ? apart : response);
    }
}
