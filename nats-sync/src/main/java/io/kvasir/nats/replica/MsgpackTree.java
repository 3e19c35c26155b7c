package io.kvasir.nats.replica;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Msgpack to and from a tree of {@code Map<String, Object>}, {@code List<Object>}, {@code long[]}
 * (an array of integers), {@code Long} (64 bits, unsigned where it is written), {@code String},
 * {@code byte[]}, {@code Boolean}, {@code Double} and null. Every value is written in its shortest
 * form. Hostile bytes cost no more than their own length.
 */
final class MsgpackTree {
    private static final int MAX_DEPTH = 16;

    private MsgpackTree() {}

    // -- writing -----------------------------------------------------------------------------

    static byte[] write(Object value) {
        final ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try {
            write(new DataOutputStream(bytes), value);
        } catch (IOException e) {
            throw new UncheckedIOException(e); // memory does not fail so
        }
        return bytes.toByteArray();
    }

    private static void write(DataOutputStream out, Object value) throws IOException {
        switch (value) {
            case null -> out.writeByte(0xc0);
            case Boolean b -> out.writeByte(b ? 0xc3 : 0xc2);
            case Long n -> writeUnsigned(out, n);
            case Integer n -> writeUnsigned(out, n);
            case String s -> writeText(out, s.getBytes(StandardCharsets.UTF_8));
            case byte[] b -> {
                writeHead(out, b.length, 0xc4, 0xc5, 0xc6);
                out.write(b);
            }
            case long[] numbers -> {
                writeHead(out, numbers.length, 0x90, 0xdc);
                for (long n : numbers) {
                    writeUnsigned(out, n);
                }
            }
            case List<?> list -> {
                writeHead(out, list.size(), 0x90, 0xdc);
                for (Object item : list) {
                    write(out, item);
                }
            }
            case Map<?, ?> map -> {
                writeHead(out, map.size(), 0x80, 0xde);
                for (Map.Entry<?, ?> entry : map.entrySet()) {
                    write(out, entry.getKey());
                    write(out, entry.getValue());
                }
            }
            default -> throw new IllegalArgumentException("no msgpack for " + value.getClass());
        }
    }

    private static void writeUnsigned(DataOutputStream out, long n) throws IOException {
        if (n >= 0 && n < 0x80) {
            out.writeByte((int) n);
        } else if (n >= 0 && n < 1 << 8) {
            out.writeByte(0xcc);
            out.writeByte((int) n);
        } else if (n >= 0 && n < 1 << 16) {
            out.writeByte(0xcd);
            out.writeShort((int) n);
        } else if (n >= 0 && n < 1L << 32) {
            out.writeByte(0xce);
            out.writeInt((int) n);
        } else {
            out.writeByte(0xcf);
            out.writeLong(n);
        }
    }

    private static void writeText(DataOutputStream out, byte[] utf8) throws IOException {
        if (utf8.length < 32) {
            out.writeByte(0xa0 | utf8.length);
        } else {
            writeHead(out, utf8.length, 0xd9, 0xda, 0xdb);
        }
        out.write(utf8);
    }

    private static void writeHead(DataOutputStream out, int count, int small, int large)
            throws IOException {
        if (count < 16) {
            out.writeByte(small | count);
        } else if (count < 1 << 16) {
            out.writeByte(large);
            out.writeShort(count);
        } else {
            out.writeByte(large + 1);
            out.writeInt(count);
        }
    }

    private static void writeHead(DataOutputStream out, int length, int of8, int of16, int of32)
            throws IOException {
        if (length < 1 << 8) {
            out.writeByte(of8);
            out.writeByte(length);
        } else if (length < 1 << 16) {
            out.writeByte(of16);
            out.writeShort(length);
        } else {
            out.writeByte(of32);
            out.writeInt(length);
        }
    }

    // -- reading -----------------------------------------------------------------------------

    /**
     * Reads one value, which is all of the bytes.
     *
     * @throws IOException if it is not msgpack, is too deep, or something follows it
     */
    static Object read(byte[] bytes) throws IOException {
        final ByteBuffer in = ByteBuffer.wrap(bytes);
        try {
            final Object value = read(in, 0);
            if (in.hasRemaining()) {
                throw new IOException("bytes follow the value: at=" + in.position());
            }
            return value;
        } catch (BufferUnderflowException e) {
            throw new IOException("the bytes end inside a value: length=" + bytes.length, e);
        }
    }

    private static Object read(ByteBuffer in, int depth) throws IOException {
        if (depth > MAX_DEPTH) {
            throw new IOException("deeper than " + MAX_DEPTH);
        }
        final int head = in.get() & 0xff;
        if (head < 0x80 || head >= 0xe0) {
            return (long) (byte) head;
        }
        if (head < 0x90) {
            return map(in, head & 0xf, depth);
        }
        if (head < 0xa0) {
            return array(in, head & 0xf, depth);
        }
        if (head < 0xc0) {
            return text(in, head & 0x1f);
        }
        return switch (head) {
            case 0xc0 -> null;
            case 0xc2 -> false;
            case 0xc3 -> true;
            case 0xc4 -> bytes(in, length8(in));
            case 0xc5 -> bytes(in, length16(in));
            case 0xc6 -> bytes(in, length32(in));
            case 0xca -> (double) in.getFloat();
            case 0xcb -> in.getDouble();
            case 0xcc -> (long) length8(in);
            case 0xcd -> (long) length16(in);
            case 0xce -> in.getInt() & 0xffff_ffffL;
            case 0xcf, 0xd3 -> in.getLong();
            case 0xd0 -> (long) in.get();
            case 0xd1 -> (long) in.getShort();
            case 0xd2 -> (long) in.getInt();
            case 0xd9 -> text(in, length8(in));
            case 0xda -> text(in, length16(in));
            case 0xdb -> text(in, length32(in));
            case 0xdc -> array(in, length16(in), depth);
            case 0xdd -> array(in, length32(in), depth);
            case 0xde -> map(in, length16(in), depth);
            case 0xdf -> map(in, length32(in), depth);
            default -> throw new IOException("no value begins with 0x" + Integer.toHexString(head));
        };
    }

    private static int length8(ByteBuffer in) {
        return in.get() & 0xff;
    }

    private static int length16(ByteBuffer in) {
        return in.getShort() & 0xffff;
    }

    /** A length that the bytes left can hold; each element has one at least. */
    private static int length32(ByteBuffer in) throws IOException {
        final long length = in.getInt() & 0xffff_ffffL;
        if (length > in.remaining()) {
            throw new IOException("length=" + length + " with bytes left=" + in.remaining());
        }
        return (int) length;
    }

    private static byte[] bytes(ByteBuffer in, int length) {
        if (length > in.remaining()) {
            throw new BufferUnderflowException();
        }
        final byte[] bytes = new byte[length];
        in.get(bytes);
        return bytes;
    }

    private static String text(ByteBuffer in, int length) {
        return new String(bytes(in, length), StandardCharsets.UTF_8);
    }

    private static Object array(ByteBuffer in, int count, int depth) throws IOException {
        final long[] numbers = new long[Math.min(count, in.remaining())];
        List<Object> list = null; // null while all are integers
        for (int i = 0; i < count; i++) {
            final Object item = read(in, depth + 1);
            if (list == null && item instanceof Long number) {
                numbers[i] = number;
                continue;
            }
            if (list == null) {
                list = new ArrayList<>();
                for (long number : Arrays.copyOf(numbers, i)) {
                    list.add(number);
                }
            }
            list.add(item);
        }
        return list == null ? numbers : list;
    }

    private static Map<String, Object> map(ByteBuffer in, int count, int depth) throws IOException {
        final Map<String, Object> map = new LinkedHashMap<>();
        for (int i = 0; i < count; i++) {
            final Object key = read(in, depth + 1);
            map.put(String.valueOf(key), read(in, depth + 1));
        }
        return map;
    }
}
