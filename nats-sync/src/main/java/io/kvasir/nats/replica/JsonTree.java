package io.kvasir.nats.replica;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * JSON to and from the trees of {@link MsgpackTree}: integers have 64 bits and never go through a
 * double; bytes are base64.
 */
final class JsonTree {
    private static final int MAX_DEPTH = 16;
    private static final JsonFactory JSON = new JsonFactory();

    private JsonTree() {}

    static byte[] write(Object value) {
        final ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (JsonGenerator out = JSON.createGenerator(bytes)) {
            write(out, value);
        } catch (IOException e) {
            throw new UncheckedIOException(e); // memory does not fail so
        }
        return bytes.toByteArray();
    }

    private static void write(JsonGenerator out, Object value) throws IOException {
        switch (value) {
            case null -> out.writeNull();
            case Boolean b -> out.writeBoolean(b);
            case Long n -> writeUnsigned(out, n);
            case Integer n -> writeUnsigned(out, n);
            case String s -> out.writeString(s);
            case byte[] b -> out.writeBinary(b);
            case long[] numbers -> {
                out.writeStartArray();
                for (long n : numbers) {
                    writeUnsigned(out, n);
                }
                out.writeEndArray();
            }
            case List<?> list -> {
                out.writeStartArray();
                for (Object item : list) {
                    write(out, item);
                }
                out.writeEndArray();
            }
            case Map<?, ?> map -> {
                out.writeStartObject();
                for (Map.Entry<?, ?> entry : map.entrySet()) {
                    out.writeFieldName((String) entry.getKey());
                    write(out, entry.getValue());
                }
                out.writeEndObject();
            }
            default -> throw new IllegalArgumentException("no JSON for " + value.getClass());
        }
    }

    private static void writeUnsigned(JsonGenerator out, long n) throws IOException {
        if (n >= 0) {
            out.writeNumber(n);
        } else {
            out.writeNumber(new BigInteger(Long.toUnsignedString(n)));
        }
    }

    /**
     * Reads one value, which is all of the bytes.
     *
     * @throws IOException if it is not JSON, is too deep, or something follows it
     */
    static Object read(byte[] bytes) throws IOException {
        try (JsonParser in = JSON.createParser(bytes)) {
            final Object value = read(in, in.nextToken(), 0);
            if (in.nextToken() != null) {
                throw new IOException("something follows the value");
            }
            return value;
        }
    }

    private static Object read(JsonParser in, JsonToken token, int depth) throws IOException {
        if (depth > MAX_DEPTH) {
            throw new IOException("deeper than " + MAX_DEPTH);
        }
        return switch (token) {
            case null -> throw new IOException("the end comes early");
            case VALUE_TRUE -> true;
            case VALUE_FALSE -> false;
            case VALUE_NUMBER_INT -> in.getBigIntegerValue().longValue();
            case VALUE_NUMBER_FLOAT -> in.getDoubleValue();
            case VALUE_STRING -> in.getText();
            case START_ARRAY -> array(in, depth);
            case START_OBJECT -> {
                final Map<String, Object> map = new LinkedHashMap<>();
                while (in.nextToken() == JsonToken.FIELD_NAME) {
                    final String name = in.currentName();
                    map.put(name, read(in, in.nextToken(), depth + 1));
                }
                yield map;
            }
            case VALUE_NULL -> null;
            default -> throw new IOException("unexpected " + token);
        };
    }

    private static Object array(JsonParser in, int depth) throws IOException {
        final List<Object> list = new ArrayList<>();
        boolean integers = true;
        for (JsonToken token = in.nextToken();
                token != JsonToken.END_ARRAY;
                token = in.nextToken()) {
            integers &= token == JsonToken.VALUE_NUMBER_INT;
            list.add(read(in, token, depth + 1));
        }
        return integers ? list.stream().mapToLong(n -> (Long) n).toArray() : list;
    }
}
