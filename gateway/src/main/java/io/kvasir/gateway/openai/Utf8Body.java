package io.kvasir.gateway.openai;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.CharBuffer;
import java.nio.charset.CharsetDecoder;
import java.nio.charset.CoderResult;
import java.nio.charset.StandardCharsets;

/**
 * Whether a body is UTF-8 as engines read it. The JSON parser takes characters that are written in
 * more bytes than they need, and halves of surrogate pairs; engines refuse both.
 */
final class Utf8Body {
    private static final VarHandle WORDS =
            MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.nativeOrder());
    private static final long HIGH_BITS = 0x8080_8080_8080_8080L;
    private static final int CHARS_AT_ONCE = 1024;

    private Utf8Body() {}

    /**
     * Checks a body unless its first bytes are those of UTF-16 or UTF-32, which the parser reads
     * too.
     *
     * @throws ApiException 400 with the position of the first byte that is wrong
     */
    static void check(byte[] body) throws ApiException {
        final int ascii = asciiLength(body);
        if (ascii == body.length || isWider(body)) {
            return;
        }
        final CharsetDecoder decoder = StandardCharsets.UTF_8.newDecoder(); // reports errors
        final ByteBuffer in = ByteBuffer.wrap(body, ascii, body.length - ascii);
        final CharBuffer out = CharBuffer.allocate(CHARS_AT_ONCE);
        CoderResult result;
        do {
            result = decoder.decode(in, out.clear(), true);
        } while (result.isOverflow());
        if (result.isError()) {
            throw ApiException.invalid(null, "the body is not UTF-8 at byte " + in.position());
        }
    }

    /** JSON begins with two characters of ASCII: a zero or a mark of byte order tells. */
    private static boolean isWider(byte[] body) {
        return body.length > 1
                && (body[0] == 0
                        || body[1] == 0
                        || (body[0] == (byte) 0xFE && body[1] == (byte) 0xFF)
                        || (body[0] == (byte) 0xFF && body[1] == (byte) 0xFE));
    }

    /** Bytes before the first eight in which one is not ASCII. */
    private static int asciiLength(byte[] body) {
        int length = 0;
        while (length + Long.BYTES <= body.length
                && ((long) WORDS.get(body, length) & HIGH_BITS) == 0) {
            length += Long.BYTES;
        }
        while (length < body.length && body.length - length < Long.BYTES && body[length] >= 0) {
            length++;
        }
        return length;
    }
}
