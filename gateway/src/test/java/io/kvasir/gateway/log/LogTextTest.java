package io.kvasir.gateway.log;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class LogTextTest {
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
        assertEquals(expected, LogText.of(text));
    }

    @Test
    void longTextIsCut() {
        final String text = LogText.of("\n".repeat(1 << 20));
        assertTrue(text.length() < 10 * LogText.MAX_LENGTH, text);
        assertTrue(text.endsWith("... (1048576 characters)"), text);
    }

    @Test
    void aFailureKeepsItsStackAndItsCauses() {
        final Exception failure =
                new IllegalStateException("a\nb", new IllegalArgumentException("c\u001bd"));
        final Throwable logged = LogText.of(failure);
        assertEquals("java.lang.IllegalStateException: a\\u{a}b", logged.getMessage());
        assertEquals(
                "java.lang.IllegalArgumentException: c\\u{1b}d", logged.getCause().getMessage());
        assertEquals(failure.getStackTrace()[0], logged.getStackTrace()[0]);
    }

    @Test
    void aFailureThatIsItsOwnCauseEnds() {
        final Exception first = new IllegalStateException("first");
        final Exception second = new IllegalStateException("second", first);
        first.initCause(second);
        int depth = 0;
        for (Throwable t = LogText.of(first); t != null; t = t.getCause()) {
            depth++;
        }
        assertTrue(depth < 20);
        assertSame(second, first.getCause());
    }
}
