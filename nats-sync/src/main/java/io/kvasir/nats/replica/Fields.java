package io.kvasir.nats.replica;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Base64;
import java.util.List;
import java.util.Map;

/** Fields of a map of {@link MsgpackTree}, each of the kind that it has to be. */
record Fields(Map<?, ?> map) {
    /**
     * @throws IOException if the value is no map
     */
    static Fields of(Object value) throws IOException {
        if (value instanceof Map<?, ?> map) {
            return new Fields(map);
        }
        throw new IOException("no map: " + value);
    }

    boolean has(String name) {
        return map.get(name) != null;
    }

    Object value(String name) {
        return map.get(name);
    }

    Fields fields(String name) throws IOException {
        return of(map.get(name));
    }

    long number(String name) throws IOException {
        if (map.get(name) instanceof Long number) {
            return number;
        }
        throw missing(name);
    }

    long number(String name, long otherwise) {
        return map.get(name) instanceof Long number ? number : otherwise;
    }

    /** A number from 0 to a limit. */
    int count(String name, int limit) throws IOException {
        final long number = number(name);
        if (number < 0 || number > limit) {
            throw new IOException(name + "=" + number + " is not in 0.." + limit);
        }
        return (int) number;
    }

    String text(String name) throws IOException {
        if (map.get(name) instanceof String text) {
            return text;
        }
        throw missing(name);
    }

    List<?> list(String name) throws IOException {
        return switch (map.get(name)) {
            case List<?> list -> list;
            case long[] numbers when numbers.length == 0 -> List.of();
            case null, default -> throw missing(name);
        };
    }

    /** Numbers of 64 bits that stand in bytes, least significant first. */
    long[] packed(String name) throws IOException {
        final byte[] bytes =
                switch (map.get(name)) {
                    case byte[] b -> b;
                    case String base64 -> decoded(base64, name);
                    case null, default -> throw missing(name);
                };
        if (bytes.length % Long.BYTES != 0) {
            throw new IOException(name + " has " + bytes.length + " bytes");
        }
        final long[] numbers = new long[bytes.length / Long.BYTES];
        ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN).asLongBuffer().get(numbers);
        return numbers;
    }

    /** The same of numbers from 0 to 2^31 - 1, as many as others. */
    int[] packedCounts(String name, int count) throws IOException {
        final long[] numbers = packed(name, count);
        final int[] counts = new int[count];
        for (int i = 0; i < count; i++) {
            if (numbers[i] < 0 || numbers[i] > Integer.MAX_VALUE) {
                throw new IOException(name + " has " + numbers[i]);
            }
            counts[i] = (int) numbers[i];
        }
        return counts;
    }

    long[] packed(String name, int count) throws IOException {
        final long[] numbers = packed(name);
        if (numbers.length != count) {
            throw new IOException(name + " has " + numbers.length + " numbers, not " + count);
        }
        return numbers;
    }

    static byte[] pack(long[] numbers) {
        final ByteBuffer bytes =
                ByteBuffer.allocate(numbers.length * Long.BYTES).order(ByteOrder.LITTLE_ENDIAN);
        bytes.asLongBuffer().put(numbers);
        return bytes.array();
    }

    static byte[] pack(int[] counts) {
        final long[] numbers = new long[counts.length];
        for (int i = 0; i < counts.length; i++) {
            numbers[i] = counts[i];
        }
        return pack(numbers);
    }

    private static byte[] decoded(String base64, String name) throws IOException {
        try {
            return Base64.getDecoder().decode(base64);
        } catch (IllegalArgumentException e) {
            throw new IOException(name + " is no base64", e);
        }
    }

    private IOException missing(String name) {
        return new IOException(
                "field " + name + " is missing, or is of another kind: " + map.keySet());
    }
}
