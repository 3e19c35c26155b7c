package io.kvasir.pipeline.log;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class LineTextTest {
    @ParameterizedTest
    @CsvSource(
            nullValues = "none",
            value = {
                "none, null",
                "'', ''",
                "plain äöü 漢字 😀, plain äöü 漢字 😀",
                "'a\nb', a\\u{a}b",
                "'\r\u001b[31m', \\u{d}\\u{1b}[31m",
                "\u009b2J, \\u{9b}2J",
                "a\u2028b\u2029c\u0085d, a\\u{2028}b\\u{2029}c\\u{85}d",
                "\u202eright, \\u{202e}right",
                "\ud800x, \\u{d800}x"
            })
    void whatCouldSteerALogIsEscaped(String text, String expected) {
        assertEquals(expected, LineText.of(text));
    }

    @Test
    void longTextIsCut() {
        final String text = LineText.of("\n".repeat(1 << 20));
        assertTrue(text.length() < 10 * LineText.MAX_LENGTH, text);
        assertTrue(text.endsWith("... (1048576 characters)"), text);
    }
}
