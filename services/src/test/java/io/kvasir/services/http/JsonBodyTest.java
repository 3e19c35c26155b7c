package io.kvasir.services.http;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.nio.charset.StandardCharsets;

class JsonBodyTest {
    private static JsonBody parse(String text) throws ServiceException {
        return JsonBody.parse(text.getBytes(StandardCharsets.UTF_8));
    }

    private static int status(Executable call) {
        return assertThrows(ServiceException.class, call).status();
    }

    @ParameterizedTest
    @ValueSource(strings = {"", " ", "{", "{\"a\":1", "{\"a\":[1,", "{\"a\":}", "nonsense", "{} 1"})
    void whatIsNotJsonIsA400(String text) {
        assertEquals(400, status(() -> parse(text)));
    }

    @Test
    void whatIsNotJsonIsSaidWithoutWordsOfTheLibrary() {
        assertEquals(
                "the body is not JSON: Unexpected close marker '}': expected ']' (for Array"
                        + " starting at line 1, column 6)",
                assertThrows(ServiceException.class, () -> parse("{\"a\":[}")).getMessage());
    }

    @ParameterizedTest
    @ValueSource(strings = {"[]", "1", "null", "\"x\"", "[{\"a\":1}]"})
    void whatIsNoObjectIsA422(String text) {
        assertEquals(422, status(() -> parse(text)));
    }

    @Test
    void numbersOf64BitsAreKeptWhole() throws ServiceException {
        final JsonBody body =
                parse(
                        "{\"u\":18446744073709551615,\"z\":0,"
                                + "\"s\":[-9223372036854775808,9223372036854775807,-1]}");
        assertEquals(-1, body.unsigned("u"));
        assertEquals(0, body.unsigned("z"));
        assertArrayEquals(new long[] {Long.MIN_VALUE, Long.MAX_VALUE, -1}, body.signedArray("s"));
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "18446744073709551616",
                "-1",
                "1.0",
                "1e3",
                "\"1\"",
                "null",
                "true",
                "[1]",
                "{}",
                "NaN"
            })
    void whatIsNoUnsignedNumberIsA422(String value) throws ServiceException {
        final JsonBody body = parse("{\"u\":" + value + "}");
        assertEquals(422, status(() -> body.unsigned("u")));
        assertEquals(422, status(() -> body.unsigned("absent")));
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "[9223372036854775808]",
                "[1,-9223372036854775809]",
                "[1.5]",
                "[null]",
                "[\"1\"]",
                "[[1]]",
                "[{\"a\":[1]},2]",
                "1",
                "null",
                "\"x\""
            })
    void whatIsNoListOfNumbersIsA422AndTheRestIsReadAll(String value) throws ServiceException {
        final JsonBody body = parse("{\"s\":" + value + ",\"t\":\"after\"}");
        assertEquals(422, status(() -> body.signedArray("s")));
        assertEquals("after", body.text("t"));
    }

    @Test
    void tokensHave32Bits() throws ServiceException {
        final JsonBody body =
                parse("{\"a\":[0,4294967295],\"b\":[-1],\"c\":[4294967296],\"d\":[]}");
        assertArrayEquals(new int[] {0, -1}, body.unsigned32Array("a"));
        assertEquals(422, status(() -> body.unsigned32Array("b")));
        assertEquals(422, status(() -> body.unsigned32Array("c")));
        assertEquals(0, body.unsigned32Array("d").length);
    }

    @Test
    void aNullIsNoTextButMayStandForNone() throws ServiceException {
        final JsonBody body = parse("{\"n\":null,\"t\":\"x\",\"i\":2147483648}");
        assertNull(body.textOrNull("n"));
        assertNull(body.textOrNull("absent"));
        assertEquals("x", body.textOrNull("t"));
        assertEquals("else", body.text("absent", "else"));
        assertEquals(422, status(() -> body.text("n", "else")));
        assertEquals(422, status(() -> body.count("i")));
        assertEquals(7, body.count("absent", 7));
        assertEquals(2_147_483_648L, body.unsigned32("i"));
    }

    @ParameterizedTest
    @ValueSource(strings = {"\"\\ud800\"", "[\"a\",\"\\udfff\"]", "{\"1\":\"\\udc00\\ud800\"}"})
    void halfOfASurrogatePairIsA422(String value) throws ServiceException {
        final JsonBody body = parse("{\"a\":" + value + "}");
        assertEquals(422, status(() -> body.text("a")));
        assertEquals(422, status(() -> body.texts("a")));
        assertEquals(422, status(() -> body.textsByName("a")));
        assertEquals(422, status(() -> body.textsByRank("a")));
    }

    @Test
    void aTextOfAnyLengthIsNotKept() throws ServiceException {
        assertEquals(422, status(() -> parse("{\"t\":\"" + "x".repeat(4_097) + "\"}").text("t")));
        assertEquals(4_096, parse("{\"t\":\"" + "x".repeat(4_096) + "\"}").text("t").length());
    }

    @Test
    void whatIsNestedWithoutEndIsA400() {
        assertEquals(400, status(() -> parse("{\"a\":" + "{\"a\":".repeat(100_000))));
        assertEquals(400, status(() -> parse("{\"a\":" + "[".repeat(100_000))));
    }

    /** A list of numbers costs their bytes, not a node each. */
    @Test
    void aMillionNumbersAreRead() throws ServiceException {
        final StringBuilder text = new StringBuilder("{\"a\":[0");
        for (int i = 1; i < 1_000_000; i++) {
            text.append(',').append(i);
        }
        final int[] tokens = parse(text.append("]}").toString()).unsigned32Array("a");
        assertEquals(1_000_000, tokens.length);
        assertEquals(999_999, tokens[999_999]);
    }
}
