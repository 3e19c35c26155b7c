package io.kvasir.gateway;

import org.eclipse.jetty.http.HttpHeader;
import org.eclipse.jetty.io.Content;
import org.eclipse.jetty.server.Request;

import java.io.IOException;
import java.io.InputStream;
import java.util.Arrays;
import java.util.concurrent.TimeoutException;

/** Reads request bodies up to a limit. Blocks: one virtual thread per request. */
final class BodyReader {
    /**
     * So much of a body that is not taken is read and thrown away, so that the client gets to read
     * why.
     */
    private static final long DRAINED_BYTES = 64L << 20;

    private static final int FIRST_BYTES = 16 << 10;

    private BodyReader() {}

    /**
     * Reads the whole body. Memory for it is taken as it arrives, whatever length it announces.
     *
     * @throws ApiException 413 if it is longer than the limit, 429 if there is no memory for it
     *     now, 408 or 400 if the client stalls or breaks off
     */
    static byte[] read(Request request, int limit, AdmissionGate.Admission admission)
            throws ApiException {
        final long announced = request.getHeaders().getLongField(HttpHeader.CONTENT_LENGTH);
        try {
            if (announced > limit) {
                throw ApiException.tooLarge(announced, limit);
            }
            admission.expect(Math.max(0, announced));
            return read(
                    Content.Source.asInputStream(request),
                    announced < 0 ? limit : (int) announced,
                    announced < 0,
                    admission);
        } catch (ApiException e) {
            drain(request);
            throw e;
        } catch (IOException e) {
            throw broken(e);
        }
    }

    private static byte[] read(
            InputStream in, int most, boolean mayBeLonger, AdmissionGate.Admission admission)
            throws IOException, ApiException {
        byte[] body = new byte[Math.min(most, FIRST_BYTES)];
        admission.take(body.length);
        int length = 0;
        while (true) {
            if (length == body.length) {
                if (length == most) {
                    if (mayBeLonger && in.read() >= 0) {
                        throw ApiException.tooLarge(-1, most);
                    }
                    return body;
                }
                final int longer = (int) Math.min(most, 2L * body.length);
                admission.take(longer - body.length);
                body = Arrays.copyOf(body, longer);
            }
            final int count = in.read(body, length, body.length - length);
            if (count < 0) {
                return length == body.length ? body : Arrays.copyOf(body, length);
            }
            length += count;
        }
    }

    /** Reads and throws away the body of a request that is refused, unless it waits for a word. */
    static void drain(Request request) throws ApiException {
        if (request.getHeaders().contains(HttpHeader.EXPECT)) {
            return;
        }
        try {
            final InputStream in = Content.Source.asInputStream(request);
            long left = DRAINED_BYTES;
            while (left > 0) {
                final long skipped = in.skip(left);
                if (skipped <= 0) {
                    return;
                }
                left -= skipped;
            }
        } catch (IOException e) {
            throw broken(e);
        }
    }

    private static ApiException broken(IOException e) {
        for (Throwable t = e; t != null; t = t.getCause()) {
            if (t instanceof TimeoutException) {
                return ApiException.client(
                        408, null, null, "timeout", "the request body did not arrive in time");
            }
        }
        return ApiException.client(
                400, null, null, "incomplete", "the request body broke off: " + e.getMessage());
    }
}
