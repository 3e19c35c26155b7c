package io.kvasir.pipeline.wire;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

import java.nio.charset.StandardCharsets;

class JsonReaderTest {
    private static JsonReader of(String json) {
        final byte[] bytes = json.getBytes(StandardCharsets.UTF_8);
        return new JsonReader().wrap(bytes, 0, bytes.length);
    }

    @ParameterizedTest
    @CsvSource({
        "0, 0",
        "-0, 0",
        "-1, -1",
        "9223372036854775807, 9223372036854775807",
        "9223372036854775808, -9223372036854775808",
        "-9223372036854775808, -9223372036854775808",
        "18446744073709551615, -1",
        "' 12 ', 12"
    })
    void integersHave64BitsOfEitherSign(String json, long expected) {
        final JsonReader reader = of(json);
        assertEquals(expected, reader.readLong());
        assertTrue(reader.ok());
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "18446744073709551616",
                "99999999999999999999",
                "-9223372036854775809",
                "-18446744073709551615",
                "1.0",
                "1e3",
                "1E3",
                "007",
                "-",
                "",
                "x",
                "\"1\"",
                "null"
            })
    void whatIsNoSuchIntegerFailsTheReader(String json) {
        final JsonReader reader = of(json);
        reader.readLong();
        assertFalse(reader.ok());
        assertFalse(reader.skip());
        assertEquals(MsgpackReader.Kind.END, reader.peek());
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "1",
                "-2.5e-3",
                "null",
                "true",
                "false",
                "\"\"",
                "\"a\\\"]\"",
                "[]",
                "{}",
                "[1,[2,{\"a\":[3]}]]",
                "{\"a\":{\"b\":[]}}"
            })
    void aWholeValueIsSkipped(String json) {
        final JsonReader reader = of(json + " 7");
        assertTrue(reader.skip());
        assertEquals(7, reader.readLong());
    }

    @ParameterizedTest
    @ValueSource(
            strings = {"[", "{", "[}", "{]", "\"a", "\"a\\\"", "nul", "tru", "]", ",", ":", ""})
    void whatIsNoValueFailsTheReader(String json) {
        final JsonReader reader = of(json);
        assertFalse(reader.skip());
        assertFalse(reader.ok());
    }

    @Test
    void nestingHasALimit() {
        final int most = JsonReader.MAX_DEPTH;
        assertTrue(of("[".repeat(most) + "]".repeat(most)).skip());
        assertFalse(of("[".repeat(most + 1) + "]".repeat(most + 1)).skip());
    }

    @Test
    void aStringWithAnEscapeEqualsNoName() {
        final JsonReader reader = of("\"\\u0061\"");
        assertTrue(reader.readData());
        assertFalse(reader.dataEquals(new byte[] {'a'}));
    }
}
