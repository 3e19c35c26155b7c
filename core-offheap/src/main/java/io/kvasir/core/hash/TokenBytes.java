package io.kvasir.core.hash;

import com.dynatrace.hash4j.hashing.ByteAccess;

/** An array of tokens seen as bytes: token i is the four little-endian bytes from 4 i on. */
enum TokenBytes implements ByteAccess<int[]> {
    VIEW;

    private static final int TOKEN_MASK = Integer.BYTES - 1;

    @Override
    public byte getByte(int[] tokens, long offset) {
        return (byte) (tokens[(int) (offset >>> 2)] >>> ((int) (offset & TOKEN_MASK) << 3));
    }

    @Override
    public int getInt(int[] tokens, long offset) {
        final int index = (int) (offset >>> 2);
        final int shift = (int) (offset & TOKEN_MASK) << 3;
        return shift == 0
                ? tokens[index]
                : (tokens[index] >>> shift) | (tokens[index + 1] << (Integer.SIZE - shift));
    }

    @Override
    public long getIntAsUnsignedLong(int[] tokens, long offset) {
        return Integer.toUnsignedLong(getInt(tokens, offset));
    }

    @Override
    public long getLong(int[] tokens, long offset) {
        return Integer.toUnsignedLong(getInt(tokens, offset))
                | ((long) getInt(tokens, offset + Integer.BYTES) << Integer.SIZE);
    }
}
