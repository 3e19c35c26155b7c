package io.kvasir.bench.gateway;

import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Locale;

/**
 * A request or answer of HTTP/1.1, read with as little work as can be: what reads it is not to be
 * measured.
 *
 * @param start its first line
 * @param body of a length that it states, or its chunks with their sizes
 */
record HttpMessage(String start, String body) {
    private static final byte[] LAST_CHUNK = "0\r\n\r\n".getBytes(StandardCharsets.US_ASCII);

    /** Reads one; null where the connection ends before it. */
    static HttpMessage read(InputStream in) throws IOException {
        final String head = head(in);
        if (head == null) {
            return null;
        }
        final String fields = head.toLowerCase(Locale.ROOT);
        final String start = head.substring(0, head.indexOf("\r\n"));
        final int length = fields.indexOf("\r\ncontent-length:");
        if (length >= 0) {
            final int from = length + "\r\ncontent-length:".length();
            final int bytes =
                    Integer.parseInt(fields.substring(from, fields.indexOf("\r\n", from)).trim());
            return new HttpMessage(start, text(in.readNBytes(bytes)));
        }
        return new HttpMessage(
                start, fields.contains("\r\ntransfer-encoding: chunked") ? text(chunks(in)) : "");
    }

    private static String text(byte[] bytes) {
        return new String(bytes, StandardCharsets.ISO_8859_1);
    }

    private static String head(InputStream in) throws IOException {
        final StringBuilder head = new StringBuilder(512);
        while (!endsWithBlankLine(head)) {
            final int next = in.read();
            if (next < 0) {
                if (head.isEmpty()) {
                    return null;
                }
                throw new EOFException("in the head: " + head);
            }
            head.append((char) next);
        }
        return head.toString();
    }

    private static boolean endsWithBlankLine(StringBuilder head) {
        final int length = head.length();
        return length >= 4
                && head.charAt(length - 1) == '\n'
                && head.charAt(length - 2) == '\r'
                && head.charAt(length - 3) == '\n';
    }

    private static byte[] chunks(InputStream in) throws IOException {
        final ByteArrayOutputStream all = new ByteArrayOutputStream(2048);
        final byte[] last = new byte[LAST_CHUNK.length]; // the bytes that came last
        while (true) {
            final int next = in.read();
            if (next < 0) {
                throw new EOFException("in the chunks");
            }
            all.write(next);
            System.arraycopy(last, 1, last, 0, last.length - 1);
            last[last.length - 1] = (byte) next;
            if (Arrays.equals(last, LAST_CHUNK)) {
                return all.toByteArray();
            }
        }
    }
}
