package io.kvasir.sim.events;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/**
 * Writes the few msgpack types that events need, each in its shortest form, into a growing buffer.
 */
final class MsgPackWriter {
    private byte[] bytes;
    private int length;

    MsgPackWriter(int capacity) {
        this.bytes = new byte[capacity];
    }

    void clear() {
        length = 0;
    }

    int length() {
        return length;
    }

    byte[] toBytes() {
        return Arrays.copyOf(bytes, length);
    }

    void nil() {
        put(0xc0);
    }

    void array(int count) {
        head(count, 0x90, 0xdc);
    }

    void map(int count) {
        head(count, 0x80, 0xde);
    }

    void string(String value) {
        final byte[] utf8 = value.getBytes(StandardCharsets.UTF_8);
        if (utf8.length < 32) {
            put(0xa0 | utf8.length);
        } else if (utf8.length < 1 << 8) {
            put(0xd9);
            put(utf8.length);
        } else {
            put(0xda);
            big(utf8.length, Short.BYTES);
        }
        raw(utf8, utf8.length);
    }

    /** Writes an unsigned 64-bit number. */
    void unsigned(long value) {
        if (value >= 0 && value < 1 << 7) {
            put((int) value);
        } else if (value >= 0 && value < 1 << 8) {
            put(0xcc);
            put((int) value);
        } else if (value >= 0 && value < 1 << 16) {
            put(0xcd);
            big(value, Short.BYTES);
        } else if (value >= 0 && value < 1L << 32) {
            put(0xce);
            big(value, Integer.BYTES);
        } else {
            put(0xcf);
            big(value, Long.BYTES);
        }
    }

    void float64(double value) {
        put(0xcb);
        big(Double.doubleToRawLongBits(value), Double.BYTES);
    }

    /** Appends what another writer has written. */
    void append(MsgPackWriter other) {
        raw(other.bytes, other.length);
    }

    private void head(int count, int fix, int sixteen) {
        if (count < 16) {
            put(fix | count);
        } else if (count < 1 << 16) {
            put(sixteen);
            big(count, Short.BYTES);
        } else {
            put(sixteen + 1);
            big(count, Integer.BYTES);
        }
    }

    private void put(int value) {
        room(1);
        bytes[length++] = (byte) value;
    }

    private void big(long value, int width) {
        room(width);
        for (int shift = (width - 1) * Byte.SIZE; shift >= 0; shift -= Byte.SIZE) {
            bytes[length++] = (byte) (value >>> shift);
        }
    }

    private void raw(byte[] source, int count) {
        room(count);
        ByteBuffer.wrap(bytes).put(length, source, 0, count);
        length += count;
    }

    private void room(int count) {
        if (bytes.length - length < count) {
            bytes = Arrays.copyOf(bytes, Math.max(bytes.length * 2, length + count));
        }
    }
}
