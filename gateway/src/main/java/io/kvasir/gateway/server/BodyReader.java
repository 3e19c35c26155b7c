package io.kvasir.gateway.server;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.HeapLimits;
import io.kvasir.gateway.log.RequestRecord;
import io.kvasir.gateway.openai.ApiException;
import io.kvasir.gateway.openai.HeaderElements;
import io.kvasir.registry.FailureText;
import io.kvasir.router.settings.Settings;

import org.eclipse.jetty.http.HttpFields;
import org.eclipse.jetty.http.HttpHeader;
import org.eclipse.jetty.http.HttpStatus;
import org.eclipse.jetty.http.HttpVersion;
import org.eclipse.jetty.io.EofException;
import org.eclipse.jetty.server.Request;

import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeoutException;
import java.util.zip.GZIPInputStream;
import java.util.zip.InflaterInputStream;
import java.util.zip.ZipException;

/** Reads request bodies up to a limit of bytes and one of time. Blocks: one thread per request. */
public final class BodyReader {
    /** Where bytes of bodies are booked. */
    public interface Budget {
        /** Bodies that are small by their limit alone. */
        Budget NONE =
                new Budget() {
                    @Override
                    public void expect(long count) {}

                    @Override
                    public void take(long count) {}

                    @Override
                    public void giveBack() {}
                };

        /**
         * Checks that so many bytes could be taken now.
         *
         * @throws ApiException 413 if they never can, 429 if others have them
         */
        void expect(long count) throws ApiException;

        /**
         * Takes memory for a part of the body.
         *
         * @throws ApiException 413 if the body alone has more than all may have, 429 if there is no
         *     more now
         */
        void take(long count) throws ApiException;

        /** Gives back all that was taken: the body is refused, and what has arrived is not kept. */
        void giveBack();
    }

    /**
     * So much of a body that is not taken is read and thrown away, so that the client gets to read
     * why.
     */
    private static final long DRAINED_BYTES = 64L << 20;

    private static final int FIRST_BYTES = 16 << 10;
    private static final String CODINGS = "gzip, deflate";

    private final GatewayConfig config;
    private final Set<BodyStream> arriving = ConcurrentHashMap.newKeySet();

    /** Reads within the limits of the configuration. */
    public BodyReader(GatewayConfig config) {
        this.config = config;
    }

    /** The most bytes of a body, and the setting that says so; null where none does. */
    record Limit(int bytes, String settingOrNull) {
        static final Limit NONE = new Limit(Integer.MAX_VALUE, null);

        /** 413; a negative length is unknown. */
        ApiException exceeded(long length) {
            return ApiException.tooLarge(length, bytes, settingOrNull);
        }
    }

    /**
     * Reads the whole body, of at most {@code max-body-bytes}. Memory for it is taken as it
     * arrives, whatever length it announces.
     *
     * @throws ApiException 413 if it is longer than the limit, 429 if there is no memory for it
     *     now, 408 or 400 if the client stalls or breaks off, 503 if it is cut
     */
    public byte[] read(Request request, Budget budget) throws ApiException {
        final int most = HeapLimits.bodyBytes(config);
        return read(request, new Limit(most, GatewaySettings.MAX_BODY_BYTES.name()), budget);
    }

    /**
     * The same, of at most so many bytes whatever is set.
     *
     * @throws ApiException as above
     */
    public byte[] read(Request request, int most, Budget budget) throws ApiException {
        return read(request, new Limit(most, null), budget);
    }

    private byte[] read(Request request, Limit limit, Budget budget) throws ApiException {
        final long announced = request.getHeaders().getLongField(HttpHeader.CONTENT_LENGTH);
        final boolean coded = request.getHeaders().contains(HttpHeader.CONTENT_ENCODING);
        try (BodyStream arriving = stream(request, coded ? limit : Limit.NONE)) {
            try {
                if (announced > limit.bytes) {
                    throw limit.exceeded(announced);
                }
                if (coded) {
                    return decoded(request.getHeaders(), arriving, limit, budget);
                }
                budget.expect(Math.max(0, announced));
                return read(
                        arriving,
                        announced < 0 ? limit : new Limit((int) announced, null),
                        announced < 0,
                        budget);
            } catch (ApiException e) {
                budget.giveBack(); // the rest may be long in coming
                drain(request, arriving);
                throw e;
            }
        } catch (IOException e) {
            throw broken(request, e);
        }
    }

    /**
     * Refuses the requests whose bodies are waited for at this moment, because the gateway ends.
     * Called by any thread.
     */
    public void cut() {
        arriving.forEach(BodyStream::cut);
    }

    private BodyStream stream(Request request, Limit most) {
        final Settings settings = config.settings(); // read once: one version of both
        final BodyStream stream =
                new BodyStream(
                        request,
                        settings.get(GatewaySettings.BODY_TIMEOUT).toNanos(),
                        settings.get(GatewaySettings.BODY_MIN_RATE),
                        most,
                        arriving::remove);
        arriving.add(stream);
        return stream;
    }

    /** Its length is not known before; what arrives may not be longer than the limit either. */
    private static byte[] decoded(
            HttpFields headers, BodyStream arriving, Limit limit, Budget budget)
            throws IOException, ApiException {
        try (InputStream plain = plain(headers, arriving)) {
            return read(plain, limit, true, budget);
        } catch (EOFException e) {
            throw ApiException.invalid(null, "the body ends before its Content-Encoding does");
        } catch (ZipException e) {
            throw ApiException.invalid(
                    null, "the body is not what Content-Encoding says: " + FailureText.of(e));
        }
    }

    private static InputStream plain(HttpFields headers, BodyStream arriving)
            throws IOException, ApiException {
        final List<String> codings =
                HeaderElements.of(headers, HttpHeader.CONTENT_ENCODING.asString()).stream()
                        .map(coding -> coding.toLowerCase(Locale.ROOT))
                        .filter(coding -> !coding.equals("identity"))
                        .toList();
        return switch (String.join(", ", codings)) {
            case "" -> arriving;
            case "gzip", "x-gzip" -> new GZIPInputStream(arriving);
            case "deflate" -> new InflaterInputStream(arriving);
            default ->
                    throw ApiException.client(
                                    HttpStatus.UNSUPPORTED_MEDIA_TYPE_415,
                                    null,
                                    null,
                                    "unsupported_encoding",
                                    "bodies may have one Content-Encoding: " + CODINGS)
                            .with(HttpHeader.ACCEPT_ENCODING, CODINGS);
        };
    }

    private static byte[] read(InputStream in, Limit limit, boolean mayBeLonger, Budget budget)
            throws IOException, ApiException {
        final int most = limit.bytes;
        byte[] body = new byte[Math.min(most, FIRST_BYTES)];
        budget.take(body.length);
        int length = 0;
        while (true) {
            if (length == body.length) {
                if (length == most) {
                    if (mayBeLonger && in.read() >= 0) {
                        throw limit.exceeded(-1);
                    }
                    return body;
                }
                final int longer = (int) Math.min(most, 2L * body.length);
                budget.take(longer - body.length);
                body = Arrays.copyOf(body, longer);
            }
            final int count = in.read(body, length, body.length - length);
            if (count < 0) {
                return length == body.length ? body : Arrays.copyOf(body, length);
            }
            length += count;
        }
    }

    /**
     * Reads and throws away the body of a request that is refused, unless it waits for a word. Of
     * HTTP/2 the stream of such a body is ended by itself, after the answer.
     */
    public void drain(Request request) throws ApiException {
        try (BodyStream arriving = stream(request, Limit.NONE)) {
            drain(request, arriving);
        } catch (IOException e) {
            throw broken(request, e);
        }
    }

    private static void drain(Request request, BodyStream arriving) throws IOException {
        if (!request.getHeaders().contains(HttpHeader.EXPECT)
                && request.getConnectionMetaData().getHttpVersion() != HttpVersion.HTTP_2) {
            arriving.discard(DRAINED_BYTES);
        }
    }

    private static ApiException broken(Request request, IOException e) {
        for (Throwable t = e; t != null; t = t.getCause()) {
            if (t instanceof ApiException known) {
                return known;
            }
            if (t instanceof TimeoutException) {
                return ApiException.client(
                        408, null, null, "timeout", "the request body did not arrive in time");
            }
            if (t instanceof EofException) {
                if (RequestRecords.statusOfBrokenOff(request) != RequestRecord.CLIENT_LEFT) {
                    return ApiException.draining();
                }
                return ApiException.brokenOff("the request body broke off: " + FailureText.of(e));
            }
        }
        return ApiException.client(
                400, null, null, "incomplete", "the request body broke off: " + FailureText.of(e));
    }
}
