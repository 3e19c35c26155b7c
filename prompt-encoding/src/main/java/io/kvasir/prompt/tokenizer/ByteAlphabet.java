package io.kvasir.prompt.tokenizer;

import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/**
 * The byte-level alphabet: every byte has one printable character. Printable Latin-1 bytes stand
 * for themselves, the other 68 take the characters from U+0100 on, in byte order.
 */
final class ByteAlphabet {
    private static final char[] CHARACTER_OF_BYTE = new char[256];
    private static final short[] BYTE_OF_CHARACTER = new short[256 + 68];

    static {
        Arrays.fill(BYTE_OF_CHARACTER, (short) -1);
        char next = 256;
        for (int b = 0; b < 256; b++) {
            final boolean printable =
                    (b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xAC) || (b >= 0xAE && b <= 0xFF);
            final char c = printable ? (char) b : next++;
            CHARACTER_OF_BYTE[b] = c;
            BYTE_OF_CHARACTER[c] = (short) b;
        }
    }

    private ByteAlphabet() {}

    /** Character of an unsigned byte 0..255. */
    static char characterOf(int unsignedByte) {
        return CHARACTER_OF_BYTE[unsignedByte];
    }

    /** The token text of {@code bytes[0, length)}. */
    static String textOf(byte[] bytes, int length) {
        final char[] chars = new char[length];
        for (int i = 0; i < length; i++) {
            chars[i] = CHARACTER_OF_BYTE[bytes[i] & 0xFF];
        }
        return new String(chars);
    }

    /**
     * Appends the bytes that a token stands for. A token with a character outside of the alphabet
     * (an added token) stands for its own UTF-8 bytes.
     */
    static void appendBytes(String token, ByteArrayOutputStream out) {
        final int length = token.length();
        final byte[] bytes = new byte[length];
        for (int i = 0; i < length; i++) {
            final char c = token.charAt(i);
            final short b = c < BYTE_OF_CHARACTER.length ? BYTE_OF_CHARACTER[c] : -1;
            if (b < 0) {
                out.writeBytes(token.getBytes(StandardCharsets.UTF_8));
                return;
            }
            bytes[i] = (byte) b;
        }
        out.writeBytes(bytes);
    }
}
