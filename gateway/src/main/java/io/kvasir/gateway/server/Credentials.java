package io.kvasir.gateway.server;

import io.kvasir.gateway.openai.ApiException;

import org.eclipse.jetty.http.HttpHeader;
import org.eclipse.jetty.server.Request;

/** The header by which a client says what it may do. */
public final class Credentials {
    private Credentials() {}

    /**
     * Checks that there is one at most: what is looked at is what is passed on.
     *
     * @throws ApiException 400
     */
    public static void check(Request request) throws ApiException {
        if (request.getHeaders().getFields(HttpHeader.AUTHORIZATION).size() > 1) {
            throw ApiException.invalid(null, "there is more than one Authorization header");
        }
    }
}
