package io.kvasir.pipeline.wire;

import java.util.Arrays;

/** Writes msgpack into an array that grows; integers in their shortest form. Not thread-safe. */
final class MsgpackWriter {
    private byte[] bytes;
    private int length;

    MsgpackWriter(int capacity) {
        bytes = new byte[capacity];
    }

    byte[] toArray() {
        return Arrays.copyOf(bytes, length);
    }

    private void reserve(int more) {
        if (length + more > bytes.length) {
            bytes = Arrays.copyOf(bytes, Math.max(2 * bytes.length, length + more));
        }
    }

    private void head(int head, int width, long value) {
        reserve(1 + width);
        bytes[length++] = (byte) head;
        for (int shift = Byte.SIZE * (width - 1); shift >= 0; shift -= Byte.SIZE) {
            bytes[length++] = (byte) (value >>> shift);
        }
    }

    MsgpackWriter nil() {
        head(0xc0, 0, 0);
        return this;
    }

    /** A number of 64 unsigned bits. */
    MsgpackWriter unsigned(long value) {
        if (value < 0 || value > 0xffff_ffffL) {
            head(0xcf, Long.BYTES, value);
        } else if (value > 0xffff) {
            head(0xce, Integer.BYTES, value);
        } else if (value > 0xff) {
            head(0xcd, Short.BYTES, value);
        } else if (value > 0x7f) {
            head(0xcc, 1, value);
        } else {
            head((int) value, 0, 0);
        }
        return this;
    }

    MsgpackWriter real(double value) {
        head(0xcb, Double.BYTES, Double.doubleToRawLongBits(value));
        return this;
    }

    MsgpackWriter array(int elements) {
        sized(0x90, 15, 0xdc, elements);
        return this;
    }

    MsgpackWriter map(int pairs) {
        sized(0x80, 15, 0xde, pairs);
        return this;
    }

    /** A head of a size: in its own byte, in 2 bytes or in 4. */
    private void sized(int fix, int most, int wide, int size) {
        if (size <= most) {
            head(fix | size, 0, 0);
        } else if (size <= 0xffff) {
            head(wide, Short.BYTES, size);
        } else {
            head(wide + 1, Integer.BYTES, size);
        }
    }

    /** A text of UTF-8 bytes. */
    MsgpackWriter text(byte[] utf8) {
        if (utf8.length > 31 && utf8.length <= 0xff) {
            head(0xd9, 1, utf8.length);
        } else {
            sized(0xa0, 31, 0xda, utf8.length);
        }
        return raw(utf8);
    }

    MsgpackWriter binary(byte[] data) {
        if (data.length <= 0xff) {
            head(0xc4, 1, data.length);
        } else if (data.length <= 0xffff) {
            head(0xc5, Short.BYTES, data.length);
        } else {
            head(0xc6, Integer.BYTES, data.length);
        }
        return raw(data);
    }

    /** Bytes that are msgpack already. */
    MsgpackWriter raw(byte[] data) {
        reserve(data.length);
        System.arraycopy(data, 0, bytes, length, data.length);
        length += data.length;
        return this;
    }
}
