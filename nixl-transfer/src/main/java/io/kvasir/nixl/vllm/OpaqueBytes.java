package io.kvasir.nixl.vllm;

import java.util.Arrays;
import java.util.HexFormat;

/** Bytes that are passed on without being understood. Immutable; equal by content. */
public final class OpaqueBytes {
    private static final int SHOWN = 16;

    private final byte[] bytes;

    private OpaqueBytes(byte[] bytes) {
        this.bytes = bytes;
    }

    /**
     * Keeps a copy of bytes.
     *
     * @param bytes copied
     * @return the same bytes
     */
    public static OpaqueBytes of(byte[] bytes) {
        return new OpaqueBytes(bytes.clone());
    }

    /**
     * Keeps a copy of a range of bytes.
     *
     * @param bytes copied
     * @param from first byte
     * @param to byte after the last
     * @return the range
     */
    static OpaqueBytes of(byte[] bytes, int from, int to) {
        return new OpaqueBytes(Arrays.copyOfRange(bytes, from, to));
    }

    /**
     * Number of bytes.
     *
     * @return at least 0
     */
    public int length() {
        return bytes.length;
    }

    /**
     * The bytes.
     *
     * @return a copy
     */
    public byte[] toArray() {
        return bytes.clone();
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof OpaqueBytes that && Arrays.equals(bytes, that.bytes);
    }

    @Override
    public int hashCode() {
        return Arrays.hashCode(bytes);
    }

    /** Returns the length and the first bytes in hexadecimal. */
    @Override
    public String toString() {
        final int shown = Math.min(SHOWN, bytes.length);
        final String hex = HexFormat.of().formatHex(bytes, 0, shown);
        return bytes.length + " bytes: " + hex + (shown < bytes.length ? "..." : "");
    }
}
