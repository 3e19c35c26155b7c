package io.kvasir.prompt.memo;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Arrays;

/**
 * A memo as one tenant's prompts of one tokenizer see it: other tenants' and tokenizers' sections
 * have other keys. One thread; made for one prompt.
 *
 * <pre>
 * realm = SHA-256("kvasir prompt memo 1" | identity | 0 or 1 | salt)
 * key   = SHA-256(realm | code point before the section or -1, 4 bytes | section in UTF-8)
 * </pre>
 */
public final class MemoView {
    private static final byte[] VERSION =
            "kvasir prompt memo 1".getBytes(StandardCharsets.US_ASCII);

    /** {@link #key}'s code point before a section that begins the text. */
    public static final int NOTHING_BEFORE = -1;

    private final PromptMemo memo;
    private final MessageDigest sha = sha256();
    private final byte[] realm;

    /**
     * A view.
     *
     * @param memo what is looked at
     * @param identity of the tokenizer, such as a hash of its files; of a fixed length
     * @param saltOrNull the tenant's; null where tenants are not kept apart
     */
    public MemoView(PromptMemo memo, byte[] identity, String saltOrNull) {
        this.memo = memo;
        sha.update(VERSION);
        sha.update(identity);
        sha.update((byte) (saltOrNull == null ? 0 : 1));
        if (saltOrNull != null) {
            sha.update(saltOrNull.getBytes(StandardCharsets.UTF_8));
        }
        realm = sha.digest();
    }

    /**
     * A digest by SHA-256.
     *
     * @return a fresh one
     */
    public static MessageDigest sha256() {
        try {
            return MessageDigest.getInstance("SHA-256");
        } catch (NoSuchAlgorithmException e) {
            throw new AssertionError("every JDK has SHA-256", e);
        }
    }

    /**
     * The key of a section.
     *
     * @param before code point before it, on which a tokenizer may depend; {@link #NOTHING_BEFORE}
     * @param text without lone surrogates in the section
     * @param start where the section begins
     * @param end where it ends
     * @return fresh array of {@value PromptMemo#KEY_BYTES} bytes
     */
    public byte[] key(int before, String text, int start, int end) {
        sha.update(realm);
        sha.update(ByteBuffer.allocate(Integer.BYTES).putInt(0, before));
        sha.update(text.substring(start, end).getBytes(StandardCharsets.UTF_8));
        return sha.digest();
    }

    /** The tokens under a key, or null. */
    public int[] get(byte[] key) {
        return memo.get(key);
    }

    /**
     * Keeps the tokens of a section.
     *
     * @param key of it
     * @param ids holds them
     * @param from index of the first
     * @param to index after the last
     */
    public void put(byte[] key, int[] ids, int from, int to) {
        memo.put(key, Arrays.copyOfRange(ids, from, to));
    }
}
