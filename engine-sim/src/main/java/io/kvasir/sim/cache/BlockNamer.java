package io.kvasir.sim.cache;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;

/**
 * Names blocks as one life of an engine does: the first 8 bytes of SHA-256 over the parent's name
 * (the life's seed for a root), the tokens, the adapter's name and, in the first block, the salt.
 *
 * <p>Immutable, any thread.
 */
public record BlockNamer(long life, long seed, int blockSize) {

    /**
     * Names the full blocks of a token sequence.
     *
     * @param tokens the sequence
     * @param count how many of the tokens count
     * @param lora adapter's name or null
     * @param salt cache salt or null
     * @return one name per full block
     */
    public long[] names(int[] tokens, int count, String lora, String salt) {
        final long[] names = new long[count / blockSize];
        final byte[] adapter = bytes(lora);
        final byte[] firstSalt = bytes(salt);
        final ByteBuffer block =
                ByteBuffer.allocate(
                                Long.BYTES
                                        + blockSize * Integer.BYTES
                                        + 2 * Integer.BYTES
                                        + adapter.length
                                        + firstSalt.length)
                        .order(ByteOrder.LITTLE_ENDIAN);
        final byte[] digest = new byte[32];
        final MessageDigest sha = sha256();
        long parent = seed;
        for (int i = 0; i < names.length; i++) {
            block.clear();
            block.putLong(parent);
            for (int t = i * blockSize; t < (i + 1) * blockSize; t++) {
                block.putInt(tokens[t]);
            }
            block.putInt(adapter.length).put(adapter);
            if (i == 0) {
                block.putInt(firstSalt.length).put(firstSalt);
            }
            parent = digest(sha, block, digest);
            names[i] = parent;
        }
        return names;
    }

    private static long digest(MessageDigest sha, ByteBuffer block, byte[] out) {
        sha.update(block.flip());
        try {
            sha.digest(out, 0, out.length);
        } catch (java.security.DigestException e) {
            throw new AssertionError("SHA-256 fits 32 bytes", e);
        }
        return ByteBuffer.wrap(out).getLong();
    }

    private static byte[] bytes(String text) {
        return text == null ? new byte[0] : text.getBytes(StandardCharsets.UTF_8);
    }

    private static MessageDigest sha256() {
        try {
            return MessageDigest.getInstance("SHA-256");
        } catch (NoSuchAlgorithmException e) {
            throw new AssertionError("every JDK has SHA-256", e);
        }
    }
}
