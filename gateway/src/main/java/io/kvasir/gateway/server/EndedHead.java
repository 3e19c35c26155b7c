package io.kvasir.gateway.server;

import io.kvasir.gateway.openai.ApiException;

import org.eclipse.jetty.http.HttpException;
import org.eclipse.jetty.http.HttpStatus;

/** The head of a request is awaited no longer: a bad message to the server, which answers it. */
final class EndedHead extends HttpException.RuntimeException {
    private static final long serialVersionUID = 1L;
    private static final String LATE = "the request's head did not arrive in time";

    final long beganNs;

    private EndedHead(int status, String message, long beganNs) {
        super(status, message);
        this.beganNs = beganNs;
    }

    /**
     * It did not arrive in time.
     *
     * @param beganNs when its first byte had come, by {@link System#nanoTime}
     */
    static EndedHead late(long beganNs) {
        return new EndedHead(HttpStatus.REQUEST_TIMEOUT_408, LATE, beganNs);
    }

    /**
     * The gateway ends.
     *
     * @param beganNs as of {@link #late}
     */
    static EndedHead cut(long beganNs) {
        return new EndedHead(
                HttpStatus.SERVICE_UNAVAILABLE_503, "the gateway is shutting down", beganNs);
    }

    /** What the client of a late one gets. */
    static ApiException lateAnswer() {
        return ApiException.client(HttpStatus.REQUEST_TIMEOUT_408, null, null, "timeout", LATE);
    }
}
