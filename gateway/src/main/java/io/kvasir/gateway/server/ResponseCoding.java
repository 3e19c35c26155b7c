package io.kvasir.gateway.server;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;

import org.eclipse.jetty.http.HttpException;
import org.eclipse.jetty.http.HttpField;
import org.eclipse.jetty.http.HttpFields;
import org.eclipse.jetty.http.HttpHeader;
import org.eclipse.jetty.http.HttpStatus;
import org.eclipse.jetty.http.PreEncodedHttpField;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.server.Response;
import org.eclipse.jetty.util.BufferUtil;
import org.eclipse.jetty.util.Callback;

import java.nio.ByteBuffer;
import java.util.List;
import java.util.Locale;

/** Which responses are sent with gzip. Any thread. */
public final class ResponseCoding {
    private static final String GZIP = "gzip";
    private static final HttpField ENCODED =
            new PreEncodedHttpField(HttpHeader.CONTENT_ENCODING, GZIP);
    private static final HttpField VARY =
            new PreEncodedHttpField(HttpHeader.VARY, HttpHeader.ACCEPT_ENCODING.asString());

    private final GatewayConfig config;

    /** Compresses as the configuration says. */
    public ResponseCoding(GatewayConfig config) {
        this.config = config;
    }

    /**
     * Decides on a stream of events.
     *
     * @param headers of the response; get what says that it is encoded
     * @return null if it is sent as it is
     */
    public Gzip ofEvents(Request request, HttpFields.Mutable headers) {
        return config.get(GatewaySettings.GZIP_STREAMS) ? begin(request, headers) : null;
    }

    /**
     * Decides on another response.
     *
     * @param bytes its length, or the least that it has
     * @param headers of the response; get what says that it is encoded
     * @return null if it is sent as it is
     */
    public Gzip ofBytes(int bytes, Request request, HttpFields.Mutable headers) {
        final int minBytes = config.get(GatewaySettings.GZIP_MIN_BYTES);
        return minBytes > 0 && bytes >= minBytes && isJson(headers.get(HttpHeader.CONTENT_TYPE))
                ? begin(request, headers)
                : null;
    }

    /** Writes a JSON response of the gateway's own. */
    public void json(Response response, Callback callback, byte[] page) {
        final HttpFields.Mutable headers = response.getHeaders();
        headers.put(HttpHeader.CONTENT_TYPE, Responses.JSON);
        final Gzip gzip = ofBytes(page.length, response.getRequest(), headers);
        final byte[] bytes =
                gzip == null ? page : BufferUtil.toArray(gzip.encode(ByteBuffer.wrap(page), true));
        Responses.write(response, callback, HttpStatus.OK_200, Responses.JSON, bytes);
    }

    private static boolean isJson(String type) {
        return type != null && type.toLowerCase(Locale.ROOT).startsWith(Responses.JSON);
    }

    private static Gzip begin(Request request, HttpFields.Mutable headers) {
        if (headers.contains(HttpHeader.CONTENT_ENCODING) || !accepts(request.getHeaders())) {
            return null;
        }
        headers.remove(HttpHeader.CONTENT_LENGTH);
        headers.put(ENCODED);
        headers.add(VARY);
        return new Gzip();
    }

    /**
     * Whether a client takes gzip: by name, or by a star where the name is not refused. A list that
     * cannot be read asks for nothing.
     */
    static boolean accepts(HttpFields headers) {
        final String given = headers.get(HttpHeader.ACCEPT_ENCODING);
        if (given == null) {
            return false;
        }
        final List<String> codings;
        try {
            codings = headers.getQualityCSV(HttpHeader.ACCEPT_ENCODING);
        } catch (HttpException.RuntimeException e) {
            return false;
        }
        return codings.stream().anyMatch(coding -> coding.toLowerCase(Locale.ROOT).endsWith(GZIP))
                || (codings.contains("*") && !given.toLowerCase(Locale.ROOT).contains(GZIP));
    }
}
