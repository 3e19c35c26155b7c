package io.kvasir.gateway.server;

import io.kvasir.gateway.log.RequestRecord;
import io.kvasir.gateway.openai.Endpoint;

import org.eclipse.jetty.http.HttpField;
import org.eclipse.jetty.http.HttpFields;
import org.eclipse.jetty.http.HttpStatus;
import org.eclipse.jetty.server.Request;

import java.util.HexFormat;
import java.util.concurrent.ThreadLocalRandom;

/** The {@link RequestRecord} that goes with each request of a port. */
public final class RequestRecords {
    private static final String ATTRIBUTE = RequestRecord.class.getName();
    private static final int MAX_ID_LENGTH = 128;

    private RequestRecords() {}

    /** The record of a request; made when it is asked for first. */
    public static RequestRecord of(Request request) {
        if (request.getAttribute(ATTRIBUTE) instanceof RequestRecord known) {
            return known;
        }
        final String given = givenId(request.getHeaders());
        final RequestRecord made =
                new RequestRecord(
                        given == null ? newId() : given,
                        Endpoint.of(Request.getPathInContext(request)));
        request.setAttribute(ATTRIBUTE, made);
        return made;
    }

    /**
     * What a request has come to that breaks off: where the server ends, it and not the client has
     * broken it off, and may still get an error answer to the client.
     *
     * @return {@link RequestRecord#CLIENT_LEFT} or 503
     */
    public static int statusOfBrokenOff(Request request) {
        return request.getConnectionMetaData().getConnector().getServer().isRunning()
                ? RequestRecord.CLIENT_LEFT
                : HttpStatus.SERVICE_UNAVAILABLE_503;
    }

    /** The client's id; null for none, several, or one that does not belong into logs. */
    private static String givenId(HttpFields headers) {
        HttpField found = null;
        for (HttpField field : headers) {
            if (field.is(RequestRecord.HEADER)) {
                if (found != null) {
                    return null;
                }
                found = field;
            }
        }
        return found != null && isUsable(found.getValue()) ? found.getValue() : null;
    }

    /** Whether a text can be an id: visible ASCII, not too long. */
    private static boolean isUsable(String text) {
        if (text == null || text.isEmpty() || text.length() > MAX_ID_LENGTH) {
            return false;
        }
        for (int i = 0; i < text.length(); i++) {
            if (text.charAt(i) <= ' ' || text.charAt(i) > '~') {
                return false;
            }
        }
        return true;
    }

    private static String newId() {
        return "kv-" + HexFormat.of().toHexDigits(ThreadLocalRandom.current().nextLong());
    }
}
