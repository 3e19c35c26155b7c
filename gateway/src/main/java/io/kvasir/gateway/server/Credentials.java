package io.kvasir.gateway.server;

import io.kvasir.gateway.openai.ApiException;

import org.eclipse.jetty.http.HttpHeader;
import org.eclipse.jetty.server.Request;

import java.util.regex.Pattern;

/** The header by which a client says what it may do. */
public final class Credentials {
    /**
     * A bearer token behind another credential, or with more than a token behind it. Of a list with
     * commas each element counts.
     */
    private static final Pattern SEVERAL =
            Pattern.compile(
                    "[^ \\t,][ \\t]+bearer[ \\t]+[^ \\t,]"
                            + "|(?:^|,)[ \\t]*bearer[ \\t]+[^ \\t,]+[ \\t]+[^ \\t,]",
                    Pattern.CASE_INSENSITIVE);

    private Credentials() {}

    /**
     * Checks that there is one at most: what is looked at is what is passed on. Of a list with
     * commas, which proxies make of several headers, the elements can be looked at.
     *
     * @throws ApiException 400
     */
    public static void check(Request request) throws ApiException {
        if (request.getHeaders().getFields(HttpHeader.AUTHORIZATION).size() > 1) {
            throw ApiException.invalid(null, "there is more than one Authorization header");
        }
        final String value = request.getHeaders().get(HttpHeader.AUTHORIZATION);
        if (value != null && SEVERAL.matcher(value).find()) {
            throw ApiException.invalid(
                    null,
                    "the Authorization header has more than one credential, without a comma"
                            + " between; a token has no blanks");
        }
    }
}
