package io.kvasir.sim.testing;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Reads msgpack into plain objects, for tests: numbers become Long or Double, maps keep their
 * order.
 */
public final class MsgPack {
    private MsgPack() {}

    public static Object read(ByteBuffer in) {
        final int tag = in.get() & 0xff;
        if (tag < 0x80) {
            return (long) tag;
        }
        if (tag < 0x90) {
            return map(in, tag & 0x0f);
        }
        if (tag < 0xa0) {
            return array(in, tag & 0x0f);
        }
        if (tag < 0xc0) {
            return string(in, tag & 0x1f);
        }
        return switch (tag) {
            case 0xc0 -> null;
            case 0xcb -> in.getDouble();
            case 0xcc -> (long) (in.get() & 0xff);
            case 0xcd -> (long) (in.getShort() & 0xffff);
            case 0xce -> in.getInt() & 0xffffffffL;
            case 0xcf -> in.getLong();
            case 0xd9 -> string(in, in.get() & 0xff);
            case 0xda -> string(in, in.getShort() & 0xffff);
            case 0xdc -> array(in, in.getShort() & 0xffff);
            case 0xdd -> array(in, in.getInt());
            case 0xde -> map(in, in.getShort() & 0xffff);
            default -> throw new AssertionError("tag 0x" + Integer.toHexString(tag));
        };
    }

    private static List<Object> array(ByteBuffer in, int count) {
        final List<Object> values = new ArrayList<>(count);
        for (int i = 0; i < count; i++) {
            values.add(read(in));
        }
        return values;
    }

    private static Map<String, Object> map(ByteBuffer in, int count) {
        final Map<String, Object> values = new LinkedHashMap<>();
        for (int i = 0; i < count; i++) {
            values.put((String) read(in), read(in));
        }
        return values;
    }

    private static String string(ByteBuffer in, int length) {
        final byte[] utf8 = new byte[length];
        in.get(utf8);
        return new String(utf8, StandardCharsets.UTF_8);
    }
}
