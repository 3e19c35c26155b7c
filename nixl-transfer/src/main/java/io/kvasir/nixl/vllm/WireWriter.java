package io.kvasir.nixl.vllm;

import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.util.List;

/**
 * Writes one msgpack message, each value in its shortest form, as vLLM's encoder does.
 *
 * @see <a href="https://github.com/msgpack/msgpack/blob/master/spec.md">msgpack's format</a>
 */
final class WireWriter {
    private final ByteArrayOutputStream out = new ByteArrayOutputStream(512);

    private WireWriter typed(int type, int bytes, long value) {
        out.write(type);
        return bigEndian(bytes, value);
    }

    private WireWriter bigEndian(int bytes, long value) {
        for (int shift = (bytes - 1) * Byte.SIZE; shift >= 0; shift -= Byte.SIZE) {
            out.write((int) (value >>> shift));
        }
        return this;
    }

    /** Opens a map; keys and values follow. */
    WireWriter map(int pairs) {
        if (pairs < 16) {
            out.write(0x80 + pairs);
            return this;
        }
        return pairs < 1 << 16 ? typed(0xde, 2, pairs) : typed(0xdf, 4, pairs);
    }

    /** Opens an array; elements follow. */
    WireWriter array(int elements) {
        if (elements < 16) {
            out.write(0x90 + elements);
            return this;
        }
        return elements < 1 << 16 ? typed(0xdc, 2, elements) : typed(0xdd, 4, elements);
    }

    WireWriter string(String text) {
        final byte[] utf8 = text.getBytes(StandardCharsets.UTF_8);
        if (utf8.length < 32) {
            out.write(0xa0 + utf8.length);
        } else if (utf8.length < 1 << 8) {
            typed(0xd9, 1, utf8.length);
        } else if (utf8.length < 1 << 16) {
            typed(0xda, 2, utf8.length);
        } else {
            typed(0xdb, 4, utf8.length);
        }
        return raw(utf8);
    }

    WireWriter strings(List<String> texts) {
        array(texts.size());
        texts.forEach(this::string);
        return this;
    }

    WireWriter binary(byte[] bytes) {
        if (bytes.length < 1 << 8) {
            typed(0xc4, 1, bytes.length);
        } else if (bytes.length < 1 << 16) {
            typed(0xc5, 2, bytes.length);
        } else {
            typed(0xc6, 4, bytes.length);
        }
        return raw(bytes);
    }

    WireWriter integer(long value) {
        if (value >= 0) {
            return unsigned(value);
        }
        if (value >= -32) {
            return bigEndian(1, value);
        }
        if (value >= Byte.MIN_VALUE) {
            return typed(0xd0, 1, value);
        }
        if (value >= Short.MIN_VALUE) {
            return typed(0xd1, 2, value);
        }
        return value >= Integer.MIN_VALUE ? typed(0xd2, 4, value) : typed(0xd3, 8, value);
    }

    private WireWriter unsigned(long value) {
        if (value < 1 << 7) {
            return bigEndian(1, value);
        }
        if (value < 1 << 8) {
            return typed(0xcc, 1, value);
        }
        if (value < 1 << 16) {
            return typed(0xcd, 2, value);
        }
        return value < 1L << 32 ? typed(0xce, 4, value) : typed(0xcf, 8, value);
    }

    WireWriter number(double value) {
        return typed(0xcb, 8, Double.doubleToRawLongBits(value));
    }

    WireWriter nil() {
        out.write(0xc0);
        return this;
    }

    /** Writes bytes as they are, such as a value that is encoded already. */
    WireWriter raw(byte[] bytes) {
        out.writeBytes(bytes);
        return this;
    }

    byte[] toByteArray() {
        return out.toByteArray();
    }
}
