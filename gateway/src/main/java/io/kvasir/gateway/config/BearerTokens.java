package io.kvasir.gateway.config;

import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/**
 * Tokens that callers present as {@code Authorization: Bearer TOKEN}: those of a setting and those
 * of a file, which can be read again. Compared in a time that says nothing of them. Thread-safe.
 */
public final class BearerTokens {
    private static final String SCHEME = "bearer ";

    private final List<Secret> given;
    private final String option;
    private final Path fileOrNull; // of the option with -file behind
    private volatile byte[][] digests;

    /**
     * Reads the file.
     *
     * @param option what gives single tokens, for messages; with {@code -file} behind, what names
     *     the file
     * @param fileOrNull see {@link SecretFile#tokens}
     * @throws GatewayException if it cannot be read, or names none, or a token has blanks
     */
    public BearerTokens(String option, List<Secret> given, Path fileOrNull) {
        this.given = List.copyOf(given);
        this.option = option;
        this.fileOrNull = fileOrNull;
        reload();
    }

    /** The same with one token or none. */
    public static BearerTokens of(String option, Secret tokenOrNull, Path fileOrNull) {
        return new BearerTokens(
                option, tokenOrNull == null ? List.of() : List.of(tokenOrNull), fileOrNull);
    }

    /**
     * Reads the file again; if that fails, everything stays as it is.
     *
     * @throws GatewayException if it cannot be read, or names none
     */
    public void reload() {
        final List<byte[]> all = new ArrayList<>();
        given.forEach(token -> all.add(presentable(token, option)));
        if (fileOrNull != null) {
            SecretFile.tokens(option + "-file", fileOrNull)
                    .forEach(line -> all.add(presentable(line.secret(), line.from())));
        }
        digests = all.toArray(byte[][]::new);
    }

    /** What is behind a blank is refused as a second credential, so that no caller could use it. */
    private static byte[] presentable(Secret token, String from) {
        if (token.value().chars().anyMatch(c -> c == ' ' || c == '\t')) {
            throw new GatewayException(
                    from + ": the token has a blank in it; no caller could present it", null);
        }
        return digest(token.value());
    }

    /** Whether there are none: then nothing {@link #accept}s. */
    public boolean isEmpty() {
        return digests.length == 0;
    }

    /**
     * Whether a caller presented one of them.
     *
     * @param authorizationOrNull value of the header
     */
    public boolean accept(String authorizationOrNull) {
        if (authorizationOrNull == null
                || !authorizationOrNull.toLowerCase(Locale.ROOT).startsWith(SCHEME)) {
            return false;
        }
        final byte[] presented = digest(authorizationOrNull.substring(SCHEME.length()).strip());
        boolean found = false;
        for (byte[] digest : digests) {
            found |= MessageDigest.isEqual(digest, presented);
        }
        return found;
    }

    private static byte[] digest(String token) {
        try {
            return MessageDigest.getInstance("SHA-256")
                    .digest(token.getBytes(StandardCharsets.UTF_8));
        } catch (NoSuchAlgorithmException e) {
            throw new AssertionError("every JDK has SHA-256", e);
        }
    }
}
