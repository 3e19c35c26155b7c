package io.kvasir.gateway;

import org.eclipse.jetty.http.HttpHeader;
import org.eclipse.jetty.io.Content;
import org.eclipse.jetty.server.Request;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.util.concurrent.TimeoutException;

/** Reads request bodies up to a limit. Blocks: one virtual thread per request. */
final class BodyReader {
    /**
     * So much of a body that is too long is read and thrown away, so that the client gets to read
     * why.
     */
    private static final long DRAINED_BYTES = 64L << 20;

    private BodyReader() {}

    /**
     * Reads the whole body.
     *
     * @throws ApiException 413 if it is longer than the limit, 408 or 400 if the client stalls or
     *     breaks off
     */
    static byte[] read(Request request, int limit) throws ApiException {
        final long announced = request.getHeaders().getLongField(HttpHeader.CONTENT_LENGTH);
        try (InputStream in = Content.Source.asInputStream(request)) {
            if (announced > limit) {
                if (!request.getHeaders().contains(HttpHeader.EXPECT)) {
                    drain(in);
                }
                throw ApiException.tooLarge(announced, limit);
            }
            if (announced >= 0) {
                return in.readNBytes((int) announced);
            }
            final ByteArrayOutputStream body = new ByteArrayOutputStream(4096);
            final byte[] piece = new byte[8192];
            for (int n = in.read(piece); n >= 0; n = in.read(piece)) {
                if (body.size() + n > limit) {
                    drain(in);
                    throw ApiException.tooLarge(-1, limit);
                }
                body.write(piece, 0, n);
            }
            return body.toByteArray();
        } catch (IOException e) {
            for (Throwable t = e; t != null; t = t.getCause()) {
                if (t instanceof TimeoutException) {
                    throw ApiException.client(
                            408, null, null, "timeout", "the request body did not arrive in time");
                }
            }
            throw ApiException.client(
                    400, null, null, "incomplete", "the request body broke off: " + e.getMessage());
        }
    }

    private static void drain(InputStream in) throws IOException {
        long left = DRAINED_BYTES;
        while (left > 0) {
            final long skipped = in.skip(left);
            if (skipped <= 0) {
                return;
            }
            left -= skipped;
        }
    }
}
