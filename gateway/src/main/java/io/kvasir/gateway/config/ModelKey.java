package io.kvasir.gateway.config;

import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;

/**
 * What stands for a model's name where not every text can: in names of folders and subjects. Two
 * names never have the same key, given that SHA-256 has no collision.
 */
final class ModelKey {
    /** Longest key of a name that is not cut. */
    static final int MAX_LENGTH = 128;

    private static final int CUT_LENGTH = 64;
    private static final int DIGEST_BYTES = 16;

    private ModelKey() {}

    /**
     * Letters, digits, {@code _} and {@code -} stay, all else is a percent sign and two hex digits
     * for each byte of UTF-8. A longer key is cut, and ends with a dot, which no other key has, and
     * the beginning of the name's SHA-256.
     */
    static String of(String name) {
        final byte[] utf8 = name.getBytes(StandardCharsets.UTF_8);
        final StringBuilder key = new StringBuilder();
        for (byte each : utf8) {
            if (isPlain(each)) {
                key.append((char) each);
            } else {
                key.append('%').append(HexFormat.of().withUpperCase().toHexDigits(each));
            }
        }
        if (key.length() <= MAX_LENGTH) {
            return key.toString();
        }
        return key.substring(0, CUT_LENGTH) + "." + digest(utf8);
    }

    private static boolean isPlain(byte character) {
        return (character >= 'a' && character <= 'z')
                || (character >= 'A' && character <= 'Z')
                || (character >= '0' && character <= '9')
                || character == '_'
                || character == '-';
    }

    private static String digest(byte[] bytes) {
        try {
            return HexFormat.of()
                    .formatHex(MessageDigest.getInstance("SHA-256").digest(bytes), 0, DIGEST_BYTES);
        } catch (NoSuchAlgorithmException e) {
            throw new AssertionError("every Java has SHA-256", e);
        }
    }
}
