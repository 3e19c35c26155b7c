package io.kvasir.gateway.server;

import io.kvasir.gateway.openai.ApiException;

import org.eclipse.jetty.server.Request;

/** The part of a request's URI behind the question mark. */
public final class Queries {
    private Queries() {}

    /**
     * Checks that a query can be decoded and that a request line can carry it as it is: over HTTP/2
     * it may come with blanks, which would end a line's URI.
     *
     * @throws ApiException 400
     */
    public static void check(Request request) throws ApiException {
        final String query = request.getHttpURI().getQuery();
        if (query == null) {
            return;
        }
        for (int i = 0; i < query.length(); i++) {
            final char c = query.charAt(i);
            if (c <= ' ' || c > '~') {
                throw ApiException.invalid(
                        null, "the query has a character that must be encoded, at " + i);
            }
        }
        try {
            var _ = Request.extractQueryParameters(request);
        } catch (RuntimeException e) { // of several kinds, by what is wrong
            throw ApiException.invalid(null, "the query cannot be decoded: " + e.getMessage());
        }
    }
}
