package io.kvasir.gateway.openai;

import com.fasterxml.jackson.databind.node.ObjectNode;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Arrays;
import java.util.HexFormat;

/**
 * Keeps tenants from one another's cached prompts: the salt of a request's blocks, in the router's
 * index and by {@code cache_salt} in the engine, is a hash of the tenant and of the client's own
 * salt. No client can write a salt that is another tenant's.
 */
public final class TenantSalt {
    private static final int SALT_CHARS = 32;

    private TenantSalt() {}

    /**
     * The salt of a tenant's request.
     *
     * @param tenantOrNull value of the tenant's header
     * @param ownOrNull the client's {@code cache_salt}
     * @return null if both are absent: then nothing is to be kept apart
     */
    public static String of(String tenantOrNull, String ownOrNull) {
        if (tenantOrNull == null && ownOrNull == null) {
            return null;
        }
        final MessageDigest sha = sha256();
        part(sha, tenantOrNull);
        part(sha, ownOrNull);
        return HexFormat.of().formatHex(sha.digest()).substring(0, SALT_CHARS);
    }

    /** With its length in front, so that two parts cannot be read as two others. */
    private static void part(MessageDigest sha, String textOrNull) {
        final byte[] bytes =
                textOrNull == null ? new byte[0] : textOrNull.getBytes(StandardCharsets.UTF_8);
        final String head = textOrNull == null ? "-" : bytes.length + ":";
        sha.update(head.getBytes(StandardCharsets.UTF_8));
        sha.update(bytes);
    }

    private static MessageDigest sha256() {
        try {
            return MessageDigest.getInstance("SHA-256");
        } catch (NoSuchAlgorithmException e) {
            throw new AssertionError("every JDK has SHA-256", e);
        }
    }

    /**
     * A body with its salt; all else as it was, unless it has a salt already or its end is not
     * where UTF-8 has it: then it is written anew.
     *
     * @param hasOwn whether the client's body has a {@code cache_salt}
     */
    public static byte[] put(byte[] body, boolean hasOwn, String salt)
            throws ApiException, IOException {
        int end = body.length - 1;
        while (end > 0 && isBlank(body[end])) {
            end--;
        }
        int begin = 0;
        while (begin < end && isBlank(body[begin])) {
            begin++;
        }
        if (hasOwn || body[begin] != '{' || body[end] != '}') {
            final ObjectNode tree = Json.tree(body);
            tree.put("cache_salt", salt);
            return Json.body(tree);
        }
        final byte[] member =
                (",\"cache_salt\":\"" + salt + '"').getBytes(StandardCharsets.US_ASCII);
        final byte[] salted = Arrays.copyOf(body, body.length + member.length);
        System.arraycopy(member, 0, salted, end, member.length);
        System.arraycopy(body, end, salted, end + member.length, body.length - end);
        return salted;
    }

    private static boolean isBlank(byte b) {
        return b == ' ' || b == '\n' || b == '\r' || b == '\t';
    }
}
