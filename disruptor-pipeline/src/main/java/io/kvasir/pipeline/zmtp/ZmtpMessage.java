package io.kvasir.pipeline.zmtp;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.Arrays;

/** View of a received message. Valid only inside the call that it is passed to. */
public final class ZmtpMessage {
    /** Frames whose bytes can be asked for; of further ones only the number is known. */
    public static final int MAX_FRAMES = 8;

    private static final VarHandle LONG =
            MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.BIG_ENDIAN);

    private final int[] offsets = new int[MAX_FRAMES];
    private final int[] lengths = new int[MAX_FRAMES];
    private byte[] bytes;
    private int base;
    private int count;

    void clear() {
        count = 0;
        bytes = null;
    }

    void add(int offset, int length) {
        if (count < MAX_FRAMES) {
            offsets[count] = offset;
            lengths[count] = length;
        }
        count++;
    }

    ZmtpMessage in(byte[] array, int offset) {
        bytes = array;
        base = offset;
        return this;
    }

    /** Number of frames, also beyond {@link #MAX_FRAMES}. */
    public int frames() {
        return count;
    }

    /** The array that holds all frames; not to be kept or changed. */
    public byte[] bytes() {
        return bytes;
    }

    /** First byte of a frame in {@link #bytes()}. */
    public int offset(int frame) {
        return base + offsets[frame];
    }

    /** Bytes of a frame. */
    public int length(int frame) {
        return lengths[frame];
    }

    /** A copy of a frame. */
    public byte[] copy(int frame) {
        return Arrays.copyOfRange(bytes, offset(frame), offset(frame) + lengths[frame]);
    }

    /** The first 8 bytes of a frame as a big-endian number. */
    public long readLong(int frame) {
        return (long) LONG.get(bytes, offset(frame));
    }
}
