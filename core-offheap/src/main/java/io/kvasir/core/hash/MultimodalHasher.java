package io.kvasir.core.hash;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Objects;

/**
 * Local hashes of blocks that carry multimodal objects (images, audio): XXH3-64 of the block's
 * tokens as little-endian 32-bit values, followed by the objects' hashes in ascending unsigned
 * order as little-endian 64-bit values. Where in the block an object begins does not count.
 *
 * <p>Caller-owned; one thread at a time; allocates nothing once its scratch memory has grown.
 */
public final class MultimodalHasher {
    private static final VarHandle INT =
            MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN)
                    .withInvokeExactBehavior();
    private static final VarHandle LONG =
            MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN)
                    .withInvokeExactBehavior();
    private static final int HEX_ID_LENGTH = 64;
    private static final int HEX_DIGITS = 16;

    private byte[] bytes = new byte[256];
    private long[] sorted = new long[8];

    /** Makes a hasher. */
    public MultimodalHasher() {}

    /**
     * The hash by which an object counts.
     *
     * @param id the engine's identifier of the object
     * @return of a 64-digit hexadecimal identifier the first 16 digits, else XXH3-64 of its UTF-8
     *     bytes
     */
    public static long objectHash(String id) {
        if (id.length() != HEX_ID_LENGTH
                || !id.chars().allMatch(digit -> Character.digit(digit, 16) >= 0)) {
            return SeededHashers.of(0).hashBytesToLong(id.getBytes(StandardCharsets.UTF_8));
        }
        return Long.parseUnsignedLong(id, 0, HEX_DIGITS, 16);
    }

    /**
     * Local hash of one block.
     *
     * @param tokens the block is {@code tokens[from, from + length)}
     * @param seed from {@link BlockHasher#seed}
     * @param objects hashes of the block's objects in any order, {@code [first, first + count)};
     *     left as they are
     * @throws IndexOutOfBoundsException if the block or the hashes lie outside their array
     */
    public long localHash(
            int[] tokens, int from, int length, long seed, long[] objects, int first, int count) {
        Objects.checkFromIndexSize(from, length, tokens.length);
        Objects.checkFromIndexSize(first, count, objects.length);
        final int tokenBytes = length * Integer.BYTES;
        final int size = tokenBytes + count * Long.BYTES;
        if (bytes.length < size) {
            bytes = new byte[Math.max(size, 2 * bytes.length)];
        }
        for (int i = 0; i < length; i++) {
            INT.set(bytes, i * Integer.BYTES, tokens[from + i]);
        }
        sort(objects, first, count);
        for (int i = 0; i < count; i++) {
            LONG.set(bytes, tokenBytes + i * Long.BYTES, sorted[i] ^ Long.MIN_VALUE);
        }
        return SeededHashers.of(seed).hashBytesToLong(bytes, 0, size);
    }

    /** A flipped sign bit makes signed order the unsigned one. */
    private void sort(long[] objects, int first, int count) {
        if (sorted.length < count) {
            sorted = new long[Math.max(count, 2 * sorted.length)];
        }
        for (int i = 0; i < count; i++) {
            sorted[i] = objects[first + i] ^ Long.MIN_VALUE;
        }
        Arrays.sort(sorted, 0, count);
    }
}
