package io.kvasir.gateway.server;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.util.zip.GZIPOutputStream;

/**
 * Compresses an answer part by part: what is given can be read by the client once what is returned
 * has arrived. Holds memory outside the heap until it is closed. One thread at a time.
 */
public final class Gzip implements AutoCloseable {
    private static final int BUFFER_BYTES = 4096;

    private final ByteArrayOutputStream out = new ByteArrayOutputStream(BUFFER_BYTES);
    private final GZIPOutputStream gzip;

    Gzip() {
        try {
            gzip = new GZIPOutputStream(out, BUFFER_BYTES, true);
        } catch (IOException e) {
            throw new UncheckedIOException("writing to memory", e);
        }
    }

    /**
     * Compresses a part.
     *
     * @param part consumed
     * @param last whether none follows
     */
    public ByteBuffer encode(ByteBuffer part, boolean last) {
        try {
            if (part.hasArray()) {
                gzip.write(part.array(), part.arrayOffset() + part.position(), part.remaining());
                part.position(part.limit());
            } else {
                final byte[] bytes = new byte[part.remaining()];
                part.get(bytes);
                gzip.write(bytes);
            }
            if (last) {
                gzip.close();
            } else {
                gzip.flush();
            }
        } catch (IOException e) {
            throw new UncheckedIOException("writing to memory", e);
        }
        final ByteBuffer encoded = ByteBuffer.wrap(out.toByteArray());
        out.reset();
        return encoded;
    }

    @Override
    public void close() {
        try {
            gzip.close();
        } catch (IOException e) {
            throw new UncheckedIOException("writing to memory", e);
        }
    }
}
