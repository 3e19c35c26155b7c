package io.kvasir.gateway.proxy;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.eclipse.jetty.http.HttpField;
import org.eclipse.jetty.http.HttpFields;
import org.eclipse.jetty.http.HttpHeader;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.time.Duration;
import java.time.Instant;

class RetryAfterTest {
    private static final Instant NOW = Instant.parse("2026-11-26T10:00:00Z");

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "7 | PT7S",
                "0 | PT0S",
                "007 | PT7S",
                "999999999 | PT999999999S",
                "9999999999 | PT2147483647S",
                "99999999999999999999999999 | PT2147483647S",
                "-7 | PT0S",
                "+7 | PT0S",
                "7.5 | PT0S",
                "7 s | PT0S",
                "٧ | PT0S", // a digit of another script
                "soon | PT0S",
                "'' | PT0S",
                "Thu, 26 Nov 2026 10:00:30 GMT | PT30S",
                "Thursday, 26-Nov-26 10:00:30 GMT | PT30S",
                "Thu, 26 Nov 2026 09:59:30 GMT | PT0S",
                "Thu, 99 Nov 2026 10:00:30 GMT | PT0S"
            })
    void whatCannotBeReadSaysNothing(String text, Duration expected) {
        assertEquals(
                expected, RetryAfter.of(HttpFields.from(field(text)), NOW), "Retry-After: " + text);
    }

    private static HttpField field(String text) {
        return new HttpField(HttpHeader.RETRY_AFTER, text);
    }

    @Test
    void anAnswerWithoutItSaysNothing() {
        assertEquals(Duration.ZERO, RetryAfter.of(HttpFields.EMPTY, NOW));
    }
}
